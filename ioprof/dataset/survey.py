"""What a folder holds, and the one list of samples that every loader takes.

Each file is opened once, read-only, at its two ends. What cannot be a sample is named with the
reason and left out of the list; nothing else decides later what is in it.
"""

from __future__ import annotations

import bisect
import itertools
import os
import warnings
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ioprof.clock import MonotonicClock
from ioprof.dataset.sniff import Sniffed, kind_of_name, sniff, suffix
from ioprof.dataset.walk import FLAT, Passed, Walk, is_service
from ioprof.errors import DatasetError
from ioprof.record.dataset import Dataset, Quarantined, SizeStatistics
from ioprof.record.filelist import FileList, printable

NAMED = 1000
"""So many quarantined files are named, the first by name; all are counted."""
_TRAIN = b"train"
_SPLITS = {_TRAIN, b"val", b"validation", b"valid", b"test"}
_PART = 64
"""Files that one thread looks at before it hands back what it saw."""
_PARTS_PER_THREAD = 4

Progress = Callable[[int], None]
_Candidate = tuple[int, bytes]
_Seen = Sniffed | str


class _Gathered:
    """The samples and the doubts, as the files come in; a few bytes for each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.quarantined_count = 0
        self.misnamed: Counter[str] = Counter()
        self.labels = array("i")
        self._before = len(os.fsencode(root / "x")) - 1
        self._path_bytes = bytearray()
        self._path_ends = array("q")
        self._stored_bytes = array("q")
        self._first_rejected: list[tuple[bytes, str]] = []

    def add(self, label: int, path: bytes, seen: _Seen) -> None:
        if isinstance(seen, str):
            self.reject(path, seen)
            return
        if seen.problem is not None:
            self.reject(path, seen.problem)
            return
        if seen.kind != kind_of_name(path):
            self.misnamed[f"{seen.kind} named {printable(suffix(path))}"] += 1
        self._path_bytes += path[self._before :]
        self._path_ends.append(len(self._path_bytes))
        self._stored_bytes.append(seen.stored_bytes)
        self.labels.append(label)

    def reject(self, path: bytes, why: str) -> None:
        """Leave a path out; of more than NAMED, those that come first by name keep theirs."""
        self.quarantined_count += 1
        bisect.insort(self._first_rejected, (path[self._before :], why))
        del self._first_rejected[NAMED:]

    def quarantined(self) -> tuple[Quarantined, ...]:
        return tuple(
            Quarantined(file=printable(name) or ".", why=why) for name, why in self._first_rejected
        )

    def files(self, classes: list[bytes]) -> FileList:
        """Sorted by class, then by path: the same list wherever and however often it is made."""
        met = np.array(self.labels, dtype=np.int32)
        names = sorted(classes[number] for number in np.unique(met))
        index = {name: number for number, name in enumerate(names)}
        renumbered = np.array([index.get(name, -1) for name in classes], dtype=np.int32)
        unsorted = FileList(
            self.root,
            path_bytes=np.array(self._path_bytes, dtype=np.uint8),
            path_ends=np.array(self._path_ends, dtype=np.int64),
            stored_bytes=np.array(self._stored_bytes, dtype=np.int64),
            labels=renumbered[met],
            classes=tuple(names),
        )
        by_class = np.argsort(unsorted.labels, kind="stable")
        edges = np.searchsorted(unsorted.labels[by_class], np.arange(len(names) + 1))
        for first, end in itertools.pairwise(edges):
            by_class[first:end] = sorted(by_class[first:end], key=unsorted.relative)
        return unsorted.subset(by_class)


def survey(
    path: Path, *, progress: Progress | None = None, threads: int = 16
) -> tuple[Dataset, FileList]:
    """Scan `path` and return what it holds and the list of its samples.

    `progress` is told how many files have been looked at. DatasetError when `path` cannot be
    read or holds no sample.
    """
    clock = MonotonicClock()
    began_s = clock.now_s()
    root = _root(path)
    top, split_note = _split(root)
    gathered = _Gathered(root)
    walk = Walk(os.fsencode(top), reject=gathered.reject)
    seen = 0
    with warnings.catch_warnings():
        # Broken EXIF says nothing about the pixels.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        for part, looks in _looked(walk.files(), threads=threads):
            for (label, file), look in zip(part, looks, strict=True):
                gathered.add(label, file, look)
            seen += len(part)
            if progress is not None:
                progress(seen)
    if not gathered.labels:
        raise DatasetError(_nothing(path, seen=seen, walk=walk, gathered=gathered))
    files = gathered.files(walk.classes)
    dataset = Dataset(
        path=printable(os.fsencode(path.absolute())),
        layout=files.layout,
        samples=len(files),
        classes=len(files.classes),
        stored_bytes=int(files.stored_bytes.sum()),
        stored_bytes_per_sample=size_statistics(files),
        quarantined=gathered.quarantined(),
        quarantined_count=gathered.quarantined_count,
        notes=tuple(note for note in (split_note, *_notes(walk, gathered, files)) if note),
        survey_s=clock.now_s() - began_s,
        files_seen=seen,
    )
    return dataset, files


def size_statistics(files: FileList) -> SizeStatistics:
    """Stored bytes per sample: mean, standard deviation, median, 95th, 99th percentile, largest."""
    sizes = files.stored_bytes
    p50, p95, p99 = (float(q) for q in np.percentile(sizes, (50, 95, 99)))
    return SizeStatistics(
        mean=float(sizes.mean()),
        std=float(sizes.std()),
        p50=p50,
        p95=p95,
        p99=p99,
        max=float(sizes.max()),
    )


def _root(path: Path) -> Path:
    what_to_do = "Give --data the folder that holds the samples."
    try:
        root = path.resolve(strict=True)
        if root.is_dir():
            return root
    except FileNotFoundError:
        raise DatasetError(f"{path} is not there. {what_to_do}") from None
    except (OSError, RuntimeError) as error:  # before Python 3.13, RuntimeError: links in a circle
        why = error.strerror if isinstance(error, OSError) else "its links lead in a circle"
        raise DatasetError(f"{path} cannot be opened: {why}. {what_to_do}") from None
    raise DatasetError(f"{path} is no folder. {what_to_do}")


def _split(root: Path) -> tuple[Path, str | None]:
    """Where the training samples are: below `train` when the top holds nothing but splits."""
    try:
        with os.scandir(os.fsencode(root)) as found:
            folders, files = set(), 0
            for entry in found:
                if entry.name.startswith(b"."):
                    continue
                if _leads_to_folder(entry):
                    folders.add(entry.name)
                else:
                    files += kind_of_name(entry.name) is not None
    except OSError as error:
        raise DatasetError(
            f"{root} cannot be read: {error.strerror}. Ask for read and search permission on it."
        ) from None
    splits = {name for name in folders if not is_service(name)}
    if files or _TRAIN not in splits or not splits <= _SPLITS:
        return root, None
    others = ", ".join(printable(name) for name in sorted(splits - {_TRAIN}))
    return root / "train", "surveyed the split train" + (f", not {others}" if others else "")


def _leads_to_folder(entry: os.DirEntry[bytes]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _looked(
    candidates: Iterator[_Candidate], *, threads: int
) -> Iterator[tuple[list[_Candidate], list[_Seen]]]:
    """Each part of the candidates with what was seen, while the walk and the others go on."""
    waiting: deque[tuple[list[_Candidate], Future[list[_Seen]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        while part := list(itertools.islice(candidates, _PART)):
            waiting.append((part, pool.submit(_look, part)))
            if len(waiting) > threads * _PARTS_PER_THREAD:
                first, looks = waiting.popleft()
                yield first, looks.result()
        for first, looks in waiting:
            yield first, looks.result()


def _look(part: list[_Candidate]) -> list[_Seen]:
    return [_look_at(path) for _, path in part]


def _look_at(path: bytes) -> _Seen:
    try:
        return sniff(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _notes(walk: Walk, gathered: _Gathered, files: FileList) -> Iterator[str]:
    def named(passed: Passed) -> str:
        return f"{passed.count:,}, {printable(os.path.relpath(passed.first, walk.top))} first"

    if walk.service_folders:
        names = ", ".join(printable(name) for name in sorted(walk.service_folders))
        total = walk.service_folders.total()
        yield f"hidden and service folders left out: {total:,}, namely {names}"
    if walk.hidden.count:
        yield f"hidden files left out: {named(walk.hidden)}"
    if walk.foreign.count:
        yield f"files left out because their names stand for no image: {named(walk.foreign)}"
    if walk.repeated.count:
        yield f"links left out because they lead to folders already seen: {named(walk.repeated)}"
    empty = sorted(set(walk.classes) - set(files.classes))
    if empty:
        yield f"class folders without a sample: {len(empty):,}, {printable(empty[0])} first"
    if FLAT in files.classes and len(files.classes) > 1:
        beside = int(np.count_nonzero(files.labels == files.classes.index(FLAT)))
        yield f"samples beside the class folders, as a class of their own: {beside:,}"
    for what, count in sorted(gathered.misnamed.items()):
        yield f"misnamed, kept: {count:,} {what}"


def _nothing(path: Path, *, seen: int, walk: Walk, gathered: _Gathered) -> str:
    if gathered.quarantined_count:
        first = gathered.quarantined()[0]
        return (
            f"{path} holds no usable sample: {gathered.quarantined_count:,} files were rejected, "
            f"{first.file} first: {first.why}. Check that the copy is complete."
        )
    return (
        f"{path} holds no image: {walk.foreign.count + walk.hidden.count:,} other files were seen. "
        "Give --data the folder whose files, or whose class folders' files, are images."
    )
