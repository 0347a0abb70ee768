"""Every file below a folder that may be a sample: links followed once, service folders left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ioprof.dataset.sniff import IMAGE_SUFFIXES

SERVICE_FOLDERS = {"@eaDir", "lost+found", "__MACOSX", "$RECYCLE.BIN", "System Volume Information"}
"""Folders that storage systems and desktops put beside the data; hidden ones are left out too."""


class Walk:
    """One walk; afterwards its counters say what was passed over and why."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.skipped_folders: Counter[str] = Counter()
        """Name of each service or hidden folder that was left out."""
        self.skipped_files = 0
        """Hidden files and files whose names stand for no image."""
        self.dangling: list[Path] = []
        self.loops: list[Path] = []
        self.unreadable: list[tuple[Path, str]] = []
        self.folders_without_samples: list[str] = []
        self._seen: set[tuple[int, int]] = set()

    def files(self) -> Iterator[tuple[str, Path]]:
        """(class, path) of each candidate. The class is the first folder below the root, or "."."""
        yield from self._below(self.root, None)

    def _below(self, folder: Path, label: str | None) -> Iterator[tuple[str, Path]]:
        if not self._enter(folder):
            return
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            self.unreadable.append((folder, error.strerror or str(error)))
            return
        for entry in entries:
            path = folder / entry.name
            if self._is_folder(entry):
                yield from self._folder(path, label)
            elif self._is_candidate(entry):
                yield label or ".", path

    def _folder(self, path: Path, label: str | None) -> Iterator[tuple[str, Path]]:
        if path.name.startswith(".") or path.name in SERVICE_FOLDERS:
            self.skipped_folders[path.name] += 1
            return
        empty = True
        for one in self._below(path, label or path.name):
            empty = False
            yield one
        if label is None and empty:
            self.folders_without_samples.append(path.name)

    def _enter(self, folder: Path) -> bool:
        """Whether this folder is new: a link may lead back up, or two links to one place."""
        try:
            status = folder.stat()
        except OSError as error:
            self.unreadable.append((folder, error.strerror or str(error)))
            return False
        key = (status.st_dev, status.st_ino)
        if key in self._seen:
            self.loops.append(folder)
            return False
        self._seen.add(key)
        return True

    @staticmethod
    def _is_folder(entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError:  # a link to itself
            return False

    def _is_candidate(self, entry: os.DirEntry[str]) -> bool:
        name = entry.name
        if name.startswith(".") or os.path.splitext(name)[1].lower() not in IMAGE_SUFFIXES:  # noqa: PTH122 - a name, not a path
            self.skipped_files += 1
            return False
        try:
            if entry.is_file():
                return True
        except OSError:
            pass
        if entry.is_symlink():
            self.dangling.append(Path(entry.path))
        else:
            self.unreadable.append((Path(entry.path), "it is no regular file"))
        return False
