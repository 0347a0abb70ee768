"""Any FUSE mount: the requests that the kernel sends to its daemon, by tracepoint.

What the page cache serves never becomes a request. What the daemon makes of one, from its own cache
or from a server, is not seen here. Counted since the first look.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.record.sizes import names
from ioprof.sources.aside import Aside
from ioprof.sources.bpftrace import (
    ALL,
    PAUSE_S,
    START_S,
    Bpftrace,
    Print,
    Sums,
    Why,
    script,
    usable,
)
from ioprof.sources.procfile import read_once
from ioprof.sources.source import Fact, Found, Roots, Target

_READ, _WRITE = 15, 16
_OPERATIONS: dict[str, tuple[int, ...]] = {
    "read_operations_total": (_READ,),
    "write_operations_total": (_WRITE,),
    "lookup_operations_total": (1,),
    "getattr_operations_total": (3, 52),
    "open_operations_total": (14, 35),
    "readdir_operations_total": (27, 28, 44),
}
"""Opcodes of linux/fuse.h: LOOKUP 1, GETATTR 3, OPEN 14, OPENDIR 27, READDIR 28, CREATE 35,
READDIRPLUS 44, STATX 52."""
_METADATA = ("lookup_", "getattr_", "open_", "readdir_")
_NO_ANSWER = (2, 36, 42)
"""FORGET, INTERRUPT and BATCH_FORGET are never answered."""
_HEADER_BYTES = 16
_NS = 1e-9
_EVENT = "fuse/fuse_request_end"
_FILE = "tracepoints fuse:fuse_request_send and fuse:fuse_request_end, summed by bpftrace"
_SINCE = "Linux 6.12, root, bpftrace"
_COUNT = (
    "bpftrace -e 'tracepoint:fuse:fuse_request_send "
    "{ @[args->connection, args->opcode] = count(); }'"
)
_SUM = (
    "bpftrace -e 'tracepoint:fuse:fuse_request_end { @[args->connection] = sum(args->len - 16); }'"
)

FACTS: tuple[Fact, ...] = (
    Fact(
        source="fuse.requests",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("read_bytes_total", *names()),
        file=_FILE,
        field="len of the answers to READ (opcode 15), less their header of 16",
        unit="bytes; requests by the size of the answer",
        since=_SINCE,
        caveat="what the daemon gave, from whichever cache; reads by FUSE passthrough skip it",
        check=_SUM,
    ),
    Fact(
        source="fuse.requests",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("metadata_operations_total", *_OPERATIONS),
        file=_FILE,
        field="answered requests by opcode; metadata: lookup, getattr and statx, open and create, "
        "readdir and opendir",
        unit="requests",
        since=_SINCE,
        caveat="counted since the first look; what the kernel's own caches answer is not in it",
        check=_COUNT,
    ),
    Fact(
        source="fuse.requests",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("read_time_seconds_total", "metadata_time_seconds_total"),
        file=_FILE,
        field="time from a request's send to its end, summed",
        unit="nanoseconds",
        since=_SINCE,
        caveat="waiting for the daemon to take it is in it; waiting behind max_background is not",
        check="bpftrace -l 'tracepoint:fuse:*'",
    ),
    Fact(
        source="fuse.requests",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("unmatched_operations_total",),
        file=_FILE,
        field="answers whose sending was not seen",
        unit="requests",
        since=_SINCE,
        caveat="under way at the first look, or more than 4,096 at once: in no other counter",
        check="bpftrace -l 'tracepoint:fuse:*'",
    ),
    Fact(
        source="fuse.requests",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("lost_events",),
        file="bpftrace -f json",
        field="events of lost_events, added up",
        unit="messages",
        since="bpftrace 0.9",
        caveat="a look that was lost: the sums are kept in the kernel and lose nothing",
        check="bpftrace -f json -e 'interval:ms:100 { print(nsecs); }'",
    ),
    Fact(
        source="fuse.requests",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("in_flight",),
        file="/sys/fs/fuse/connections/N/waiting, N the number of the mount's device",
        field="the number",
        unit="requests",
        since="Linux 2.6.14, with fusectl mounted",
        caveat="requests that wait for the daemon at that instant",
        check="grep . /sys/fs/fuse/connections/*/waiting",
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source of the target's FUSE mount, or why requests cannot be counted here."""
    mount = target.mount
    if mount is None or not is_fuse(mount):
        return []
    found = usable(_EVENT, since="Linux 6.12 or later", roots=roots)
    if isinstance(found, Why):
        return [Unavailable(source="fuse.requests", reason=found.reason, remedy=found.remedy)]
    return [Aside(FuseSource(found, mount, roots=roots), period_s=PAUSE_S, first_s=START_S)]


def is_fuse(mount: Mount) -> bool:
    """Whether requests through the mount go to a FUSE daemon."""
    return mount.filesystem in ("fuse", "fuseblk") or mount.filesystem.startswith("fuse.")


def connection_of(mount: Mount) -> int:
    """The kernel's number of a FUSE mount's connection: its device's, the major one shifted."""
    major, _, minor = mount.major_minor.partition(":")
    return int(major) << 20 | int(minor)


def probes(connection: int) -> str:
    """The bpftrace probes that count one connection."""
    unanswered = " && ".join(f"args->opcode != {opcode}" for opcode in _NO_ANSWER)
    return f"""
tracepoint:fuse:fuse_request_send /args->connection == {connection} && {unanswered}/ {{
  @opcode[args->unique] = args->opcode;
  @sent[args->unique] = nsecs;
}}
tracepoint:fuse:fuse_request_end /args->connection == {connection}/ {{
  $opcode = @opcode[args->unique];
  if ($opcode == 0) {{
    @unmatched = count();
  }} else {{
    @requests[$opcode] = count();
    @time[$opcode] = sum(nsecs - @sent[args->unique]);
    if ($opcode == {_READ} && args->error == 0 && args->len >= {_HEADER_BYTES}) {{
      $bytes = (uint64)(args->len - {_HEADER_BYTES});
      @bytes = sum($bytes);
      $sectors = $bytes > 0 ? ($bytes - 1) >> 9 : 0;
      $bucket = 0;
      unroll(16) {{ if ($sectors > 0) {{ $bucket = $bucket + 1; $sectors = $sectors >> 1; }} }}
      @sizes[$bucket] = count();
    }}
    delete(@opcode[args->unique]);
    delete(@sent[args->unique]);
  }}
}}"""


def counters(made: Print) -> dict[str, Number | None]:
    """Our counters of one print."""
    requests, time = made.maps.get("@requests", {}), made.maps.get("@time", {})
    values: dict[str, Number | None] = {
        "read_bytes_total": made.maps.get("@bytes", {}).get(ALL, 0),
        **{name: _over(requests, opcodes) for name, opcodes in _OPERATIONS.items()},
    }
    metadata = tuple(
        opcode
        for name, opcodes in _OPERATIONS.items()
        if name.startswith(_METADATA)
        for opcode in opcodes
    )
    values["metadata_operations_total"] = _over(requests, metadata)
    values["unmatched_operations_total"] = made.maps.get("@unmatched", {}).get(ALL, 0)
    values["read_time_seconds_total"] = _over(time, (_READ,)) * _NS
    values["metadata_time_seconds_total"] = _over(time, metadata) * _NS
    buckets = made.maps.get("@sizes", {})
    values.update((name, buckets.get(str(number), 0)) for number, name in enumerate(names()))
    return values


def _over(sums: Sums, keys: Iterable[int]) -> int:
    return sum(sums.get(str(key), 0) for key in keys)


class FuseSource:
    """Reading "fuse.requests" of one mount."""

    name = "fuse.requests"
    every_ticks = 1

    def __init__(self, program: Path, mount: Mount, *, roots: Roots = Roots()) -> None:
        self._mount_path = mount.path
        connection = connection_of(mount)
        self._waiting = roots.sys / "fs/fuse/connections" / str(connection) / "waiting"
        self._bpftrace = Bpftrace(
            program,
            script(probes(connection), "requests", "time", "bytes", "sizes", "unmatched"),
        )

    def read(self) -> Iterable[Reading]:
        """The sums as of the next print."""
        made = self._bpftrace.look()
        yield Reading(
            source="fuse.requests",
            instance=self._mount_path,
            layer=Layer.CLIENT,
            scope=Scope.MOUNT,
            counters=counters(made),
            gauges={"in_flight": self._in_flight(), "lost_events": made.lost_events},
            t_s=made.t_s,
        )

    def _in_flight(self) -> int | None:
        try:
            text = read_once(str(self._waiting)).strip()
        except OSError:
            return None
        return int(text) if text.isdigit() else None

    def close(self) -> None:
        """End the tracing program."""
        self._bpftrace.close()
