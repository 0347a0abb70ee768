"""Which files of a dataset fio reads, in blocks of which size, and how it is told their names.

Both a measured ceiling and an exported load read them so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ioprof.record.filelist import FileList

MAX_FILES = 2000
ALIGNMENT_BYTES = 4096  # what direct reads take on every filesystem
_LARGEST_BLOCK_BYTES = 1 << 20
# fio takes no escape but "\:"; it expands "$", takes "#" and ";" for the start of a comment, strips
# blanks at the ends, and refuses an option of more than 4,096 characters.
_UNSAFE = re.compile(r"""[\x00-\x1f\x7f-\x9f$\\"'#;]|^\s|\s$""")
_LONGEST_NAME = 3500


def block_bytes_for(stored_bytes: npt.NDArray[np.int64]) -> int | None:
    """Request size: the mean file in whole 4 KiB, up to 1 MiB; None when not even 4 KiB fits.

    A loader asks for a small file at once, so a request of the mean size costs what a sample
    costs: reading at the power of two below it is a third slower at low concurrency. No larger
    than the third quartile, so that a quarter of the files hold one.
    """
    if len(stored_bytes) == 0:
        return None
    wanted_bytes = int(min(np.mean(stored_bytes), np.percentile(stored_bytes, 75)))
    whole_bytes = wanted_bytes // ALIGNMENT_BYTES * ALIGNMENT_BYTES
    return min(whole_bytes, _LARGEST_BLOCK_BYTES) or None


def choose_files(
    files: FileList, *, block_bytes: int, present: bool = True, seed: int = 0
) -> tuple[Path, ...]:
    """At most 2,000 files of at least one block, in random order, whose names fio can take.

    With `present` only those that are there now: fio would make the folder of a job's first file if
    that were gone, even when told to create nothing. Without, no file is touched.
    """
    large_enough = np.flatnonzero(files.stored_bytes >= block_bytes)
    order = np.random.default_rng(seed).permutation(large_enough)
    found: Iterator[Path] = (files.path(int(index)) for index in order)
    named = filter(_nameable, found)
    return tuple(islice((file for file in named if not present or file.is_file()), MAX_FILES))


def share_out(files: tuple[Path, ...], *, readers: int) -> tuple[tuple[Path, ...], ...]:
    """The files of each reader: a part of its own, or a shared one where there are too few."""
    return tuple(
        files[reader::readers] or (files[reader % len(files)],) for reader in range(readers)
    )


def escape(file: Path) -> str:
    """A file's name as fio wants it: a colon would separate two names."""
    return str(file).replace(":", "\\:")


def _nameable(file: Path) -> bool:
    name = str(file)
    try:
        name.encode()
    except UnicodeEncodeError:
        return False  # bytes that are no UTF-8
    return len(name) <= _LONGEST_NAME and not _UNSAFE.search(name)
