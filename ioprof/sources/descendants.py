"""New processes, found without listing all of /proc at every look.

The last field of /proc/loadavg is the pid handed out last. What is new since a look lies between
its two values, usually nothing or a few. A full list now and then, of which only the unknown pids
are opened, makes up for kernels and containers where that field does not say it.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from typing import NamedTuple

from ioprof.sources.procfile import ProcFile, read_once
from ioprof.sources.source import Roots
from ioprof.sources.tree import Parenting

_RELIST_LOOKS = 20
_RELIST_LOOKS_BLIND = 3
_MAX_NEW_PIDS = 256
_SIGCHLD_BIT = 1 << 16  # signal 17 in the SigIgn mask


class Status(NamedTuple):
    """The few lines of /proc/PID/status that matter here."""

    group_pid: int
    """The process; another than the pid asked for when that one is a thread."""
    parent_pid: int
    zombie: bool
    ignores_sigchld: bool


def parse_status(text: bytes) -> Status | None:
    """None when a line that is needed is missing or torn."""
    group_pid, parent_pid = _line(text, b"\nTgid:"), _line(text, b"\nPPid:")
    state, ignored = _line(text, b"\nState:"), _line(text, b"\nSigIgn:")
    try:
        return Status(
            group_pid=int(group_pid or b""),
            parent_pid=int(parent_pid or b""),
            zombie=state is not None and state[:1] in (b"Z", b"X"),
            ignores_sigchld=ignored is not None and bool(int(ignored, 16) & _SIGCHLD_BIT),
        )
    except ValueError:
        return None


def _line(text: bytes, key: bytes) -> bytes | None:
    start = text.find(key)
    if start < 0:
        return None
    start += len(key)
    end = text.find(b"\n", start)
    return text[start : end if end >= 0 else None].strip() or None


class Descendants:
    """Finds what processes have started since the last look, and who their parents are."""

    def __init__(self, roots: Roots) -> None:
        self._proc = str(roots.proc)
        try:
            self._loadavg: ProcFile | None = ProcFile(roots.proc / "loadavg")
        except OSError:
            self._loadavg = None
        self._looks = 0
        self._marks = [0, 0]
        """The pid handed out last, at the last look and the one before."""
        self._settled: set[int] = set()
        """Pids of the last list that are known to be no descendants, or are followed already."""

    def new(self, known: Container[int]) -> list[tuple[int, int]]:
        """(pid, parent pid) of processes that may be new descendants, in order of their pids."""
        mark = self._last_pid()
        # A pid may be handed out a little before its process can be seen: look at it twice.
        since, self._marks = self._marks[0], [self._marks[1], mark or 0]
        blind = mark is None or mark < since or mark - since > _MAX_NEW_PIDS
        every = _RELIST_LOOKS_BLIND if mark is None else _RELIST_LOOKS
        relist = self._looks % every == 0 or (blind and mark is not None)
        self._looks += 1
        if relist:
            return self._unsettled(known)
        if blind:
            return []
        return self._parents(p for p in range(since + 1, (mark or 0) + 1) if p not in known)

    def _unsettled(self, known: Container[int]) -> list[tuple[int, int]]:
        try:
            # Hundreds of names at every list: as strings, not as paths.
            with os.scandir(self._proc) as entries:
                listed = {int(entry.name) for entry in entries if entry.name.isdigit()}
        except OSError:
            return []
        fresh = sorted(p for p in listed - self._settled if p not in known)
        found = self._parents(fresh)
        # One whose parent is gone already is about to be adopted: ask again at the next list.
        adopted_later = {
            pid for pid, parent in found if parent not in listed and parent not in known
        }
        self._settled = listed - adopted_later
        return found

    def _parents(self, pids: Iterable[int]) -> list[tuple[int, int]]:
        found = []
        for pid in pids:
            status = self.status(pid)
            if status is not None and status.group_pid == pid:
                found.append((pid, status.parent_pid))
        return found

    def _last_pid(self) -> int | None:
        if self._loadavg is None:
            return None
        try:
            text = self._loadavg.read()
        except OSError:
            return None
        last = text.split()[-1:]
        return int(last[0]) if last and last[0].isdigit() and last[0] != b"0" else None

    def status(self, pid: int) -> Status | None:
        """Who a process is and what state it is in; None when it is gone or hidden."""
        try:
            return parse_status(read_once(f"{self._proc}/{pid}/status"))
        except (OSError, ValueError):
            return None

    def parenting(self, pid: int) -> Parenting:
        """What a process does with a child that ends."""
        status = self.status(pid)
        if status is None or status.zombie:
            return Parenting.DEAD
        return Parenting.IGNORES if status.ignores_sigchld else Parenting.WAITS

    def close(self) -> None:
        """Close what was kept open."""
        if self._loadavg is not None:
            self._loadavg.close()
