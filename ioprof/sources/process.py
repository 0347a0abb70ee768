"""What the recorded process tree asked for, and what the block layer fetched for it.

`/proc/PID/io` of the root and every descendant; files are kept open, and an open file names one
process for ever, so a reused pid cannot be mistaken. How the sum is made: `ioprof.sources.tree`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources.descendants import Descendants
from ioprof.sources.pidio import Counters, parse_io
from ioprof.sources.procfile import read_once, why
from ioprof.sources.source import Fact, Found, Roots, Target
from ioprof.sources.tree import Tree

_IO_BYTES = 512
_GONE = (errno.ENOENT, errno.ESRCH)
_READS_PER_TICK = 40
"""A process costs about 7 µs, so that 512 of them at every tick would take 4 % of a core."""

APP_NOTE = (
    "system calls alone: reads through mmap or io_uring are not in it; pipes, sockets and what the "
    "page cache served are"
)
CLIENT_NOTE = (
    "what the block layer moved for these processes: 0 on FUSE and network filesystems, "
    "which submit nothing to it"
)

_FILE = "/proc/PID/io of every process of the tree"
_SINCE = "Linux 2.6.20, with CONFIG_TASK_IO_ACCOUNTING"
FACTS: tuple[Fact, ...] = (
    Fact(
        source="process.io",
        layer=Layer.APP,
        scope=Scope.PROCESS,
        counters=("requested_bytes_total", "read_calls_total", "written_bytes_total"),
        file=_FILE,
        field="rchar, syscr, wchar",
        unit="bytes; syscr: calls",
        since=_SINCE,
        caveat="page cache hits, pipes and sockets are in it; mmap and io_uring are not; processes "
        "of other users are refused; a tree of 80 or more processes is read every 200 ms, one of "
        "512 every 1.2 s",
        check="grep -E '^(rchar|syscr|wchar)' /proc/PID/io",
    ),
    Fact(
        source="process.io",
        layer=Layer.APP,
        scope=Scope.PROCESS,
        counters=("processes", "unreadable_processes"),
        file=_FILE,
        field="how many descendants there are, and how many of the tree may not be read",
        unit="processes",
        since=_SINCE,
        caveat="the root is not among the processes; an unreadable one is missing in the sums",
        check="pgrep -c -P PID",
    ),
    Fact(
        source="process.block",
        layer=Layer.CLIENT,
        scope=Scope.PROCESS,
        counters=("read_bytes_total", "write_bytes_total", "cancelled_write_bytes_total"),
        file=_FILE,
        field="read_bytes, write_bytes, cancelled_write_bytes",
        unit="bytes",
        since=_SINCE,
        caveat="0 on FUSE, and on most network filesystems; page cache hits are not in it; reads "
        "by mmap and io_uring are",
        check="grep -E '^(read|write|cancelled_write)_bytes' /proc/PID/io",
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source of the target's process tree, or why its root cannot be read."""
    path = roots.proc / str(target.root_pid) / "io"
    try:
        parse_io(read_once(str(path)))
    except (OSError, ValueError) as error:
        reason = why(error) if isinstance(error, OSError) else str(error)
        return [
            Unavailable(
                source="process.io",
                reason=f"{path} cannot be read: {reason}",
                remedy="run ioprof as the user that runs the training, or as root",
            )
        ]
    return [ProcessSource(target, roots=roots)]


class ProcessSource:
    """Readings "process.io" (asked for) and "process.block" (fetched) from one pass."""

    name = "process"

    def __init__(self, target: Target, *, roots: Roots = Roots()) -> None:
        self._root_pid = target.root_pid
        self._excluded = target.excluded_pids
        self._proc = roots.proc
        self._descendants = Descendants(roots)
        self._tree = Tree(target.root_pid, parenting=self._descendants.parenting)
        self._files: dict[int, int] = {}

    @property
    def every_ticks(self) -> int:
        """All of a large tree at every few ticks, rather than some of it at every tick: all its
        parts are then of one moment, without which ended children would be counted twice.
        """
        return max(1, len(self._tree.members) // _READS_PER_TICK)

    def read(self) -> Iterable[Reading]:
        """Both readings; counters are since the first call and never fall."""
        for pid, parent_pid in self._descendants.new(self._tree.members):
            members = self._tree.members
            if pid not in members and pid not in self._excluded and parent_pid in members:
                self._tree.join(pid, parent_pid)
        unreadable = self._look()
        for orphan in self._tree.orphans():
            status = self._descendants.status(orphan.pid)
            if status is not None:
                self._tree.adopt(orphan, status.parent_pid)
        totals = self._tree.close_tick()
        processes = len(self._tree.members) - (self._root_pid in self._tree.members)
        return _readings(totals, processes=processes, unreadable=unreadable)

    def _look(self) -> int:
        """Read every process; how many are there and may not be read."""
        unreadable = 0
        for member in list(self._tree.members.values()):
            try:
                file = self._files.get(member.pid)
                if file is None:
                    file = self._open(member.pid)
                member.see(os.pread(file, _IO_BYTES, 0))
            except OSError as error:
                if error.errno in _GONE:
                    self._close(member.pid)
                    self._tree.lose(member)
                else:
                    member.see(None)
                    unreadable += 1
        return unreadable

    def _open(self, pid: int) -> int:
        path = self._proc / str(pid) / "io"
        file = self._files[pid] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return file

    def _close(self, pid: int) -> None:
        file = self._files.pop(pid, None)
        if file is not None:
            os.close(file)

    def close(self) -> None:
        """Close the files of all processes."""
        for pid in list(self._files):
            self._close(pid)
        self._descendants.close()


def _readings(totals: Counters, *, processes: int, unreadable: int) -> tuple[Reading, Reading]:
    rchar, wchar, syscr, _, read_bytes, write_bytes, cancelled = totals
    return (
        Reading(
            source="process.io",
            instance="tree",
            layer=Layer.APP,
            scope=Scope.PROCESS,
            counters={
                "requested_bytes_total": rchar,
                "read_calls_total": syscr,
                "written_bytes_total": wchar,
            },
            gauges={"processes": processes, "unreadable_processes": unreadable},
            note=APP_NOTE,
        ),
        Reading(
            source="process.block",
            instance="tree",
            layer=Layer.CLIENT,
            scope=Scope.PROCESS,
            counters={
                "read_bytes_total": read_bytes,
                "write_bytes_total": write_bytes,
                "cancelled_write_bytes_total": cancelled,
            },
            note=CLIENT_NOTE,
        ),
    )
