"""A program that reads files in one given way, and next to nothing else. Run as a script.

Imports only what the interpreter has loaded at start anyway, so that its own files do not show in
the counters.
"""

import mmap
import os
import sys

_CHUNK = 1 << 20


def read_buffered(descriptor: int) -> None:
    """read(2) through the page cache."""
    while os.read(descriptor, _CHUNK):
        pass


def read_mapped(descriptor: int) -> None:
    """Touch every page of a mapping: no read call at all."""
    with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as mapping:
        for offset in range(0, len(mapping), mmap.PAGESIZE):
            mapping[offset]


def read_direct(descriptor: int) -> None:
    """Into a page-aligned buffer, for O_DIRECT."""
    buffer = mmap.mmap(-1, _CHUNK)
    offset = 0
    while count := os.preadv(descriptor, [buffer], offset):
        offset += count


READERS = {
    "buffered": (read_buffered, 0),
    "mmap": (read_mapped, 0),
    "direct": (read_direct, os.O_DIRECT),
}


def main() -> None:
    """`reader.py MODE FOLDER`: read every file of FOLDER once."""
    mode, folder = sys.argv[1:]
    read, flag = READERS[mode]
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 - pathlib is an import too many
        descriptor = os.open(f"{folder}/{name}", os.O_RDONLY | flag)
        read(descriptor)
        os.close(descriptor)


if __name__ == "__main__":
    main()
