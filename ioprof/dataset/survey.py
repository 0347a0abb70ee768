"""What a folder holds, and the one list of samples that every loader takes.

Each file is opened once, read-only, at its two ends. What cannot be a sample is named with the
reason and left out of the list; nothing else decides later what is in it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ioprof.dataset.listing import FileList
from ioprof.dataset.sniff import IMAGE_SUFFIXES, Sniffed, sniff
from ioprof.dataset.walk import Walk
from ioprof.errors import DatasetError
from ioprof.record.dataset import Dataset, Quarantined, SizeStatistics

NAMED = 1000
"""So many quarantined files are named; all are counted."""
_SPLITS = {"train", "val", "validation", "valid", "test"}
_SLICE = 512

Progress = Callable[[int], None]


class _Gathered:
    """The samples and the doubts, as the files come in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths: list[bytes] = []
        self.classes: list[str] = []
        self.sizes: list[int] = []
        self.quarantined: list[Quarantined] = []
        self.quarantined_count = 0
        self.misnamed: Counter[str] = Counter()

    def add(self, label: str, path: Path, found: Sniffed) -> None:
        if found.problem is not None:
            self.reject(path, found.problem)
            return
        named = IMAGE_SUFFIXES[path.suffix.lower()]
        if found.kind is not None and named != found.kind:
            self.misnamed[f"{found.kind} named {path.suffix}"] += 1
        self.paths.append(os.fsencode(path.relative_to(self.root)))
        self.classes.append(label)
        self.sizes.append(found.stored_bytes)

    def reject(self, path: Path, why: str) -> None:
        self.quarantined_count += 1
        if len(self.quarantined) < NAMED:
            name = os.fsencode(path.relative_to(self.root)).decode("utf-8", "backslashreplace")
            self.quarantined.append(Quarantined(file=name, why=why))


def survey(
    path: Path, *, progress: Progress | None = None, threads: int = 16
) -> tuple[Dataset, FileList]:
    """Scan `path` and return what it holds and the list of its samples.

    `progress` is told how many files have been looked at. DatasetError when `path` cannot be
    read or holds no sample.
    """
    began_s = time.monotonic()
    root = path.resolve()
    if not root.is_dir():
        raise DatasetError(f"{path} is no folder. Give --data the folder that holds the samples.")
    top, split_note = _split(root)
    walk = Walk(top)
    gathered = _Gathered(root)
    seen = 0
    with ThreadPoolExecutor(threads) as pool:
        for part in _slices(walk.files()):
            for (label, file), found in zip(part, pool.map(_look, part), strict=True):
                if isinstance(found, Sniffed):
                    gathered.add(label, file, found)
                else:
                    gathered.reject(file, found)
            seen += len(part)
            if progress is not None:
                progress(seen)
    _reject_unwalkable(walk, gathered)
    if not gathered.paths:
        raise DatasetError(_nothing(path, seen=seen, walk=walk, gathered=gathered))
    files = _list(gathered)
    dataset = Dataset(
        path=str(path.absolute()),
        layout=files.layout,
        samples=len(files),
        classes=len(files.classes),
        stored_bytes=int(files.stored_bytes.sum()),
        stored_bytes_per_sample=size_statistics(files),
        quarantined=tuple(gathered.quarantined),
        quarantined_count=gathered.quarantined_count,
        notes=tuple(note for note in (split_note, *_notes(walk, gathered)) if note),
        survey_s=time.monotonic() - began_s,
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


def _split(root: Path) -> tuple[Path, str | None]:
    """Where the training samples are: below `train` when the top holds nothing but splits."""
    try:
        with os.scandir(root) as found:
            folders = {e.name for e in found if e.is_dir() and not e.name.startswith(".")}
    except OSError as error:
        raise DatasetError(f"{root} cannot be read: {error.strerror}.") from None
    if "train" in folders and folders <= _SPLITS:
        return root / "train", f"only the split train is surveyed, of {', '.join(sorted(folders))}"
    return root, None


def _slices(files: Iterator[tuple[str, Path]]) -> Iterator[list[tuple[str, Path]]]:
    part: list[tuple[str, Path]] = []
    for one in files:
        part.append(one)
        if len(part) == _SLICE:
            yield part
            part = []
    if part:
        yield part


def _look(one: tuple[str, Path]) -> Sniffed | str:
    try:
        return sniff(one[1])
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _reject_unwalkable(walk: Walk, gathered: _Gathered) -> None:
    for path in walk.dangling:
        gathered.reject(path, "its link leads nowhere")
    for path, why in walk.unreadable:
        gathered.reject(path, f"it cannot be read: {why}")


def _list(gathered: _Gathered) -> FileList:
    """Sorted by class, then by path: the same list wherever and however often it is made."""
    names = sorted(set(gathered.classes), key=os.fsencode)
    index = {name: number for number, name in enumerate(names)}
    order = sorted(
        range(len(gathered.paths)),
        key=lambda i: (index[gathered.classes[i]], gathered.paths[i]),
    )
    return FileList.of(
        gathered.root,
        paths=[gathered.paths[i] for i in order],
        stored_bytes=[gathered.sizes[i] for i in order],
        labels=[index[gathered.classes[i]] for i in order],
        classes=tuple(os.fsencode(name) for name in names),
    )


def _notes(walk: Walk, gathered: _Gathered) -> Iterator[str]:
    if walk.skipped_folders:
        names = ", ".join(sorted(walk.skipped_folders))
        yield f"left out {walk.skipped_folders.total()} hidden or service folders: {names}"
    if walk.skipped_files:
        yield f"left out {walk.skipped_files:,} hidden files and files that are named like no image"
    if walk.loops:
        yield f"entered once what {len(walk.loops)} further links lead to, {walk.loops[0]} first"
    if walk.folders_without_samples:
        empty = walk.folders_without_samples
        yield f"no class: {len(empty)} folders without a sample, {empty[0]} first"
    for what, count in sorted(gathered.misnamed.items()):
        yield f"kept {count:,} misnamed: {what}"


def _nothing(path: Path, *, seen: int, walk: Walk, gathered: _Gathered) -> str:
    if gathered.quarantined:
        first = gathered.quarantined[0]
        return (
            f"{path} holds no usable sample: {gathered.quarantined_count} of {seen} images were "
            f"rejected, {first.file} first: {first.why}. Check that the copy is complete."
        )
    return (
        f"{path} holds no image: {walk.skipped_files} other files were seen. "
        "Give --data the folder whose files, or whose class folders' files, are images."
    )
