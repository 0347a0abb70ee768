"""What fio is asked to do: read the dataset's own files, never create or write one.

The request shape is the loaders': so many readers at once, each reading one small file after the
other to its end, in random order, one request at a time.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ioprof.record.fiofiles import ALIGNMENT_BYTES, escape

ENGINES = ("io_uring", "libaio", "psync")
"""In order of preference; psync is in every fio."""


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
        f"--bs={ALIGNMENT_BYTES}",
        "--number_ios=1",
        "--thread=1",
    )
