"""Where a Lustre client's parameters are read: in files of /proc, of debugfs, or through `lctl`.

Which tree holds a parameter depends on the version, and who may read it on the tree. A parameter is
named as `lctl` names it, for instance "llite.train-ffff9a3b10e0f800.stats".
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from ioprof.sources.procfile import ProcFile
from ioprof.sources.program import ProgramError, ask
from ioprof.sources.source import Roots

_GONE = (errno.ENOENT, errno.ENODEV, errno.EIO)
"""What a file says whose mount is gone, before or after it was opened."""


class Params(Protocol):
    """One way of reading parameters."""

    def names(self, kind: str) -> list[str]:
        """Instances of a kind, "llite" or "osc", in order."""

    def readable(self, param: str) -> bool:
        """Whether this user may read a parameter here; False when it is not here."""

    def read(self, params: Iterable[str]) -> dict[str, bytes]:
        """Texts by parameter; those that are gone with their mount are left out."""


class FileParams:
    """Parameters in files."""

    def __init__(self, *, roots: Roots = Roots()) -> None:
        self.trees = (
            roots.proc / "fs" / "lustre",
            roots.sys / "kernel" / "debug" / "lustre",
            roots.sys / "fs" / "lustre",
        )
        self._paths: dict[str, Path] = {}

    def names(self, kind: str) -> list[str]:
        """Instances in any of the trees that may be listed."""
        found: set[str] = set()
        for tree in self.trees:
            try:
                found.update(path.name for path in (tree / kind).iterdir())
            except OSError:
                continue
        return sorted(found)

    def readable(self, param: str) -> bool:
        """Whether a tree has it, and this user may read it there."""
        parts = _split(param)
        for tree in self.trees:
            path = tree.joinpath(*parts)
            if os.access(path, os.R_OK):
                self._paths[param] = path
                return True
        return False

    def read(self, params: Iterable[str]) -> dict[str, bytes]:
        """Opened anew each time: a node may have more OSTs than a process may have open files."""
        texts: dict[str, bytes] = {}
        for param in params:
            if param not in self._paths and not self.readable(param):
                continue
            try:
                texts[param] = _read(self._paths[param])
            except OSError as error:
                if error.errno not in _GONE:
                    raise
        return texts


def _read(path: Path) -> bytes:
    file = ProcFile(path)
    try:
        # To the end: the kernel hands out a few rows at a time, and a full page is no sign of more.
        return file.read_to_end()
    finally:
        file.close()


def _split(param: str) -> tuple[str, str, str]:
    """Kind, instance and file; a filesystem's name has no dot in it."""
    kind, _, rest = param.partition(".")
    instance, _, file = rest.rpartition(".")
    return kind, instance, file


class LctlParams:
    """Parameters that the command tells, all in one answer."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def names(self, kind: str) -> list[str]:
        """Instances that lctl lists, whether or not they may be read."""
        try:
            answer = ask([str(self._program), "get_param", "-N", f"{kind}.*.stats"])
        except ProgramError:
            return []
        lines = (line.strip() for line in answer.decode(errors="replace").splitlines())
        found = (_split(line) for line in lines)
        return sorted({name for of, name, file in found if of == kind and file == "stats"})

    def readable(self, param: str) -> bool:
        """Whether lctl shows it to this user."""
        try:
            return param in self.read([param])
        except ProgramError:
            return False

    def read(self, params: Iterable[str]) -> dict[str, bytes]:
        """ProgramError when lctl knows one of them no more."""
        wanted = list(params)
        answer = ask([str(self._program), "get_param", *wanted])
        return sections(answer, frozenset(param.encode() for param in wanted))


def sections(answer: bytes, wanted: frozenset[bytes]) -> dict[str, bytes]:
    """The texts in an answer of `lctl get_param`: each after a line `NAME=`."""
    texts: dict[str, list[bytes]] = {}
    current: list[bytes] | None = None
    for line in answer.splitlines(keepends=True):
        name, sign, rest = line.partition(b"=")
        if sign and name in wanted:
            current = texts.setdefault(name.decode(), [])
            line = rest.lstrip(b"\n")
        if current is not None:
            current.append(line)
    return {name: b"".join(lines) for name, lines in texts.items()}
