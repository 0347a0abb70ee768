"""What the kernel prints of one NFS mount (/proc/self/mountstats) and of all (/proc/net/rpc/nfs).

A mount is a line that names device, path and filesystem; only NFS adds indented lines to it. Their
number and width grow with the kernel, so each number is taken by its documented place from the left
and a place that is not there is None.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec

from ioprof.record.reading import Number
from ioprof.sources.mount import unescape

_HEADER = re.compile(
    rb"^(?:device (\S*)|no device) mounted on (\S+) with fstype (\S+)[^\n]*\n", re.MULTILINE
)
_NEXT = re.compile(rb"\n(?:no )?device ")
_LIMIT = 2**63
"""Counters of 64 bits never get there; a time that did is a negative one of an old kernel."""
_TIMES = {"read_queue_seconds_total": 5, "read_rtt_seconds_total": 6, "read_time_seconds_total": 7}
_OPS, _TRANSMISSIONS, _EXECUTE, _ERRORS = 0, 1, 7, 8
READS = (b"READ", b"READ_PLUS")
METADATA: dict[str, tuple[bytes, ...]] = {
    "open_operations_total": (b"OPEN", b"OPEN_NOATTR", b"OPEN_NOAT"),
    "getattr_operations_total": (b"GETATTR",),
    "lookup_operations_total": (b"LOOKUP", b"LOOKUP_ROOT", b"LOOKUPP"),
    "access_operations_total": (b"ACCESS",),
    "readdir_operations_total": (b"READDIR", b"READDIRPLUS"),
}
"""Operations of versions 2, 3 and 4; one that a version does not have is not in the text."""
_EVERY_METADATA = tuple(name for names in METADATA.values() for name in names)
_XPRT_PLACES: dict[bytes, tuple[int | None, int]] = {
    b"tcp": (2, 5),
    b"rdma": (2, 5),
    b"udp": (None, 2),
}
"""Where a transport tells its connects, and where five numbers in a row begin: sends, receives, bad
xids, requests in flight, requests in the backlog."""
_XPRT_ROW = (
    "send_requests_total", "receive_requests_total", "bad_xid_requests_total",
    "in_flight_requests_total", "backlog_requests_total",
)  # fmt: skip
_RDMA_REPLY = 14
_RPC_PLACES: dict[bytes, dict[str, tuple[int, ...]]] = {
    b"proc2": {
        "read_operations_total": (6,),
        "write_operations_total": (8,),
        "metadata_operations_total": (1, 4, 16),
    },
    b"proc3": {
        "read_operations_total": (6,),
        "write_operations_total": (7,),
        "metadata_operations_total": (1, 3, 4, 16, 17),
    },
    b"proc4": {
        "read_operations_total": (1,),
        "write_operations_total": (2,),
        "metadata_operations_total": (4, 6, 17, 18, 19, 20, 29),
    },
}
"""Places after the count, which is the first number of each line. Those of version 4 are the Linux
client's own list of procedures, whose later part moves between kernels: none of that is taken."""

Numbers = list[int | None]
Counters = dict[str, Number | None]


class MountStats(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of one NFS mount."""

    age_s: int | None
    """Since it was mounted."""
    totals: Numbers
    """normal read, normal write, direct read, direct write, server read, server write, pages."""
    transports: list[Counters]
    """Of each connection; nothing of one whose kind we do not know."""
    operations: dict[bytes, Numbers]
    """ops, transmissions, major timeouts, bytes sent, bytes received, ms in queue, ms of the round
    trip, ms in all, and from Linux 5.3 on errors."""

    def app(self) -> Counters:
        """What processes asked of the mount."""
        return {
            "requested_bytes_total": add([_at(self.totals, 0), _at(self.totals, 2)]),
            "write_bytes_total": add([_at(self.totals, 1), _at(self.totals, 3)]),
        }

    def wire(self) -> Counters:
        """What the server delivered; times in seconds, summed over the operations."""
        counters: Counters = {
            "read_bytes_total": _at(self.totals, 4),
            "write_bytes_total": _at(self.totals, 5),
            "read_operations_total": self._over(READS, _OPS),
            "write_operations_total": self._over((b"WRITE",), _OPS),
            "read_errors_operations_total": self._over(READS, _ERRORS),
            "retransmits_total": self._retransmits(),
            "metadata_operations_total": self._over(_EVERY_METADATA, _OPS),
            "metadata_time_seconds_total": _seconds(self._over(_EVERY_METADATA, _EXECUTE)),
        }
        for name, at in _TIMES.items():
            counters[name] = _seconds(self._over(READS, at))
        for name, operations in METADATA.items():
            counters[name] = self._over(operations, _OPS)
        return counters

    def xprt(self) -> Counters:
        """What went over all connections together."""
        names = ("connect_operations_total", *_XPRT_ROW, "rdma_reply_bytes_total")
        return {name: add([row.get(name) for row in self.transports]) for name in names}

    def _over(self, names: tuple[bytes, ...], at: int) -> int | None:
        """The sum over those operations that this version has; None when it has none of them."""
        return add([_at(self.operations[n], at) for n in names if n in self.operations])

    def _retransmits(self) -> int | None:
        rows = self.operations.values()
        sent = add([_at(row, _TRANSMISSIONS) for row in rows])
        done = add([_at(row, _OPS) for row in rows])
        # Old kernels count no transmission for an operation that failed before it was sent.
        return None if sent is None or done is None else max(0, sent - done)


def find_header(text: bytes, *, path: str, source: str) -> bytes | None:
    """The line that begins the statistics of the NFS mount at `path`; None when there is none.

    Of several mounts on one path the last is on top; one of the same source goes first.
    """
    found: bytes | None = None
    same_source = False
    for match in _HEADER.finditer(text):
        if match[3] not in (b"nfs", b"nfs4") or _plain(match[2]) != path:
            continue
        same = _plain(match[1] or b"") == source
        if same or not same_source:
            found, same_source = match[0], same
    return found


def parse_mount(text: bytes, *, header: bytes) -> MountStats | None:
    """The statistics under `header`, or under the last such line; None when it is not there."""
    start = text.rfind(header)
    if start < 0:
        return None
    start += len(header)
    end = _NEXT.search(text, start - 1)
    return parse_block(text[start : end.start() if end else len(text)])


def parse_block(text: bytes) -> MountStats:
    """Indented lines of one mount. Those that we do not know are passed over."""
    age: int | None = None
    totals: Numbers = []
    transports: list[Counters] = []
    operations: dict[bytes, Numbers] = {}
    in_operations = False
    for line in text.split(b"\n"):
        key, colon, rest = line.partition(b":")
        key = key.strip()
        if in_operations:
            if colon:
                operations.setdefault(key, _numbers(rest.split()))
        elif key == b"per-op statistics":
            in_operations = True
        elif key == b"bytes":
            totals = _numbers(rest.split())
        elif key == b"age":
            age = _at(_numbers(rest.split()), 0)
        elif key == b"xprt":
            transports.append(parse_xprt(rest))
    return MountStats(age_s=age, totals=totals, transports=transports, operations=operations)


def parse_rpc(text: bytes, *, version: int) -> Counters:
    """Operations of all NFS mounts of one version, from /proc/net/rpc/nfs.

    The first number of a `proc` line says how many follow; what stands behind them is not ours.
    """
    rows: dict[bytes, Numbers] = {}
    for line in text.split(b"\n"):
        key, *words = line.split() or [b""]
        rows.setdefault(key, _numbers(words))
    key = b"proc%d" % version
    count, *numbers = rows.get(key) or [None]
    known = numbers[:count] if count is not None else []
    counters: Counters = {
        name: add([_at(known, at) for at in places])
        for name, places in _RPC_PLACES.get(key, _RPC_PLACES[b"proc4"]).items()
    }
    counters["retransmits_total"] = _at(rows.get(b"rpc", []), 1)
    return counters


def parse_xprt(rest: bytes) -> Counters:
    """Counters of one connection, from what follows `xprt:`; nothing of a kind we do not know."""
    kind, *words = rest.split() or [b""]
    if kind not in _XPRT_PLACES:
        return {}
    numbers = _numbers(words)
    connects, begin = _XPRT_PLACES[kind]
    row: Counters = {name: _at(numbers, begin + i) for i, name in enumerate(_XPRT_ROW)}
    row["connect_operations_total"] = None if connects is None else _at(numbers, connects)
    row["rdma_reply_bytes_total"] = _at(numbers, _RDMA_REPLY) if kind == b"rdma" else None
    return row


def add(parts: Sequence[Number | None]) -> int | None:
    """The sum; None as soon as one part is missing, and when there is none at all."""
    total = 0
    for part in parts:
        if part is None:
            return None
        total += int(part)
    return total if parts else None


def _numbers(words: list[bytes]) -> Numbers:
    # Most operations of a version never happen.
    return [0 if word == b"0" else _number(word) for word in words]


def _number(word: bytes) -> int | None:
    if not word.isdigit() or len(word) > 19:
        return None
    value = int(word)
    return value if value < _LIMIT else None


def _at(numbers: Numbers, at: int) -> int | None:
    return numbers[at] if at < len(numbers) else None


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _plain(word: bytes) -> str:
    return unescape(os.fsdecode(word))
