"""A tree file for elbencho's custom tree mode, with the options that hold it to the demand."""

from __future__ import annotations

import shlex
from typing import BinaryIO

from ioprof.export.load import Load, plain


def write(load: Load, out: BinaryIO) -> None:
    """Lines of folders and of files with their sizes. A name that a line cannot hold (line breaks,
    blanks at its ends) is left out, and counted in a comment.

    Lines that begin with neither "d" nor "f" say nothing to elbencho.
    """
    readers = load.reader_count
    command = shlex.join(
        [
            "elbencho",
            "--read",
            "--direct",
            "--threads",
            str(readers),
            "--block",
            str(load.block_bytes),
            "--limitread",
            str(round(load.read_bytes_per_s.value / readers)),
            "--treefile",
            "THIS-FILE",
            "--treerand",
            str(load.data),
        ]
    )
    comments = [
        *load.heading,
        f"--limitread is of each thread: {load.read_bytes_per_s.value:.0f} B/s over {readers} "
        f"({load.readers.why}).",
        f"--block: the mean sample in whole pages; {load.sample_bytes.value:.0f} B, "
        f"{load.sample_bytes.why}.",
        f"Run: {command}",
    ]
    if load.emulated:
        comments.append(f"The accelerator was emulated: {load.emulated}.")
    every = [load.files.relative(index) for index in range(len(load.files))]
    sizes = load.files.stored_bytes.tolist()
    kept = [(name, size) for name, size in zip(every, sizes, strict=True) if _holds(name)]
    if len(kept) < len(every):
        comments.append(f"Left out for their names: {len(every) - len(kept):,} files.")
    for comment in comments:
        out.write(f"# {plain(comment)}\n".encode())
    for folder in sorted({parent for name, _ in kept for parent in _parents(name)}):
        out.write(b"d " + folder + b"\n")
    for name, size in kept:
        out.write(f"f {size} ".encode() + name + b"\n")


def _holds(name: bytes) -> bool:
    parts = name.split(b"/")
    return b"\n" not in name and all(part == part.strip() for part in (*parts, name))


def _parents(name: bytes) -> list[bytes]:
    parts = name.split(b"/")[:-1]
    return [b"/".join(parts[: depth + 1]) for depth in range(len(parts))]
