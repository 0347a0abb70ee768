"""What storage delivered when only storage was asked: one fio run, as read back."""

from __future__ import annotations

import msgspec


class StorageCeiling(msgspec.Struct, frozen=True, kw_only=True):
    """`fio/ceiling.json`: the storage ceiling of this mount at the loader's request shape.

    `read_bytes_per_s` is None with a `reason` when it could not be measured (fio absent, run too
    short, page cache speed). Latencies in seconds, weighted by operations.
    """

    read_bytes_per_s: float | None
    reads_per_s: float | None = None
    latency_mean_s: float | None = None
    latency_p50_s: float | None = None
    latency_p99_s: float | None = None
    block_bytes: int | None = None
    jobs: int | None = None
    """Readers at once."""
    depth: int | None = None
    """Requests that each of them has outstanding."""
    engine: str | None = None
    direct: bool | None = None
    runtime_s: float | None = None
    storage_read_bytes: int | None = None
    """What the devices under the mount delivered in the same window."""
    fio_read_bytes: int | None = None
    cpu_fraction: float | None = None
    """CPU time of fio ÷ (its run time × usable CPUs): near 1 means that the host was the limit."""
    fio_version: str | None = None
    command: tuple[str, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()
