"""The daemon behind a FUSE mount: how much of a CPU it uses.

A daemon that serves with one thread is as fast as one CPU, whatever its storage could deliver.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources.fuse import connection_of, is_fuse
from ioprof.sources.procfile import ProcFile, read_once
from ioprof.sources.source import Fact, Found, Roots, Target

_SOURCE = "fuse.daemon"
_DEVICE = "/dev/fuse"
_KEY = b"fuse_connection:"

FACTS: tuple[Fact, ...] = (
    Fact(
        source=_SOURCE,
        layer=Layer.HOST,
        scope=Scope.MOUNT,
        counters=("busy_seconds_total", "threads"),
        file="/proc/PID/stat of each process that holds the mount's /dev/fuse",
        field="utime and stime (14 and 15), added up; num_threads (20)",
        unit="clock ticks; threads",
        since="Linux 6.16, which names the connection in /proc/PID/fdinfo/N",
        caveat="all that the daemon does, for other mounts of its own too; kernel threads that "
        "serve its sockets are not in it",
        check="grep -l 'fuse_connection:' /proc/[0-9]*/fdinfo/*; ps -o cputimes,nlwp -p PID",
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The daemon of the target's FUSE mount, or why it is not seen. Nothing for other mounts."""
    mount = target.mount
    if mount is None or not is_fuse(mount):
        return []
    pids = sorted(_holders(roots.proc, connection_of(mount)))
    files = [file for pid in pids if (file := _stat(roots.proc, pid)) is not None]
    if not files:
        return [
            Unavailable(
                source=_SOURCE,
                reason=f"no process that this user may look into serves {mount.path}: the daemon "
                "is another user's, in another process namespace, or the kernel does not name "
                "its connection",
                remedy="run as root, on Linux 6.16 or later",
            )
        ]
    return [DaemonSource(files, mount_path=mount.path, pids=pids)]


def _holders(proc: Path, connection: int) -> Iterator[int]:
    """Processes that have the device of this connection open."""
    for folder in proc.glob("[0-9]*"):
        if folder.name.isdigit() and connection in _connections(folder):
            yield int(folder.name)


def _connections(folder: Path) -> Iterator[int | None]:
    """The connections that a process serves; none when it is gone or another user's."""
    try:
        descriptors = list((folder / "fd").iterdir())
    except OSError:
        return
    for descriptor in descriptors:
        try:
            if str(descriptor.readlink()) == _DEVICE:
                yield parse_connection(read_once(f"{folder}/fdinfo/{descriptor.name}"))
        except OSError:
            continue


def _stat(proc: Path, pid: int) -> ProcFile | None:
    try:
        return ProcFile(proc / str(pid) / "stat")
    except OSError:
        return None


def parse_connection(text: bytes) -> int | None:
    """The connection that an fdinfo text of /dev/fuse names; None where there is none."""
    for line in text.splitlines():
        if line.startswith(_KEY):
            word = line.removeprefix(_KEY).strip()
            return int(word) if word.isdigit() else None
    return None


def parse_stat(text: bytes) -> tuple[int, int] | None:
    """CPU time in clock ticks, and threads; None for a torn line."""
    # The name, in brackets, may hold blanks and brackets.
    words = text.rpartition(b")")[2].split()[11:18]
    if len(words) < 7 or not (words[0].isdigit() and words[1].isdigit() and words[6].isdigit()):
        return None
    return int(words[0]) + int(words[1]), int(words[6])


class DaemonSource:
    """Reading "fuse.daemon" of one mount. Nothing any more once a process of it has ended."""

    name = _SOURCE
    every_ticks = 5

    def __init__(self, files: list[ProcFile], *, mount_path: str, pids: list[int]) -> None:
        self._files = files
        self._mount_path = mount_path
        self._note = f"process {', '.join(map(str, pids))}"
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")

    def read(self) -> Iterable[Reading]:
        """One look at the daemon."""
        seen = []
        for file in self._files:
            try:
                found = parse_stat(file.read())
            except ProcessLookupError:
                return
            if found is None:
                return
            seen.append(found)
        yield Reading(
            source=_SOURCE,
            instance=self._mount_path,
            layer=Layer.HOST,
            scope=Scope.MOUNT,
            counters={"busy_seconds_total": sum(ticks for ticks, _ in seen) / self._ticks_per_s},
            gauges={"threads": sum(threads for _, threads in seen)},
            note=self._note,
        )

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
