"""What was asked for and what storage delivered in a span, from the counters alone."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ioprof.analysis.counters import CounterLog, Growth, total
from ioprof.record.store import NodeRecord
from ioprof.units import format_bytes, format_percent

UNSEEN = "pages were mapped (mmap) or read through io_uring, and no system call shows such reads"
_UNSEEN_BELOW = 0.95
_MAPPED_SHARE = 1.05
_MAPPED_SLACK_BYTES = 1 << 20
_CACHE_SERVED_ABOVE = 0.5


class Accounting(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes and reads of a span. What is None has its reason under `reasons`, by field name."""

    requested_bytes: float | None
    """By system call, the whole process tree."""
    storage_read_bytes: float | None
    storage_reads: float | None
    storage_read_time_s: float | None
    """Summed over all reads."""
    storage_source: str | None
    """Which counter, at which layer; None when there is none."""
    storage_scope: str | None
    block_read_bytes: float | None
    """What the block layer fetched for the process tree: others' reads are not in it."""
    cache_served: float | None
    """1 − storage ÷ requested."""
    why: str
    reasons: dict[str, str] = {}


class _Storage(msgspec.Struct, frozen=True, kw_only=True):
    bytes: Growth
    reads: Growth
    read_time_s: Growth
    source: str | None
    scope: str | None


def account(
    node: NodeRecord,
    *,
    start_s: float,
    end_s: float,
    top_devices: tuple[str, ...],
    consumed_bytes: float | None = None,
    whole: bool = True,
    log: CounterLog | None = None,
) -> Accounting:
    """Account for the span; `whole` takes the looks around it, else it is interpolated.

    Requested bytes are None when system calls cannot have seen all reads: they cover less than
    `consumed_bytes` or, where that is not known, less than the block layer fetched.

    `top_devices` are the devices that the dataset's mount is on. Without any, the block layer's
    own account of the process tree is taken, and where that stays at zero (FUSE, network
    filesystems), nothing: what the processes asked for is not what storage delivered.
    """
    log = log or CounterLog(node)

    def growth(source: str, instance: str, name: str) -> Growth:
        return log.growth(source, instance, name, start_s=start_s, end_s=end_s, whole=whole)

    requested = growth("process.io", "tree", "requested_bytes_total")
    block = growth("process.block", "tree", "read_bytes_total")
    storage = _storage(growth, top_devices, block=block, log=log)
    reasons: dict[str, str] = {
        name: found.reason
        for name, found in (
            ("requested_bytes", requested),
            ("storage_read_bytes", storage.bytes),
            ("storage_reads", storage.reads),
            ("storage_read_time_s", storage.read_time_s),
            ("block_read_bytes", block),
        )
        if found.reason is not None
    }
    asked = requested.value
    if asked is not None and not _covers(asked, consumed=consumed_bytes, fetched=block.value):
        reasons["requested_bytes"] = f"system calls show only {format_bytes(asked)}: {UNSEEN}"
        asked = None
    served = _cache_served(asked, storage.bytes.value)
    if served is None:
        reasons["cache_served"] = reasons.get("requested_bytes") or reasons.get(
            "storage_read_bytes", "nothing was requested"
        )
    return Accounting(
        requested_bytes=asked,
        storage_read_bytes=storage.bytes.value,
        storage_reads=storage.reads.value,
        storage_read_time_s=storage.read_time_s.value,
        storage_source=storage.source,
        storage_scope=storage.scope,
        block_read_bytes=block.value,
        cache_served=served,
        why=_sentence(asked, storage.bytes.value, served),
        reasons=reasons,
    )


def _storage(
    growth: Callable[[str, str, str], Growth],
    top_devices: tuple[str, ...],
    *,
    block: Growth,
    log: CounterLog,
) -> _Storage:
    reason = log.why_missing("block.diskstats")
    if top_devices:

        def over(name: str) -> Growth:
            return total([growth("block.diskstats", device, name) for device in top_devices])

        delivered = over("read_bytes_total")
        if delivered.value is not None:
            return _Storage(
                bytes=delivered,
                reads=over("read_operations_total"),
                read_time_s=over("read_time_seconds_total"),
                source=f"block.diskstats {' + '.join(top_devices)} (wire, whole device)",
                scope="device",
            )
        reason = delivered.reason or reason
    if block.value is not None and block.value > 0:
        missing = Growth(value=None, reason="the process tree's block reads are bytes alone")
        return _Storage(
            bytes=block,
            reads=missing,
            read_time_s=missing,
            source="process.block (client, this process tree)",
            scope="process",
        )
    none = Growth(value=None, reason=reason)
    return _Storage(bytes=none, reads=none, read_time_s=none, source=None, scope=None)


def _covers(requested: float, *, consumed: float | None, fetched: float | None) -> bool:
    """Whether the bytes that system calls asked for can be all there were."""
    if consumed is not None:
        return requested >= _UNSEEN_BELOW * consumed
    # Beyond readahead, nothing is fetched that nobody asked for.
    return fetched is None or fetched <= _MAPPED_SHARE * requested + _MAPPED_SLACK_BYTES


def _cache_served(requested: float | None, delivered: float | None) -> float | None:
    if not requested or delivered is None:
        return None
    return 1.0 - delivered / requested


def _sentence(requested: float | None, delivered: float | None, served: float | None) -> str:
    if served is not None and served > _CACHE_SERVED_ABOVE:
        return (
            f"cache-served: storage delivered {format_bytes(delivered)} of the "
            f"{format_bytes(requested)} requested ({format_percent(served)} from the page cache)"
        )
    return f"requested {format_bytes(requested)}, storage delivered {format_bytes(delivered)}"
