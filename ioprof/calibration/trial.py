"""Read a known amount from existing files, in a process of its own.

`python -m ioprof.calibration.trial` is told what to do on its standard input, one line of JSON for
each step, and answers each with one line. It is a child because a mount may never answer, and
because its own counters are then those of the reading alone. Files are opened for reading only.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ioprof.sources.residency import resident_pages

_CHUNK_BYTES = 1 << 20
_WARM_ABOVE = 0.99
_SEVERAL = 8
"""A few large files are not read whole, but this many parts are taken if there are so many."""

Part = tuple[str, int, int]
"""Path, offset, length. A part ends at the end of its file, so that nothing is read ahead of it."""


def parts_of(paths: list[str], *, limit_bytes: int) -> list[Part]:
    """What is read of `paths`: whole files, or the ends of large ones, `limit_bytes` in all."""
    share = max(_CHUNK_BYTES, limit_bytes // max(1, min(_SEVERAL, len(paths))))
    parts: list[Part] = []
    left = limit_bytes
    for path in paths:
        try:
            size = Path(path).stat().st_size
        except OSError:
            continue
        # Direct reads must begin at a multiple of the block size.
        offset = max(0, size - share + _CHUNK_BYTES - 1) // _CHUNK_BYTES * _CHUNK_BYTES
        if size > offset and left > 0:
            parts.append((path, offset, size - offset))
            left -= size - offset
    return parts


class Trials:
    """The parts of one calibration, and what was resident of them before anybody read."""

    def __init__(self, paths: list[str], *, limit_bytes: int) -> None:
        self.parts = parts_of(paths, limit_bytes=limit_bytes)
        self.found_resident = [_resident(path) for path, _, _ in self.parts]
        self._broken: set[Part] = set()

    def describe(self) -> dict[str, Any]:
        """How much there is to read."""
        page = mmap.PAGESIZE
        return {
            "files": len(self.parts),
            "bytes": sum(length for _, _, length in self.parts),
            "page_bytes": sum(-(-length // page) * page for _, _, length in self.parts),
        }

    def evict(self) -> dict[str, Any]:
        """Drop the parts' files from the page cache; the share that stays all the same."""
        for path, _, _ in self.parts:
            # A file that is gone needs no eviction.
            with suppress(OSError), _opened(path) as descriptor:
                # A filesystem that cannot be written has nothing to sync and says so: squashfs.
                with suppress(OSError):
                    os.fdatasync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return {"resident": _share([_resident(path) for path, _, _ in self.parts])}

    def read(self, access: str, *, limit_s: float) -> dict[str, Any]:
        """Read part by part until all are read or `limit_s` is over; the bytes and the time."""
        began_s = time.monotonic()
        taken = pages = 0
        failed = None
        for part in [part for part in self.parts if part not in self._broken]:
            try:
                taken += _READERS[access](*part)
                pages += -(-part[2] // mmap.PAGESIZE) * mmap.PAGESIZE
            except (OSError, ValueError) as error:
                # A file that became shorter cannot be mapped at its old length: a ValueError.
                failed = failed or f"{access}: {getattr(error, 'strerror', None) or error}"
                if access == "read":
                    # Mapped, it would end this process by SIGBUS.
                    self._broken.add(part)
            if time.monotonic() - began_s > limit_s:
                break
        if taken:
            return _answer(taken, pages, began_s)
        why = failed or (self._why_not_warm() if access == "warm" else None)
        return _answer(0, 0, began_s, reason=why)

    def _why_not_warm(self) -> str:
        if len(self._broken) == len(self.parts):
            return "no file could be read"
        with _opened(self.parts[0][0]) as descriptor:
            pages = resident_pages(descriptor, os.fstat(descriptor).st_size)
        return pages.reason or "this mount drops a file's pages when it is opened again"

    def restore(self) -> dict[str, Any]:
        """Leave the page cache about as it was found: files that were in it are read again, and
        others dropped."""
        for (path, _, _), before in zip(self.parts, self.found_resident, strict=True):
            if before is None:
                continue
            with suppress(OSError), _opened(path) as descriptor:
                if before > _WARM_ABOVE:
                    size = os.fstat(descriptor).st_size
                    _drain(descriptor, bytearray(_CHUNK_BYTES), 0, size)
                else:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return {}


def _answer(taken: int, pages: int, began_s: float, reason: str | None = None) -> dict[str, Any]:
    seconds = time.monotonic() - began_s
    return {"read_bytes": taken, "page_bytes": pages, "seconds": seconds, "reason": reason}


def _by_read(path: str, offset: int, length: int) -> int:
    with _opened(path) as descriptor:
        return _drain(descriptor, bytearray(_CHUNK_BYTES), offset, length)


def _by_direct(path: str, offset: int, length: int) -> int:
    with _opened(path, os.O_DIRECT) as descriptor, mmap.mmap(-1, _CHUNK_BYTES) as buffer:
        return _drain(descriptor, buffer, offset, length)


def _by_mmap(path: str, offset: int, length: int) -> int:
    with (
        _opened(path) as descriptor,
        mmap.mmap(descriptor, length, prot=mmap.PROT_READ, offset=offset) as pages,
    ):
        sum(pages[:: mmap.PAGESIZE])
        return length


def _if_warm(path: str, offset: int, length: int) -> int:
    """Read again what the page cache holds; 0 for a file that it no longer holds."""
    with _opened(path) as descriptor:
        pages = resident_pages(descriptor, os.fstat(descriptor).st_size)
        held = pages.resident is not None and pages.resident * mmap.PAGESIZE >= 0.99 * length
        return _drain(descriptor, bytearray(_CHUNK_BYTES), offset, length) if held else 0


def _drain(descriptor: int, buffer: bytearray | mmap.mmap, offset: int, length: int) -> int:
    taken = 0
    while taken < length:
        got = os.preadv(descriptor, (buffer,), offset + taken)
        if got == 0:
            break
        taken += got
    return taken


_READERS: dict[str, Callable[[str, int, int], int]] = {
    "read": _by_read,
    "mmap": _by_mmap,
    "direct": _by_direct,
    "warm": _if_warm,
}


def _resident(path: str) -> float | None:
    try:
        with _opened(path) as descriptor:
            pages = resident_pages(descriptor, os.fstat(descriptor).st_size)
    except OSError:
        return None
    return None if pages.resident is None or not pages.total else pages.resident / pages.total


def _share(resident: list[float | None]) -> float | None:
    known = [share for share in resident if share is not None]
    return sum(known) / len(known) if known and len(known) == len(resident) else None


@contextmanager
def _opened(path: str, flags: int = 0) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOATIME | flags)
    except PermissionError:
        descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def main() -> int:
    """Serve steps until the input ends."""
    trials: Trials | None = None
    for line in sys.stdin:
        step = json.loads(line)
        try:
            match step["do"]:
                case "choose":
                    trials = Trials(step["paths"], limit_bytes=step["limit_bytes"])
                    answer = trials.describe()
                case "evict":
                    assert trials is not None
                    answer = trials.evict()
                case "read":
                    assert trials is not None
                    answer = trials.read(step["access"], limit_s=step["limit_s"])
                case _:
                    assert trials is not None
                    answer = trials.restore()
        except OSError as error:
            answer = {"error": f"{error.filename or 'a file'}: {error.strerror}"}
        os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
