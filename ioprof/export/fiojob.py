"""A fio job that reads the dataset's own files as fast as the measured demand, and no faster."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from ioprof.errors import UsageError
from ioprof.export.load import Load, plain
from ioprof.record.fiofiles import choose_files, escape, share_out

_RUNTIME_S = 60


def write(load: Load, out: BinaryIO) -> None:
    """The job file. UsageError when fio can take none of the files."""
    files = choose_files(load.files, block_bytes=load.block_bytes, present=False)
    if not files:
        raise UsageError(
            f"fio can read none of the {load.samples:,} samples: their names hold characters that "
            f"it takes for its own, or all are smaller than {load.block_bytes:,} B."
        )
    out.write("\n".join(_lines(load, files)).encode() + b"\n")


def _lines(load: Load, files: tuple[Path, ...]) -> list[str]:
    readers = load.reader_count
    share = load.read_bytes_per_s.value / readers
    lines = [f"# {line}" for line in load.heading]
    if load.emulated:
        lines.append(f"# The accelerator was emulated: {plain(load.emulated)}.")
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
    for reader, mine in enumerate(share_out(files, readers=readers)):
        lines.append(f"[reader{reader}]")
        lines += [f"filename={escape(file)}" for file in mine]
    return lines
