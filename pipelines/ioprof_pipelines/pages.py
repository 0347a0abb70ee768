"""Drop the dataset's pages from the page cache between two epochs."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from ioprof_pipelines.filelist import FileList

_THREADS = 8


def evict(files: FileList) -> None:
    """Advise the kernel that no file's pages are needed. Opens for reading only; needs no root."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(lambda start: _evict_every(files, start), range(_THREADS)):
            pass


def _evict_every(files: FileList, start: int) -> None:
    for index in range(start, len(files), _THREADS):
        try:
            descriptor = os.open(files.path(index), os.O_RDONLY)
        except OSError:
            continue  # the loader names it when it comes to it
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
