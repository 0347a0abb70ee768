"""One file of the kernel, opened once and read again and again."""

from __future__ import annotations

import os
from pathlib import Path

_CHUNK_BYTES = 65536


class ProcFile:
    """A file under /proc whose text is made afresh at each read from its beginning."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """The whole text as it is now; OSError when the kernel refuses."""
        data = os.pread(self._fd, _CHUNK_BYTES, 0)
        # The kernel hands out long tables (/proc/net/dev, /proc/vmstat) a page or so at a time.
        while data and (more := os.pread(self._fd, _CHUNK_BYTES, len(data))):
            data += more
        return data

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def read_once(path: str) -> bytes:
    """The first 64 KiB of a small file that is not kept open."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _CHUNK_BYTES)
    finally:
        os.close(fd)


def why(error: OSError) -> str:
    """The kernel's own words for an error, for instance "Permission denied"."""
    return error.strerror or str(error)
