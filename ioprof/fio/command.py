"""What fio is asked to do: read the dataset's own files, never create or write one.

The request shape is the loaders': so many readers at once, each reading one small file after the
other to its end, in random order, one request at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from ioprof.record.filelist import FileList

ENGINES = ("io_uring", "libaio", "psync")
"""In order of preference; psync is in every fio."""
MAX_FILES = 2000
_ALIGNMENT_BYTES = 4096  # what direct reads take on every filesystem
_LARGEST_BLOCK_BYTES = 1 << 20
# fio takes no escape but "\:"; it expands "$", takes "#" and ";" for the start of a comment, strips
# blanks at the ends, and refuses an option of more than 4,096 characters.
_UNSAFE = re.compile(r"""[\x00-\x1f\x7f$\\"'#;]|^\s|\s$""")
_LONGEST_NAME = 3500


class ReadJob(msgspec.Struct, frozen=True, kw_only=True):
    """One fio run. `readers` holds the files of each reader, in the order in which it reads them;
    `direct` says around (True) or through the page cache, which fio then empties of each file
    before it reads it."""

    readers: tuple[tuple[Path, ...], ...]
    block_bytes: int
    engine: str
    direct: bool
    duration_s: float

    def text(self) -> str:
        """The job file."""
        lines = [
            "[global]",
            "rw=read",
            "allow_file_create=0",
            f"ioengine={self.engine}",
            "iodepth=1",
            f"direct={int(self.direct)}",
            f"invalidate={int(not self.direct)}",
            f"bs={self.block_bytes}",
            # One file after the other, opened when its turn comes: as a loader does, and within
            # any limit on open files.
            "file_service_type=sequential",
            "openfiles=1",
            "time_based=1",
            f"runtime={round(self.duration_s * 1000)}ms",
            # Threads, so that no forked reader can outlive a killed fio.
            "thread=1",
            "group_reporting=1",
        ]
        for number, files in enumerate(self.readers):
            lines.append(f"[reader{number}]")
            # One line each: they add up, and a line may not be long.
            lines += [f"filename={escape(file)}" for file in files]
        return "\n".join(lines) + "\n"


def argv(program: str, *, job: Path, output: Path) -> tuple[str, ...]:
    """The command line that runs a job file and writes its JSON to `output`."""
    return (program, "--readonly", "--output-format=json", f"--output={output}", str(job))


def probe_argv(program: str, *, file: Path, engine: str, direct: bool) -> tuple[str, ...]:
    """The command line that reads one block, to see whether engine and mode work here."""
    return (
        program,
        "--readonly",
        "--output-format=json",
        "--name=probe",
        f"--filename={escape(file)}",
        "--rw=read",
        "--allow_file_create=0",
        f"--ioengine={engine}",
        f"--direct={int(direct)}",
        f"--bs={_ALIGNMENT_BYTES}",
        "--number_ios=1",
        "--thread=1",
    )


def block_bytes_for(stored_bytes: npt.NDArray[np.int64]) -> int | None:
    """Request size: the mean file in whole 4 KiB, up to 1 MiB; None when not even 4 KiB fits.

    A loader asks for a small file at once, so a request of the mean size costs what a sample
    costs: reading at the power of two below it is a third slower at low concurrency. No larger
    than the third quartile, so that a quarter of the files hold one.
    """
    if len(stored_bytes) == 0:
        return None
    wanted_bytes = int(min(np.mean(stored_bytes), np.percentile(stored_bytes, 75)))
    whole_bytes = wanted_bytes // _ALIGNMENT_BYTES * _ALIGNMENT_BYTES
    return min(whole_bytes, _LARGEST_BLOCK_BYTES) or None


def choose_files(files: FileList, *, block_bytes: int, seed: int = 0) -> tuple[Path, ...]:
    """At most 2,000 files of at least one block, in random order, whose names fio can take.

    Each is there now: fio would make the folder of a job's first file if that were gone, even
    when told to create nothing.
    """
    large_enough = np.flatnonzero(files.stored_bytes >= block_bytes)
    order = np.random.default_rng(seed).permutation(large_enough)
    nameable = _nameable(files.path(int(index)) for index in order)
    return tuple(islice((file for file in nameable if file.is_file()), MAX_FILES))


def share_out(files: tuple[Path, ...], *, readers: int) -> tuple[tuple[Path, ...], ...]:
    """The files of each reader: a part of its own, or a shared one where there are too few."""
    return tuple(
        files[reader::readers] or (files[reader % len(files)],) for reader in range(readers)
    )


def escape(file: Path) -> str:
    """A file's name as fio wants it: a colon would separate two names."""
    return str(file).replace(":", "\\:")


def _nameable(files: Iterable[Path]) -> Iterator[Path]:
    for file in files:
        name = str(file)
        try:
            name.encode()
        except UnicodeEncodeError:
            continue  # bytes that are no UTF-8
        if len(name) <= _LONGEST_NAME and not _UNSAFE.search(name):
            yield file
