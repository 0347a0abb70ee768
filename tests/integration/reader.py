"""A program that reads files in one given way, and nothing else. Run as a script."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

_CHUNK = 1 << 20


def read_buffered(path: Path) -> int:
    """read(2) through the page cache."""
    total = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            total += len(chunk)
    return total


def read_mapped(path: Path) -> int:
    """Touch every page of a mapping: no read call at all."""
    with (
        path.open("rb", buffering=0) as file,
        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as m,
    ):
        for offset in range(0, len(m), mmap.PAGESIZE):
            m[offset]
        return len(m)


def read_direct(path: Path) -> int:
    """O_DIRECT, around the page cache, into a page-aligned buffer."""
    buffer = mmap.mmap(-1, _CHUNK)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        total = 0
        while count := os.preadv(descriptor, [buffer], total):
            total += count
        return total
    finally:
        os.close(descriptor)
        buffer.close()


READERS = {"buffered": read_buffered, "mmap": read_mapped, "direct": read_direct}


def main() -> None:
    """`reader.py MODE FOLDER`: read every file of FOLDER once."""
    mode, folder = sys.argv[1], Path(sys.argv[2])
    for path in sorted(folder.iterdir()):
        READERS[mode](path)


if __name__ == "__main__":
    main()
