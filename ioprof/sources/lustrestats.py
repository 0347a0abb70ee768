"""The texts in which a Lustre client tells its counters, of 2.10 to 2.17.

A line is `NAME COUNT samples [UNIT]`, and for what has a size or a time `MIN MAX SUM` and, newer,
the sum of squares after it. What was never counted is not printed. `[usec]` and `[usecs]` are the
same, as are `[reqs]` and the `[regs]` of 2.10.
"""

from __future__ import annotations

import re

import msgspec

from ioprof.record.reading import Number
from ioprof.record.sizes import bucket, names
from ioprof.sources.numeral import real, total, whole

_US = 1e-6
_MIB = 1 << 20
_BYTES, _USEC = (b"[bytes]",), (b"[usec]", b"[usecs]")
_PAGES_PER_RPC = re.compile(rb"([0-9]{1,10}):\s+([0-9]{1,20})\s+[0-9]+\s+[0-9]+\s*\|")
_METADATA = (b"open", b"getattr", b"readdir")
CACHE_GAUGES = ("cache_used_bytes", "cache_limit_bytes")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line: how many, and the sum of their sizes or times; None where torn or not printed."""

    count: int | None
    unit: bytes
    total: int | None


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """One file of statistics."""

    rows: dict[bytes, Row]
    age_s: Number | None
    """Since they were last cleared or the mount was made; None before 2.15."""
    complete: bool
    """Whether it is such a file at all: then a row that is missing was never counted."""

    def count(self, name: bytes) -> int | None:
        """How many; 0 for a row that every version has and this text does not."""
        row = self.rows.get(name)
        if row is None:
            return 0 if self.complete else None
        return row.count

    def sum_bytes(self, name: bytes) -> int | None:
        """Sum of sizes; 0 for a row that every version has and this text does not."""
        row = self.rows.get(name)
        if row is None:
            return 0 if self.complete else None
        return row.total if row.unit in _BYTES else None

    def sum_seconds(self, name: bytes) -> float | None:
        """Sum of times; None where this version counts the operation and does not time it."""
        row = self.rows.get(name)
        if row is None:
            # Only a version that times something can be said to have timed nothing of this.
            timed = any(other.unit in _USEC for other in self.rows.values())
            return 0.0 if self.complete and timed else None
        return row.total * _US if row.unit in _USEC and row.total is not None else None


def parse_stats(text: bytes) -> Stats:
    """A file `stats` or `read_ahead_stats`; lines that are neither rows nor times are left out."""
    rows: dict[bytes, Row] = {}
    times: dict[bytes, Number | None] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 4 and words[2] == b"samples":
            row = Row(
                count=whole(words[1]),
                unit=words[3],
                total=whole(words[6]) if len(words) >= 7 else None,
            )
            rows.setdefault(words[0], row)
        elif len(words) in (2, 3) and words[0].rstrip(b":").endswith(b"_time"):
            times.setdefault(words[0].rstrip(b":"), real(words[1]))
    return Stats(rows=rows, age_s=_age_s(times), complete=b"snapshot_time" in times)


def _age_s(times: dict[bytes, Number | None]) -> Number | None:
    elapsed = times.get(b"elapsed_time")
    if elapsed is not None:
        return elapsed
    now, start = times.get(b"snapshot_time"), times.get(b"start_time")
    return now - start if now is not None and start is not None and now >= start else None


def app_counters(stats: Stats) -> dict[str, Number | None]:
    """What processes asked of a mount, from its `llite` statistics."""
    faults = stats.rows.get(b"page_fault")
    return {
        "requested_bytes_total": stats.sum_bytes(b"read_bytes"),
        "read_calls_total": stats.count(b"read_bytes"),
        "read_time_seconds_total": stats.sum_seconds(b"read"),
        "write_bytes_total": stats.sum_bytes(b"write_bytes"),
        "write_calls_total": stats.count(b"write_bytes"),
        "page_fault_calls_total": None if faults is None else faults.count,
        "page_fault_time_seconds_total": None
        if faults is None
        else stats.sum_seconds(b"page_fault"),
    }


def metadata_counters(stats: Stats) -> dict[str, Number | None]:
    """Opens, attribute and directory reads of a mount, from its `llite` statistics."""
    counts = [stats.count(name) for name in _METADATA]
    seconds = [stats.sum_seconds(name) for name in _METADATA]
    return {
        "open_operations_total": counts[0],
        "getattr_operations_total": counts[1],
        "readdir_operations_total": counts[2],
        "metadata_operations_total": total(counts),
        "metadata_time_seconds_total": total(seconds),
    }


def fast_read_counters(stats: Stats) -> dict[str, Number | None] | None:
    """Reads that the client's pages served at once; None where this version does not tell them."""
    row = stats.rows.get(b"cached_read_bytes")
    if row is None:
        return None
    return {
        "cache_hit_bytes_total": stats.sum_bytes(b"cached_read_bytes"),
        "cache_hits_total": row.count,
    }


def wire_counters(stats: Stats) -> dict[str, Number | None]:
    """What came from and went to one OST, from its `osc` statistics."""
    return {
        "read_bytes_total": stats.sum_bytes(b"read_bytes"),
        "read_operations_total": stats.count(b"read_bytes"),
        "read_time_seconds_total": stats.sum_seconds(b"ost_read"),
        "write_bytes_total": stats.sum_bytes(b"write_bytes"),
        "write_operations_total": stats.count(b"write_bytes"),
    }


def readahead_counters(stats: Stats) -> dict[str, Number | None]:
    """Pages that reads found there or had to wait for, from `read_ahead_stats`."""
    ahead = stats.rows.get(b"readahead_pages")
    return {
        "page_hits_total": stats.count(b"hits"),
        "page_misses_total": stats.count(b"misses"),
        "readahead_pages_total": None if ahead is None else ahead.total,
    }


def parse_cache(text: bytes) -> dict[str, Number | None]:
    """Gauges of a mount's page cache, from `max_cached_mb`; old versions tell the limit alone."""
    values: dict[bytes, int | None] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(b":")
        if colon:
            values.setdefault(key.strip(), whole(value.strip()))
    found = [values.get(b"used_mb"), values.get(b"max_cached_mb")]
    sizes = [None if mib is None else mib * _MIB for mib in found]
    return dict(zip(CACHE_GAUGES, sizes, strict=True))


def parse_rpc_sizes(text: bytes, *, page_bytes: int) -> dict[str, Number | None]:
    """Read requests to one OST by size, from the first table of `rpc_stats`.

    A row holds requests of at most so many pages, and of more than the row before. ValueError when
    there is no such table.
    """
    counts: dict[str, Number | None] = dict.fromkeys(names(), 0)
    inside = seen = False
    for line in text.splitlines():
        if line.startswith(b"pages per rpc"):
            inside = seen = True
        elif inside and (row := _PAGES_PER_RPC.match(line)):
            name, count = bucket(int(row[1]) * page_bytes), whole(row[2])
            before = counts[name]
            counts[name] = None if count is None or before is None else before + count
        else:
            inside = False
    if not seen:
        raise ValueError("rpc_stats has no table of pages per rpc")
    return counts
