"""A fio job that reads the dataset's own files as fast as the measured demand, and no faster."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ioprof.errors import UsageError
from ioprof.export.load import Load

_MOST_FILES = 2000
_RUNTIME_S = 60
# fio takes no escape but "\:"; it expands "$", takes "#" and ";" for the start of a comment, strips
# blanks at the ends, and refuses an option of more than 4,096 characters.
_UNSAFE = re.compile(r"""[\x00-\x1f\x7f-\x9f$\\"'#;]|^\s|\s$""")
_LONGEST_NAME = 3500


def write(load: Load, out: BinaryIO) -> None:
    """The job file. UsageError when fio can take none of the files."""
    readers = max(1, round(load.readers.value))
    files = _files(load, readers)
    if not files:
        raise UsageError(
            f"fio can read none of the {load.samples:,} samples: their names hold characters that "
            f"it takes for its own, or all are smaller than {load.block_bytes:,} B."
        )
    out.write("\n".join(_lines(load, files, readers)).encode() + b"\n")


def _lines(load: Load, files: list[Path], readers: int) -> list[str]:
    share = load.read_bytes_per_s.value / readers
    lines = [
        f"# The storage demand that ioprof measured in {_plain(load.run)}, without accelerators.",
        f"# {load.accelerators} accelerators ({load.topology}) need "
        f"{load.read_bytes_per_s.value:.0f} B/s: {load.read_bytes_per_s.why}.",
    ]
    if load.emulated:
        lines.append(f"# The accelerator was emulated: {_plain(load.emulated)}.")
    lines += [
        "# Run it with --readonly: fio --readonly THIS-FILE",
        f"# {len(files):,} of {load.samples:,} samples, of at least one block each, in random "
        "order.",
        "[global]",
        "rw=read",
        "allow_file_create=0",
        "ioengine=psync",
        "# Around the page cache: the demand is what storage must deliver.",
        "direct=1",
        f"# Mean sample in whole pages: {load.sample_bytes.value:.0f} B, {load.sample_bytes.why}.",
        f"bs={load.block_bytes}",
        "file_service_type=sequential",
        "openfiles=1",
        "time_based=1",
        f"runtime={_RUNTIME_S}s",
        "thread=1",
        "group_reporting=1",
        f"# {load.read_bytes_per_s.value:.0f} B/s over {readers} readers ({load.readers.why}).",
        f"rate={round(share)}",
    ]
    for reader in range(readers):
        lines.append(f"[reader{reader}]")
        mine = files[reader::readers]
        lines += [f"filename={str(file).replace(':', chr(92) + ':')}" for file in mine]
    return lines


def _files(load: Load, readers: int) -> list[Path]:
    enough = np.flatnonzero(load.files.stored_bytes >= load.block_bytes)
    order = np.random.default_rng(0).permutation(enough)
    named = (path for index in order if _nameable(path := load.files.path(int(index))))
    found = list(islice(named, _MOST_FILES))
    # Each reader has one: a file may be read by several.
    return found if not found or len(found) >= readers else (found * readers)[:readers]


def _nameable(path: Path) -> bool:
    name = str(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        return False  # bytes that are no UTF-8
    return len(name) <= _LONGEST_NAME and not _UNSAFE.search(name)


def _plain(text: str) -> str:
    """A name from a file, kept to the one line of its comment."""
    return re.sub(r"[^\x20-\x7e]", "?", text)
