"""Reads the list of samples that ioprof wrote, as arrays: no Python string per sample.

Arrays of the `.npz`: root, path_bytes, path_ends, stored_bytes, labels, class_bytes, class_ends.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np


class FileList:
    """The samples, in a fixed order."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as arrays:
            self._root = os.path.join(arrays["root"].tobytes(), b"")  # noqa: PTH118 - bytes
            self._path_bytes = arrays["path_bytes"]
            self._path_ends = arrays["path_ends"]
            self.stored_bytes = arrays["stored_bytes"]
            """Size of each sample on the filesystem."""
            self.labels = arrays["labels"]
            """Class of each sample."""
            self.classes = len(arrays["class_ends"])
            """How many classes there are."""

    def __len__(self) -> int:
        return len(self._path_ends)

    def path(self, index: int) -> bytes:
        """Absolute path of a sample, as the filesystem's bytes."""
        start = int(self._path_ends[index - 1]) if index else 0
        relative: bytes = self._path_bytes[start : int(self._path_ends[index])].tobytes()
        return self._root + relative

    def name(self, index: int) -> str:
        """The sample's path below the dataset's folder, fit to print."""
        path = self.path(index)[len(self._root) :]
        return path.decode("utf-8", "backslashreplace")
