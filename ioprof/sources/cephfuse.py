"""CephFS through ceph-fuse: the daemon's counters, asked for at its admin socket.

A request is one JSON object and a zero byte; the answer is its length in four bytes, big end first,
and JSON. Three of the daemon's counters are never used: `client.rdops` leaves out most reads,
`objectcacher.cache_bytes_hit` says many times what was read, and `data_read` has cache hits in it.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ioprof.clock import MonotonicClock
from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.numeral import MOST, total
from ioprof.sources.procfile import why
from ioprof.sources.samefs import whole_at
from ioprof.sources.source import Fact, Found, Roots, Target

FILESYSTEMS = ("fuse.ceph-fuse", "fuse.ceph")
_DEADLINE_S = 2.0
_FIND_DEADLINE_S = 1.0
_MOST_BYTES = 64 << 20
_WORKER = re.compile(r"AsyncMessenger::Worker-[0-9]+")
_WIRE: dict[str, tuple[str, ...]] = {
    "read_operations_total": ("objecter", "op_r"),
    "write_operations_total": ("objecter", "op_w"),
    "metadata_operations_total": ("client", "lat", "avgcount"),
    "metadata_time_seconds_total": ("client", "lat", "sum"),
}
_CLIENT: dict[str, tuple[str, ...]] = {
    "read_operations_total": ("client", "rdlat", "avgcount"),
    "read_time_seconds_total": ("client", "rdlat", "sum"),
    "write_operations_total": ("client", "wrlat", "avgcount"),
    "write_time_seconds_total": ("client", "wrlat", "sum"),
}

_FILE = "/var/run/ceph/*.asok of the ceph-fuse process, command perf dump"
_CHECK = "ceph --admin-daemon /var/run/ceph/ceph-client.*.asok perf dump"
_SINCE = "Ceph 16 read; sockets since Ceph 0.48; root or the socket's owner"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="cephfuse.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("read_bytes_total",),
        file=_FILE,
        field="AsyncMessenger::Worker-*.msgr_recv_bytes, all workers added up",
        unit="bytes",
        since=_SINCE,
        caveat="all that the daemon received: answers of metadata servers and headers are in it",
        check=f"{_CHECK} | grep msgr_recv_bytes",
    ),
    Fact(
        source="cephfuse.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("read_operations_total", "write_operations_total"),
        file=_FILE,
        field="objecter.op_r and objecter.op_w",
        unit="requests to object servers",
        since=_SINCE,
        caveat="one request may be several of the process or a part of one",
        check=f"{_CHECK} | grep '\"op_[rw]\"'",
    ),
    Fact(
        source="cephfuse.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("metadata_operations_total", "metadata_time_seconds_total"),
        file=_FILE,
        field="client.lat: avgcount and sum",
        unit="requests to metadata servers; seconds",
        since=_SINCE,
        caveat="what capabilities let the daemon answer by itself is no request",
        check=f"{_CHECK} | grep -A 3 '\"lat\"'",
    ),
    Fact(
        source="cephfuse.client",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=tuple(_CLIENT),
        file=_FILE,
        field="client.rdlat and client.wrlat: avgcount and sum",
        unit="requests of the kernel to the daemon; seconds",
        since=_SINCE,
        caveat="what the page cache served is not in it; the daemon's own cache is",
        check=f"{_CHECK} | grep -A 3 '\"rdlat\"'",
    ),
)


class PerfDump(msgspec.Struct, frozen=True, kw_only=True):
    """The counters by our names; None for what this version does not keep."""

    wire: dict[str, Number | None]
    client: dict[str, Number | None]


def parse(text: bytes) -> PerfDump:
    """An answer to "perf dump"; ValueError when it is no JSON object."""
    answer = json.loads(text)
    if not isinstance(answer, dict):
        raise ValueError("the answer to perf dump is no object")
    received = total(
        _number(answer, (name, "msgr_recv_bytes")) for name in answer if _WORKER.fullmatch(name)
    )
    wire: dict[str, Number | None] = {"read_bytes_total": received}
    wire.update((name, _number(answer, path)) for name, path in _WIRE.items())
    return PerfDump(
        wire=wire, client={name: _number(answer, path) for name, path in _CLIENT.items()}
    )


def _number(answer: object, path: tuple[str, ...]) -> Number | None:
    for name in path:
        if not isinstance(answer, Mapping):
            return None
        answer = answer.get(name)
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        return None
    return answer if 0 <= answer <= MOST else None


def mount_point(text: bytes) -> str | None:
    """Where the daemon that answered "status" is mounted; None for one that is no ceph-fuse."""
    answer = json.loads(text)
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    path = metadata.get("mount_point") if isinstance(metadata, dict) else None
    return path if isinstance(path, str) else None


def ask_daemon(path: Path, prefix: str, *, deadline_s: float = _DEADLINE_S) -> bytes:
    """What a Ceph daemon answers at its admin socket; OSError, of which TimeoutError is one."""
    clock = MonotonicClock()
    end_s = clock.now_s() + deadline_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(deadline_s)
        connection.connect(str(path))
        connection.sendall(json.dumps({"prefix": prefix}).encode() + b"\0")

        def receive(count: int) -> bytes:
            parts: list[bytes] = []
            while count > 0:
                connection.settimeout(max(end_s - clock.now_s(), 0.001))
                part = connection.recv(min(count, 1 << 20))
                if not part:
                    raise ConnectionResetError(0, "the daemon hung up before its answer was whole")
                parts.append(part)
                count -= len(part)
            return b"".join(parts)

        size = int.from_bytes(receive(4), "big")
        if size > _MOST_BYTES:
            raise ConnectionResetError(0, f"the daemon announces an answer of {size} bytes")
        return receive(size)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source of the target's mount, or why no daemon answers for it; else nothing."""
    mount = target.mount
    if mount is None or mount.filesystem not in FILESYSTEMS:
        return []
    wanted = {mount.path, *whole_at(mount, roots=roots)}
    folder = roots.root / "var" / "run" / "ceph"
    sockets = sorted(folder.glob("*.asok"))
    seen: list[str] = []
    for path in sockets:
        try:
            point = mount_point(ask_daemon(path, "status", deadline_s=_FIND_DEADLINE_S))
        except (OSError, ValueError) as error:
            cause = why(error) if isinstance(error, OSError) else "no answer that is understood"
            seen.append(f"{path.name}: {cause}")
            continue
        if point in wanted:
            return [Aside(CephFuseSource(path, mount_path=mount.path))]
        if point is not None:
            seen.append(f"{path.name}: mounted at {point}")
    what = f"none of {len(sockets)} admin sockets" if sockets else "no admin socket"
    listed = f" ({'; '.join(seen)})" if seen else ""
    return [
        Unavailable(
            source="cephfuse.wire",
            reason=f"{what} in {folder} is that of {mount.path}{listed}",
            remedy="run ioprof as root where ceph-fuse runs, with `admin socket` in its ceph.conf",
        )
    ]


class CephFuseSource:
    """Readings "cephfuse.wire" and "cephfuse.client" of one daemon."""

    name = "cephfuse"
    every_ticks = 1

    def __init__(self, path: Path, *, mount_path: str) -> None:
        self._path = path
        self._mount_path = mount_path

    def read(self) -> Iterable[Reading]:
        """One look; none when the daemon is gone with its mount."""
        try:
            dump = parse(ask_daemon(self._path, "perf dump"))
        except (FileNotFoundError, ConnectionRefusedError):
            return
        yield Reading(
            source="cephfuse.wire",
            instance=self._mount_path,
            layer=Layer.WIRE,
            scope=Scope.MOUNT,
            counters=dump.wire,
        )
        yield Reading(
            source="cephfuse.client",
            instance=self._mount_path,
            layer=Layer.CLIENT,
            scope=Scope.MOUNT,
            counters=dump.client,
        )

    def close(self) -> None:
        """Nothing is kept open."""
