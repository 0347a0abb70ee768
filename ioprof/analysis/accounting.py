"""What was asked for and what storage delivered in a span, from the counters alone."""

from __future__ import annotations

import msgspec

from ioprof.analysis.counters import CounterLog, Growth
from ioprof.analysis.storage import StorageCounters, delivered
from ioprof.record.headline import Candidate
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
    storage_counter: Candidate | None
    """Which counter, at which layer; None when there is none."""
    block_read_bytes: float | None
    """What the block layer fetched for the process tree: others' reads are not in it. None where
    it does not see reads of this mount."""
    cache_served: float | None
    """1 − storage ÷ requested."""
    why: str
    reasons: dict[str, str] = {}

    @property
    def storage_source(self) -> str | None:
        """The counter's name with its layer, as printed."""
        return self.storage_counter.name if self.storage_counter else None

    @property
    def storage_scope(self) -> str | None:
        """Whose reads the storage bytes include: "process", "mount", "device", "host"."""
        return self.storage_counter.scope.value if self.storage_counter else None


def account(
    node: NodeRecord,
    *,
    start_s: float,
    end_s: float,
    storage: StorageCounters,
    consumed_bytes: float | None = None,
    whole: bool = True,
    log: CounterLog | None = None,
) -> Accounting:
    """Account for the span; `whole` takes the looks around it, else it is interpolated.

    Requested bytes are None when system calls cannot have seen all reads: they cover less than
    `consumed_bytes` or, where that is not known, less than the block layer fetched.

    `storage` are the counters that may say what storage delivered. Where there is none, that is
    None: what the processes asked for is not what storage delivered.
    """
    log = log or CounterLog(node)
    requested, block = (
        log.growth(source, "tree", name, start_s=start_s, end_s=end_s, whole=whole)
        for source, name in (
            ("process.io", "requested_bytes_total"),
            ("process.block", "read_bytes_total"),
        )
    )
    if not storage.block_sees:
        block = Growth(value=None, reason="the block layer saw nothing of a known read here")
    found = delivered(log, storage, start_s=start_s, end_s=end_s, whole=whole)
    reasons: dict[str, str] = {
        name: grown.reason
        for name, grown in (
            ("requested_bytes", requested),
            ("storage_read_bytes", found.bytes),
            ("storage_reads", found.reads),
            ("storage_read_time_s", found.read_time_s),
            ("block_read_bytes", block),
        )
        if grown.reason is not None
    }
    asked = requested.value
    if asked is not None and not _covers(asked, consumed=consumed_bytes, fetched=block.value):
        reasons["requested_bytes"] = f"system calls show only {format_bytes(asked)}: {UNSEEN}"
        asked = None
    served = _cache_served(asked, found.bytes.value)
    if served is None:
        reasons["cache_served"] = reasons.get("requested_bytes") or reasons.get(
            "storage_read_bytes", "nothing was requested"
        )
    return Accounting(
        requested_bytes=asked,
        storage_read_bytes=found.bytes.value,
        storage_reads=found.reads.value,
        storage_read_time_s=found.read_time_s.value,
        storage_counter=found.counter,
        block_read_bytes=block.value,
        cache_served=served,
        why=_sentence(asked, found.bytes.value, served),
        reasons=reasons,
    )


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
