"""One file of the kernel, opened once and read again and again."""

from __future__ import annotations

import os
from pathlib import Path

_CHUNK_BYTES = 65536
_PAGE_BYTES = 4096
_LINE_BYTES = 512
"""Longer than any line of such a table: a buffer with less room left than this is full."""


class ProcFile:
    """A file under /proc whose text is made afresh at each read from its beginning."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read_first(self) -> bytes:
        """The beginning of the text: all of a short one, a page or so of whole lines of a long."""
        return os.pread(self._fd, _CHUNK_BYTES, 0)

    def read(self) -> bytes:
        """The whole text as it is now; OSError when the kernel refuses."""
        data = chunk = self.read_first()
        # The kernel hands out long tables (/proc/net/dev, /proc/vmstat) in buffers of a page, and
        # makes a table again from its beginning for each: ask for more only after a full one.
        while len(chunk) > _PAGE_BYTES - _LINE_BYTES:
            chunk = os.pread(self._fd, _CHUNK_BYTES, len(data))
            data += chunk
        return data

    def read_to_end(self) -> bytes:
        """The whole text of a file whose single records may be longer than a page.

        The kernel ends a buffer before a record that does not fit, so a short one means nothing.
        """
        chunks: list[bytes] = []
        at = 0
        while chunk := os.pread(self._fd, _CHUNK_BYTES, at):
            chunks.append(chunk)
            at += len(chunk)
        return b"".join(chunks)

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
