"""The one list of samples that every loader takes, in memory and on disk.

On disk it is an uncompressed `.npz`, so a training process maps or reads it without parsing and
without a Python string per sample: the arrays are

    root         uint8   the dataset's folder, as the bytes of its path
    layout       uint8   "files"
    path_bytes   uint8   the samples' paths below root, one after another
    path_ends    int64   where each path ends in path_bytes
    stored_bytes int64   size of each sample on the filesystem
    labels       int32   class of each sample
    class_bytes  uint8   the classes' names, one after another
    class_ends   int64   where each name ends in class_bytes
"""

from __future__ import annotations

import itertools
import os
import zipfile
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ioprof.errors import NotARunError

_KEYS = (
    "root",
    "layout",
    "path_bytes",
    "path_ends",
    "stored_bytes",
    "labels",
    "class_bytes",
    "class_ends",
)


class FileList:
    """Samples in a fixed order: path, stored size, label. Names are bytes, whatever they hold."""

    def __init__(
        self,
        root: Path,
        *,
        path_bytes: npt.NDArray[np.uint8],
        path_ends: npt.NDArray[np.int64],
        stored_bytes: npt.NDArray[np.int64],
        labels: npt.NDArray[np.int32],
        classes: tuple[bytes, ...],
        layout: str = "files",
    ) -> None:
        self.root = root
        self.stored_bytes = stored_bytes
        self.labels = labels
        self.classes = classes
        self.layout = layout
        self._path_bytes = path_bytes
        self._path_ends = path_ends

    @classmethod
    def of(
        cls,
        root: Path,
        *,
        paths: Iterable[bytes],
        stored_bytes: Iterable[int],
        labels: Iterable[int],
        classes: tuple[bytes, ...],
    ) -> Self:
        """A list from the samples' paths relative to `root`, in this order."""
        blob, ends = _joined(paths)
        return cls(
            root,
            path_bytes=blob,
            path_ends=ends,
            stored_bytes=np.fromiter(stored_bytes, dtype=np.int64),
            labels=np.fromiter(labels, dtype=np.int32),
            classes=classes,
        )

    def __len__(self) -> int:
        return len(self._path_ends)

    def relative(self, index: int) -> bytes:
        """Path of a sample below the root."""
        start = int(self._path_ends[index - 1]) if index else 0
        return self._path_bytes[start : int(self._path_ends[index])].tobytes()

    def path(self, index: int) -> Path:
        """Absolute path of a sample."""
        return self.root / os.fsdecode(self.relative(index))

    def subset(self, indices: npt.NDArray[np.int64]) -> FileList:
        """The samples at `indices`, in that order; classes and labels keep their meaning."""
        blob, ends = _joined(self.relative(int(i)) for i in indices)
        return FileList(
            self.root,
            path_bytes=blob,
            path_ends=ends,
            stored_bytes=self.stored_bytes[indices],
            labels=self.labels[indices],
            classes=self.classes,
            layout=self.layout,
        )

    def write(self, path: Path) -> None:
        """Write the list whole, or leave the old file as it was."""
        class_bytes, class_ends = _joined(self.classes)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with temporary.open("wb") as file:
            np.savez(
                file,
                root=_bytes(os.fsencode(self.root)),
                layout=_bytes(self.layout.encode()),
                path_bytes=self._path_bytes,
                path_ends=self._path_ends,
                stored_bytes=self.stored_bytes,
                labels=self.labels,
                class_bytes=class_bytes,
                class_ends=class_ends,
            )
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a list; NotARunError when the file is not one."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                found = {key: arrays[key] for key in _KEYS}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise _not_a_list(path, str(error)) from None
        if not _agree(found):
            raise _not_a_list(path, "its arrays do not agree in length")
        ends = [0, *(int(end) for end in found["class_ends"])]
        names = found["class_bytes"].tobytes()
        return cls(
            Path(os.fsdecode(found["root"].tobytes())),
            path_bytes=found["path_bytes"],
            path_ends=found["path_ends"],
            stored_bytes=found["stored_bytes"],
            labels=found["labels"],
            classes=tuple(names[a:b] for a, b in itertools.pairwise(ends)),
            layout=found["layout"].tobytes().decode(),
        )


def list_of(root: Path, names: Iterable[str]) -> FileList:
    """A list of the named files below `root`: one class, sizes by stat, whatever the files are."""
    paths = [os.fsencode(name) for name in names]
    return FileList.of(
        root,
        paths=paths,
        stored_bytes=[(root / os.fsdecode(path)).stat().st_size for path in paths],
        labels=[0] * len(paths),
        classes=(b".",),
    )


def _agree(arrays: dict[str, npt.NDArray[Any]]) -> bool:
    """Whether the arrays are of one list: as long as each other, and their ends in order."""
    samples = len(arrays["path_ends"])
    return samples == len(arrays["stored_bytes"]) == len(arrays["labels"]) and all(
        np.all(np.diff(arrays[f"{what}_ends"], prepend=0, append=len(arrays[f"{what}_bytes"])) >= 0)
        for what in ("path", "class")
    )


def _not_a_list(path: Path, why: str) -> NotARunError:
    return NotARunError(
        f"{path} is not a list of samples that ioprof wrote: {why}. "
        "Make the run again, or name another run directory."
    )


def printable(name: bytes) -> str:
    """A name as text that any file can hold: bytes that are no UTF-8 become escapes."""
    return name.decode("utf-8", "backslashreplace")


def _joined(parts: Iterable[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    blob = bytearray()
    ends = array("q")
    for part in parts:
        blob += part
        ends.append(len(blob))
    return np.array(blob, dtype=np.uint8), np.array(ends, dtype=np.int64)


def _bytes(value: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(value, dtype=np.uint8)
