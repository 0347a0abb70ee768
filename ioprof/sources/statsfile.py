"""The file of statistics that some FUSE filesystems show, hidden, at the root of their mount.

Opening it can hang with the mount, so whoever reads it does so aside.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path

_CHUNK_BYTES = 65536
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_GONE = (*_ABSENT, errno.ENOTCONN, errno.ESTALE)


class StatsFile:
    """The first of several places whose text is the filesystem's own; then always that one."""

    def __init__(self, places: Iterable[Path], *, belongs: Callable[[bytes], bool]) -> None:
        self._places = tuple(places)
        self._belongs = belongs
        self._found: Path | None = None

    def read(self) -> bytes | None:
        """The text as it is now; None once a file that was there is gone with its mount.

        OSError when no place can be opened, ValueError when what is there is another's.
        """
        if self._found is not None:
            try:
                text = _read(self._found)
            except OSError as error:
                if error.errno in _GONE:
                    return None
                raise
            # After an unmount the folder below may hold a file of the same name.
            return text if self._belongs(text) else None
        return self._first()

    def _first(self) -> bytes:
        foreign = False
        for path in self._places:
            try:
                text = _read(path)
            except OSError as error:
                if error.errno in _ABSENT:
                    continue
                raise
            if self._belongs(text):
                self._found = path
                return text
            foreign = True
        listed = ", ".join(map(str, self._places))
        if foreign:
            raise ValueError(f"{listed}: not the text of this filesystem")
        raise FileNotFoundError(errno.ENOENT, f"there is no {listed}")


def _read(path: Path) -> bytes:
    # Read-only always: MooseFS takes a write for the order to forget its counters.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        text = chunk = os.read(fd, _CHUNK_BYTES)
        # Each read is a request that the filesystem counts: ask again only after a full one.
        while len(chunk) == _CHUNK_BYTES:
            chunk = os.read(fd, _CHUNK_BYTES)
            text += chunk
        return text
    finally:
        os.close(fd)
