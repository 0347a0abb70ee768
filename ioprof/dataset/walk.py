"""Every file below a folder that may be a sample: links followed once, service folders left out.

Names are bytes throughout: a filesystem's names need not be text.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path

from ioprof.dataset.sniff import kind_of_name

SERVICE_FOLDERS = {
    b"@eaDir", b"lost+found", b"__MACOSX", b"$RECYCLE.BIN", b"System Volume Information",
}  # fmt: skip
"""Folders that storage systems and desktops put beside the data; hidden ones are left out too."""
FLAT = b"."
"""Class of the files that lie in no class folder."""

Reject = Callable[[bytes, str], None]


class Passed:
    """Files passed over for one reason: how many, and the first of them by name."""

    def __init__(self) -> None:
        self.count = 0
        self.first = b""

    def add(self, path: bytes) -> None:
        """Count one."""
        self.first = min(self.first, path) if self.count else path
        self.count += 1


def is_service(name: bytes) -> bool:
    """Whether a folder of this name holds no data of the user's."""
    return name.startswith(b".") or name in SERVICE_FOLDERS


class Walk:
    """One walk below `top`; afterwards its counters say what was passed over and why.

    `reject` is told of each path that a user would take for data and that leads to none.
    """

    def __init__(self, top: bytes, *, reject: Reject) -> None:
        self.top = top
        self.classes: list[bytes] = []
        """Name of each class in the order met; FLAT when files lie directly in the top."""
        self.service_folders: Counter[bytes] = Counter()
        self.hidden = Passed()
        self.foreign = Passed()
        """Files whose names stand for no image."""
        self.repeated = Passed()
        """Links to folders that are in the list already, or that lead back up."""
        self._reject = reject
        self._numbers: dict[bytes, int] = {}
        self._links: deque[tuple[bytes | None, bytes]] = deque()
        above = Path(os.fsdecode(top)).parents
        self._entered = {(status.st_dev, status.st_ino) for status in map(Path.stat, above)}

    def files(self) -> Iterator[tuple[int, bytes]]:
        """(number in `classes`, path) of each candidate, in no particular order.

        The class is the first folder below the top. Folders come before links, so that a link to
        a class does not take that class's files.
        """
        yield from self._below(None, self.top)
        while self._links:
            label, path = self._links.popleft()
            yield from self._below(label, path)

    def _below(self, label: bytes | None, folder: bytes) -> Iterator[tuple[int, bytes]]:
        waiting = [(label, folder)]
        while waiting:
            label, folder = waiting.pop()
            if not self._enter(folder):
                continue
            if label is not None:
                self._number(label)
            found: list[tuple[bytes, bytes]] = []
            links: list[tuple[bytes, bytes]] = []
            for entry in self._entries(folder):
                if not self._is_folder(entry):
                    if self._is_candidate(entry):
                        yield self._number(label or FLAT), entry.path
                elif is_service(entry.name):
                    self.service_folders[entry.name] += 1
                else:
                    kind = links if entry.is_symlink() else found
                    kind.append((label or entry.name, entry.path))
            waiting += sorted(found, reverse=True)
            self._links += sorted(links)

    def _entries(self, folder: bytes) -> Iterator[os.DirEntry[bytes]]:
        try:
            with os.scandir(folder) as found:
                yield from found
        except OSError as error:
            self._reject(folder, f"it cannot be read: {error.strerror}")

    def _number(self, label: bytes) -> int:
        if label not in self._numbers:
            self._numbers[label] = len(self.classes)
            self.classes.append(label)
        return self._numbers[label]

    def _enter(self, folder: bytes) -> bool:
        """Whether this folder is new: a link may lead back up, or two links to one place."""
        try:
            status = os.stat(folder)  # noqa: PTH116 - bytes
        except OSError as error:
            self._reject(folder, f"it cannot be read: {error.strerror}")
            return False
        key = (status.st_dev, status.st_ino)
        if key in self._entered:
            self.repeated.add(folder)
            return False
        self._entered.add(key)
        return True

    @staticmethod
    def _is_folder(entry: os.DirEntry[bytes]) -> bool:
        try:
            return entry.is_dir()
        except OSError:  # a link to itself, or one that may not be followed
            return False

    def _is_candidate(self, entry: os.DirEntry[bytes]) -> bool:
        """Whether to look into this file; what is none is counted or rejected here."""
        if entry.name.startswith(b"."):
            self.hidden.add(entry.path)
            return False
        try:
            is_file = entry.is_file()
        except OSError as error:
            self._reject(entry.path, f"its link cannot be followed: {error.strerror}")
            return False
        if not is_file and entry.is_symlink():
            self._reject(entry.path, "its link leads nowhere")
            return False
        if kind_of_name(entry.name) is None:
            self.foreign.add(entry.path)
            return False
        if not is_file:
            self._reject(entry.path, "it is no regular file")
        return is_file
