"""Which processes of this node ask for the most, from `/proc/PID/io` of those that may be read."""

from __future__ import annotations

import os
from typing import NamedTuple

import msgspec

from ioprof.clock import Clock
from ioprof.sources.pidio import parse_io
from ioprof.sources.procfile import read_once, why
from ioprof.sources.source import Roots

SHOWN = 5
PERIOD_S = 2.0
_SHARE = 50
"""A scan that took long is not made again for so many times as long: 2 % of one CPU at most."""
_EARLY = 0.95
"""A look that comes a little early, on a grid of the same period, still makes its scan."""
_GONE = (FileNotFoundError, ProcessLookupError)


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """One process and what it asked for by `read` and its like, page cache hits included."""

    pid: int
    name: str
    """As the kernel keeps it, 15 bytes at most; it may hold anything."""
    requested_bytes_per_s: float


class Top(msgspec.Struct, frozen=True, kw_only=True):
    """The processes that asked for the most since the scan before. `readers` is None, with the
    reason, where that cannot be told."""

    readers: tuple[Reader, ...] | None
    unreadable: int = 0
    """Processes of other users, which are not among them."""
    reason: str | None = None


class _Birth(NamedTuple):
    name: str
    parent_pid: int
    start_s: float
    """On the clock of /proc/uptime."""


class Processes:
    """Scans the processes at most every `period_s`; between scans the last answer stands."""

    def __init__(
        self, *, clock: Clock, period_s: float = PERIOD_S, roots: Roots = Roots(), own_pid: int = 0
    ) -> None:
        self._clock = clock
        self._period_s = period_s
        self._proc = roots.proc
        self._own_pid = own_pid or os.getpid()
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._bytes: dict[int, int] = {}
        self._births: dict[int, _Birth] = {}
        self._scanned_s: float | None = None
        self._uptime_s = 0.0
        self._due_s = 0.0
        self._top = Top(readers=None, reason="the processes were not looked at yet")

    def top(self, *, fresh: bool = False) -> Top:
        """The answer of now, or of the last scan where the next is not due and not `fresh`."""
        now_s = self._clock.now_s()
        if fresh or self._scanned_s is None or now_s >= self._due_s:
            try:
                self._top = self._scan(now_s)
            except (OSError, ValueError, IndexError) as error:
                reason = why(error) if isinstance(error, OSError) else str(error)
                told = f"the processes of {self._proc} cannot be read: {reason}"
                self._top = Top(readers=None, reason=told)
            took_s = self._clock.now_s() - now_s
            # The scan after the first is due at once: there is nothing to show before it.
            period_s = self._period_s * _EARLY if self._top.readers is not None else 0.0
            self._due_s = now_s + max(period_s, took_s * _SHARE)
        return self._top

    def _scan(self, now_s: float) -> Top:
        uptime_s = float(read_once(str(self._proc / "uptime")).split()[0])
        found, unreadable = self._read()
        seconds = None if self._scanned_s is None else now_s - self._scanned_s
        grown = self._grown(found)
        self._take_back(grown, gone=self._bytes.keys() - found.keys())
        self._births = {pid: birth for pid, birth in self._births.items() if pid in found}
        self._bytes, self._scanned_s, self._uptime_s = found, now_s, uptime_s
        if not seconds:
            return Top(
                readers=None,
                unreadable=unreadable,
                reason="the processes were seen once: a rate needs two looks",
            )
        most = sorted(grown.items(), key=lambda item: -item[1])[:SHOWN]
        readers = tuple(
            Reader(pid=pid, name=self._births[pid].name, requested_bytes_per_s=value / seconds)
            for pid, value in most
            if value > 0
        )
        return Top(readers=readers, unreadable=unreadable)

    def _read(self) -> tuple[dict[int, int], int]:
        """Bytes asked for since birth by pid, and how many processes may not be read."""
        found: dict[int, int] = {}
        unreadable = 0
        for path in self._proc.iterdir():
            if not path.name.isdigit() or int(path.name) == self._own_pid:
                continue
            pid = int(path.name)
            try:
                found[pid] = parse_io(read_once(f"{path}/io"))[0]
                if pid not in self._births:
                    self._births[pid] = self._birth(pid)
            except (*_GONE, ValueError, IndexError):
                found.pop(pid, None)
            except OSError:
                unreadable += 1
        return found, unreadable

    def _birth(self, pid: int) -> _Birth:
        text = read_once(f"{self._proc}/{pid}/stat")
        # The name may hold blanks and parentheses: the last one ends it.
        head, _, tail = text.rpartition(b")")
        fields = tail.split()
        return _Birth(
            name=head.partition(b"(")[2].decode(errors="replace"),
            parent_pid=int(fields[1]),
            start_s=int(fields[19]) / self._ticks_per_s,
        )

    def _grown(self, found: dict[int, int]) -> dict[int, int]:
        """What each process asked for since the last scan; all it ever did where it is new."""
        grown: dict[int, int] = {}
        for pid, value in found.items():
            was = self._bytes.get(pid)
            if was is not None and value >= was:
                grown[pid] = value - was
            elif was is None and self._births[pid].start_s >= self._uptime_s:
                grown[pid] = value
            elif was is not None:
                # Another process has this pid now.
                self._births.pop(pid)
                grown[pid] = value
        return self._named(grown)

    def _named(self, grown: dict[int, int]) -> dict[int, int]:
        for pid in [pid for pid in grown if pid not in self._births]:
            try:
                self._births[pid] = self._birth(pid)
            except (OSError, ValueError, IndexError):
                del grown[pid]
        return grown

    def _take_back(self, grown: dict[int, int], *, gone: set[int]) -> None:
        """Take off a parent what it only took over from children that it waited for: the kernel
        adds a child's counters to its parent's, which would look like a burst."""
        for pid in sorted(gone, key=lambda pid: -self._bytes[pid]):
            birth = self._births.get(pid)
            parent_pid = None if birth is None else birth.parent_pid
            if parent_pid in grown and grown[parent_pid] >= self._bytes[pid]:
                grown[parent_pid] -= self._bytes[pid]
