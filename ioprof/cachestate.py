"""Bring the page cache to a state and look at what came of it. The look is what is recorded.

Only the dataset's own pages are touched, by `posix_fadvise`, without root; files are opened for
reading alone. A page that is mapped or dirty stays: what remains is seen in the residency.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ioprof.record.filelist import FileList
from ioprof.record.study import Residency
from ioprof.sources.residency import Pages, resident_pages

_THREADS = 16
_SLICE = 256
_BUFFER_BYTES = 1 << 20

Progress = Callable[[int], None]


def evict(files: FileList, *, progress: Progress | None = None) -> None:
    """Ask the kernel to drop every page of every file. A file that cannot be opened is passed
    over: it has been named by the survey, and its pages show in the residency."""
    _each(files, _evict_one, progress=progress)


def warm(files: FileList, *, progress: Progress | None = None) -> None:
    """Read every file to its end, so that the page cache holds it if memory allows."""
    _each(files, _warm_one, progress=progress)


def observe(files: FileList, *, max_files: int = 2000) -> Residency:
    """Resident fraction of the files' pages, over at most `max_files` spread evenly over the list.

    None with the reason as soon as the kernel refuses to tell it for any of them.
    """
    count = min(len(files), max_files)
    chosen: list[int] = np.linspace(0, max(0, len(files) - 1), count).round().astype(int).tolist()
    with ThreadPoolExecutor(_THREADS) as pool:
        seen = [pages for pages in pool.map(lambda i: _look(files, i), chosen) if pages]
    refused = next((pages for pages in seen if pages.resident is None), None)
    total = sum(pages.total for pages in seen)
    resident = sum(pages.resident or 0 for pages in seen)
    reason = refused.reason if refused else None
    if not total:
        reason = "all files are empty" if seen else "no file could be opened"
    return Residency(
        resident_fraction=None if reason else resident / total,
        pages_checked=total,
        files_checked=len(seen),
        files_total=len(files),
        method=seen[0].method if seen else None,
        reason=reason,
    )


def _each(files: FileList, act: Callable[[Path], None], *, progress: Progress | None) -> None:
    done = 0
    pool = ThreadPoolExecutor(_THREADS)
    try:
        for part in pool.map(lambda span: _slice(files, span, act), _spans(len(files))):
            done += part
            if progress is not None:
                progress(done)
    finally:
        # After Ctrl-C nobody waits for the rest of the dataset.
        pool.shutdown(cancel_futures=True)


def _spans(count: int) -> Iterable[range]:
    return (range(start, min(start + _SLICE, count)) for start in range(0, count, _SLICE))


def _slice(files: FileList, span: range, act: Callable[[Path], None]) -> int:
    for index in span:
        try:
            act(files.path(index))
        except OSError:
            continue
    return len(span)


def _evict_one(path: Path) -> None:
    with _opened(path) as descriptor:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if _resident(descriptor):
            # Pages not yet on disk cannot be dropped; syncing needs no right to write.
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _warm_one(path: Path) -> None:
    buffer = bytearray(_BUFFER_BYTES)
    with _opened(path) as descriptor:
        while os.readv(descriptor, (buffer,)):
            pass


def _look(files: FileList, index: int) -> Pages | None:
    try:
        with _opened(files.path(index)) as descriptor:
            return resident_pages(descriptor, os.fstat(descriptor).st_size)
    except OSError:
        return None


def _resident(descriptor: int) -> bool:
    return bool(resident_pages(descriptor, os.fstat(descriptor).st_size).resident)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A descriptor for reading alone that leaves the access time as it is, where that is allowed:
    to the owner and to root."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOATIME)
    except PermissionError:
        descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
