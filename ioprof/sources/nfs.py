"""NFS: what processes asked of a mount and what its server delivered, from /proc/self/mountstats.

Versions 2 to 4.2 over TCP, UDP and RDMA; also what other vendors serve or ship as NFS.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.mount import parse_mountinfo
from ioprof.sources.nfspaths import PATH_FACTS, find_paths
from ioprof.sources.nfsstats import METADATA, find_header, parse_mount, parse_rpc
from ioprof.sources.procfile import ProcFile, why
from ioprof.sources.source import Fact, Found, Roots, Target

_LONG_BYTES = 262144
"""A text that is as long again is read at one tick fewer: the kernel makes all of it each time."""
_FILE = "/proc/self/mountstats, the block of the mount"
_CHECK = "sed -n '\\| on DIR with |,/^$/p' /proc/self/mountstats"
_SINCE = "Linux 2.6.17"
_OPERATION = "lines READ and READ_PLUS after per-op statistics"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="nfs.app",
        layer=Layer.APP,
        scope=Scope.MOUNT,
        counters=("requested_bytes_total", "write_bytes_total"),
        file=_FILE,
        field="line bytes: numbers 1 + 3 (read: buffered, direct) and 2 + 4 (written)",
        unit="bytes, 64 bits",
        since=_SINCE,
        caveat="page cache hits are in it, mapped files are not; a direct read counts all it asked "
        "for, also past the end of the file",
        check=f"{_CHECK} | grep -m1 bytes:",
    ),
    Fact(
        source="nfs.app",
        layer=Layer.APP,
        scope=Scope.MOUNT,
        counters=("age_seconds",),
        file=_FILE,
        field="line age",
        unit="seconds since it was mounted",
        since=_SINCE,
        caveat="when it falls, the mount was made again and all its counters began at 0",
        check=f"{_CHECK} | grep -m1 age:",
    ),
    Fact(
        source="nfs.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("read_bytes_total", "write_bytes_total"),
        file=_FILE,
        field="line bytes: numbers 5 (read from the server) and 6 (written to it)",
        unit="bytes of file data, 64 bits; headers are not in it",
        since=_SINCE,
        caveat="mapped files and read-ahead are in it; mounts of one export share it; the server's "
        "own cache is not told",
        check=f"{_CHECK} | grep -m1 bytes:",
    ),
    Fact(
        source="nfs.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("read_operations_total", "write_operations_total"),
        file=_FILE,
        field="lines READ, READ_PLUS and WRITE after per-op statistics: number 1",
        unit="operations",
        since="Linux 2.6.17; READ_PLUS: Linux 5.10",
        caveat="answered ones, failed or not; one is at most rsize long",
        check=f"{_CHECK} | grep -E ' (READ|READ_PLUS|WRITE):'",
    ),
    Fact(
        source="nfs.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=(
            "read_queue_seconds_total", "read_rtt_seconds_total", "read_time_seconds_total",
        ),
        file=_FILE,
        field=f"{_OPERATION}: numbers 6 (queue), 7 (round trip) and 8 (all)",
        unit="milliseconds, summed over the operations",
        since=_SINCE,
        caveat="queue and round trip are parts of all; old kernels let the queue's go below zero: "
        "then it is not given",
        check=f"{_CHECK} | grep -E ' (READ|READ_PLUS):'",
    ),
    Fact(
        source="nfs.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("read_errors_operations_total",),
        file=_FILE,
        field=f"{_OPERATION}: number 9",
        unit="operations",
        since="Linux 5.3",
        caveat="what the server answered with an error",
        check=f"{_CHECK} | grep -E ' (READ|READ_PLUS):'",
    ),
    Fact(
        source="nfs.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("retransmits_total",),
        file=_FILE,
        field="all lines after per-op statistics: number 2 less number 1",
        unit="requests",
        since=_SINCE,
        caveat="of all operations together, not of reads alone",
        check=f"{_CHECK} | awk '/^\\t *[A-Z_]+: /{{n += $3 - $2}} END {{print n}}'",
    ),
    Fact(
        source="nfs.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=(*METADATA, "metadata_operations_total", "metadata_time_seconds_total"),
        file=_FILE,
        field="lines OPEN, OPEN_NOATTR, GETATTR, LOOKUP*, ACCESS, READDIR*: numbers 1 and 8",
        unit="operations; milliseconds",
        since="Linux 2.6.17; version 3 of NFS has no OPEN",
        caveat="metadata is all of these; what the client's caches answer is not in it, nor CLOSE",
        check=f"{_CHECK} | grep -E ' (OPEN|GETATTR|LOOKUP|ACCESS|READD)'",
    ),
    Fact(
        source="nfs.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("age_seconds",),
        file=_FILE,
        field="line age",
        unit="seconds since it was mounted",
        since=_SINCE,
        caveat="when it falls, the mount was made again and all its counters began at 0",
        check=f"{_CHECK} | grep -m1 age:",
    ),
    Fact(
        source="nfs.xprt",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=(
            "send_requests_total", "receive_requests_total", "bad_xid_requests_total",
            "connect_operations_total", "connections",
        ),
        file=_FILE,
        field="lines xprt, summed: numbers 6, 7, 8 and 3; udp: 3, 4, 5 and none; how many lines",
        unit="requests; connects",
        since="Linux 2.6.17; one line for each connection (nconnect): Linux 5.3",
        caveat="mounts of one server share its connections: their requests are in it",
        check=f"{_CHECK} | grep xprt:",
    ),
    Fact(
        source="nfs.xprt",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("in_flight_requests_total", "backlog_requests_total"),
        file=_FILE,
        field="lines xprt, summed: numbers 9 and 10; udp: 6 and 7",
        unit="requests found unanswered, and waiting for a slot, added up at every send",
        since=_SINCE,
        caveat="divided by the sends of the same time it is the mean number at a send",
        check=f"{_CHECK} | grep xprt:",
    ),
    Fact(
        source="nfs.xprt",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("rdma_reply_bytes_total",),
        file=_FILE,
        field="lines xprt: rdma, summed: number 15",
        unit="bytes",
        since="Linux 2.6.24",
        caveat="what the server wrote into memory by RDMA: data of reads, and long replies; never "
        "add it to the mount's bytes",
        check=f"{_CHECK} | grep 'xprt:.rdma'",
    ),
    Fact(
        source="nfs.rpc",
        layer=Layer.WIRE,
        scope=Scope.HOST,
        counters=(
            "read_operations_total", "write_operations_total", "metadata_operations_total",
            "retransmits_total",
        ),
        file="/proc/net/rpc/nfs, read only where the mount has no statistics of its own",
        field="line proc2, proc3 or proc4 by place after the count; line rpc: number 2",
        unit="operations, 32 bits; it has no bytes",
        since="Linux 2.4; READ_PLUS of version 4.2 is not in it",
        caveat="all NFS mounts of one version in this network namespace; retransmits: of all",
        check="nfsstat -c",
    ),
    *PATH_FACTS,
)  # fmt: skip


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The sources of the target's mount; where it has no statistics, those of all NFS mounts."""
    mount = target.mount
    if mount is None or mount.filesystem not in ("nfs", "nfs4"):
        return []
    return [*_find_mount(mount, roots), *find_paths(mount, roots=roots)]


def _find_mount(mount: Mount, roots: Roots) -> list[Found]:
    path = roots.proc / "self" / "mountstats"
    try:
        file = ProcFile(path)
    except OSError as error:
        return _instead(mount, roots, reason=f"{path} cannot be read: {why(error)}")
    try:
        text = file.read_to_end()
    except OSError as error:
        file.close()
        return _instead(mount, roots, reason=f"{path} cannot be read: {why(error)}")
    header = find_header(text, path=mount.path, source=mount.source)
    stats = None if header is None else parse_mount(text, header=header)
    if header is None or stats is None or not stats.totals:
        file.close()
        return _instead(mount, roots, reason=f"{path} has no statistics of {mount.path}")
    ticks = 1 + len(text) // _LONG_BYTES
    return [NfsSource(file, mount, header=header, note=_sharing(mount, roots), every_ticks=ticks)]


def _instead(mount: Mount, roots: Roots, *, reason: str) -> list[Found]:
    """Why there is nothing of the mount itself, and the counts of all NFS mounts."""
    silent = Unavailable(
        source="nfs.wire",
        reason=reason,
        remedy="run ioprof in the mount namespace of the training, with /proc mounted",
    )
    path = roots.proc / "net" / "rpc" / "nfs"
    try:
        return [silent, RpcSource(ProcFile(path), version=_version(mount))]
    except OSError as error:
        reason = f"{path} cannot be read: {why(error)}"
        return [silent, Unavailable(source="nfs.rpc", reason=reason)]


def _version(mount: Mount) -> int:
    for option in mount.options:
        key, _, value = option.partition("=")
        if key in ("vers", "nfsvers") and value[:1] in ("2", "3", "4"):
            return int(value[0])
    return 4 if mount.filesystem == "nfs4" else 3


def _sharing(mount: Mount, roots: Roots) -> str | None:
    """Which other mounts show the same counters: those of the same filesystem, by its number."""
    try:
        text = (roots.proc / "self" / "mountinfo").read_bytes()
    except OSError:
        return None
    others = sorted(
        {
            other.path
            for other in parse_mountinfo(os.fsdecode(text))
            if other.major_minor == mount.major_minor and other.path != mount.path
        }
    )
    if not others:
        return None
    named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    return f"reads through {named} are in it too: mounts of one export share their counters"


class NfsSource:
    """Readings "nfs.app", "nfs.wire" and "nfs.xprt" of one mount."""

    name = "nfs"

    def __init__(
        self, file: ProcFile, mount: Mount, *, header: bytes, note: str | None, every_ticks: int = 1
    ) -> None:
        self.every_ticks = every_ticks
        self._file = file
        self._instance = mount.path
        self._header = header
        self._note = note

    def read(self) -> Iterable[Reading]:
        """One look; none while it is not mounted."""
        stats = parse_mount(self._file.read_to_end(), header=self._header)
        if stats is None:
            return
        age: dict[str, Number | None] = {"age_seconds": stats.age_s}
        yield Reading(
            source="nfs.app",
            instance=self._instance,
            layer=Layer.APP,
            scope=Scope.MOUNT,
            counters=stats.app(),
            gauges=age,
            note=self._note,
        )
        yield Reading(
            source="nfs.wire",
            instance=self._instance,
            layer=Layer.WIRE,
            scope=Scope.MOUNT,
            counters=stats.wire(),
            gauges=age,
            note=self._note,
        )
        yield Reading(
            source="nfs.xprt",
            instance=self._instance,
            layer=Layer.WIRE,
            scope=Scope.DEVICE,
            counters=stats.xprt(),
            gauges={"connections": len(stats.transports)},
        )

    def close(self) -> None:
        """Close /proc/self/mountstats."""
        self._file.close()


class RpcSource:
    """Reading "nfs.rpc" of one version of NFS, instance "v3" or so."""

    name = "nfs.rpc"
    every_ticks = 1

    def __init__(self, file: ProcFile, *, version: int) -> None:
        self._file = file
        self._version = version

    def read(self) -> Iterable[Reading]:
        """One look at all mounts of that version."""
        yield Reading(
            source="nfs.rpc",
            instance=f"v{self._version}",
            layer=Layer.WIRE,
            scope=Scope.HOST,
            counters=parse_rpc(self._file.read(), version=self._version),
        )

    def close(self) -> None:
        """Close /proc/net/rpc/nfs."""
        self._file.close()
