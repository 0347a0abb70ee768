"""Rates of one cell in its window, from the node's counters."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ioprof.analysis import gpus
from ioprof.analysis.accounting import UNSEEN, account
from ioprof.analysis.counters import CounterLog, Growth
from ioprof.analysis.observation import Observation
from ioprof.analysis.requests import metadata_operations, request_sizes
from ioprof.analysis.storage import StorageCounters, series_over
from ioprof.record.headline import Candidate
from ioprof.record.summary import Reconciliation, RequestSizes, Window

PEAK_WINDOWS = 10
"""So many one-second windows are needed before a 99th percentile is given."""
_RESTS_ON = (
    ("requested_bytes_per_s", "requested_bytes"),
    ("storage_read_bytes_per_s", "storage_read_bytes"),
    ("storage_read_source", "storage_read_bytes"),
    ("reads_per_s", "storage_reads"),
    ("read_request_bytes", "storage_read_bytes"),
    ("read_request_bytes", "storage_reads"),
    ("read_latency_s", "storage_read_time_s"),
    ("read_latency_s", "storage_reads"),
)
"""A rate, and the count of a span that it cannot be made without."""


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Per second of stepping time. What is None has its reason, by the name it has in a summary."""

    consumed_bytes_per_s: float | None = None
    requested_bytes_per_s: float | None = None
    storage_read_bytes_per_s: float | None = None
    storage_read_source: str | None = None
    peak_storage_read_bytes_per_s: float | None = None
    reads_per_s: float | None = None
    read_request_bytes: float | None = None
    read_request_sizes: RequestSizes | None = None
    read_latency_s: float | None = None
    metadata_ops_per_s: float | None = None
    metadata_ops_source: str | None = None
    cpu_busy: float | None = None
    gpu_kernel_busy: float | None = None
    io_pressure: float | None = None
    reasons: dict[str, str] = {}


def rates(
    seen: Observation, *, storage: StorageCounters, reconciliation: Reconciliation | None
) -> Rates:
    """All rates of a cell. Empty, with the reason, for a cell without steps or without counters."""
    if seen.stepping is None or seen.node is None or seen.log is None:
        why = "the cell made no steps" if seen.stepping is None else "no counters were recorded"
        return Rates(reasons=dict.fromkeys(Rates.__struct_fields__[:-1], why))
    window = seen.stepping.window
    # Whether system calls saw all reads is told by the whole cell: a window cuts through readahead.
    covered = reconciliation is not None and reconciliation.requested_bytes is not None
    found = account(
        seen.node,
        start_s=window.start_s,
        end_s=window.end_s,
        storage=storage,
        consumed_bytes=0.0 if covered else None,
        whole=False,
        log=seen.log,
    )
    reasons: dict[str, str] = {}
    requested = found.requested_bytes
    if reconciliation is not None and reconciliation.requested_bytes is None:
        requested = None
        reasons["requested_bytes_per_s"] = reconciliation.reasons.get("requested_bytes", UNSEEN)
    consumed = seen.stepping.consumed_bytes
    if consumed is None:
        reasons["consumed_bytes_per_s"] = "the trainer did not say how large its samples are"
    for name, key in _RESTS_ON:
        if key in found.reasons:
            reasons.setdefault(name, found.reasons[key])
    no_reads = "no read reached storage in the window"
    if found.storage_reads == 0:
        reasons |= {"read_request_bytes": no_reads, "read_latency_s": no_reads}
    peak = _peak(seen.log, window, found.storage_counter)
    if peak is None:
        reasons["peak_storage_read_bytes_per_s"] = (
            f"the window holds fewer than {PEAK_WINDOWS} whole seconds between pauses, or no "
            "storage counter"
        )
    asked, asked_reasons = _asked(seen.log, window)
    host, host_reasons = _host(seen.log, window, ranks=len(seen.ranks))
    seconds = window.seconds
    return Rates(
        consumed_bytes_per_s=_per(consumed, seconds),
        requested_bytes_per_s=_per(requested, seconds),
        storage_read_bytes_per_s=_per(found.storage_read_bytes, seconds),
        storage_read_source=found.storage_source,
        peak_storage_read_bytes_per_s=peak,
        reads_per_s=_per(found.storage_reads, seconds),
        read_request_bytes=_per(found.storage_read_bytes, found.storage_reads),
        read_latency_s=_per(found.storage_read_time_s, found.storage_reads),
        reasons=reasons | asked_reasons | host_reasons,
        **asked,
        **host,
    )


def _asked(log: CounterLog, window: Window) -> tuple[dict[str, Any], dict[str, str]]:
    """What was asked for beside bytes, and why it is not known."""
    operations, source = metadata_operations(log, start_s=window.start_s, end_s=window.end_s)
    sizes = request_sizes(log, window)
    values = {
        "metadata_ops_per_s": _per(operations, window.seconds),
        "metadata_ops_source": source,
        "read_request_sizes": sizes,
    }
    no_metadata = "no counter of this mount tells its metadata operations"
    why = {
        "metadata_ops_per_s": no_metadata,
        "metadata_ops_source": no_metadata,
        "read_request_sizes": "no counter of this mount tells sizes one by one",
    }
    return values, {name: why[name] for name, value in values.items() if value is None}


def _per(value: float | None, by: float | None) -> float | None:
    return None if value is None or not by else value / by


def _peak(log: CounterLog, window: Window, counter: Candidate | None) -> float | None:
    edges = np.arange(window.start_s, window.end_s, 1.0)
    # With pauses between epochs a second is not a second of stepping.
    paused = window.end_s - window.start_s - window.seconds > 0.5
    if len(edges) <= PEAK_WINDOWS or paused:
        return None
    sums = series_over(log, counter, counter.counter, edges) if counter else None
    if sums is None or bool(np.any(np.isnan(sums))):
        return None
    return float(np.percentile(sums, 99))


def cpu_busy(log: CounterLog, window: Window) -> Growth:
    """Busy share of the usable CPUs in the window, or why it is not known."""
    busy = _grown(log, window, "cpu", "cpus", "busy_seconds_total")
    total = _grown(log, window, "cpu", "cpus", "total_seconds_total")
    return Growth(value=_per(busy.value, total.value), reason=total.reason or busy.reason)


def _grown(log: CounterLog, window: Window, source: str, instance: str, name: str) -> Growth:
    return log.growth(
        source, instance, name, start_s=window.start_s, end_s=window.end_s, whole=False
    )


def _host(log: CounterLog, window: Window, *, ranks: int) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    cpu = cpu_busy(log, window)
    stalled = _grown(log, window, "pressure.io", "host", "stall_some_seconds_total")
    values["cpu_busy"] = cpu.value
    values["io_pressure"] = _per(stalled.value, window.end_s - window.start_s)
    values["gpu_kernel_busy"] = _gpu_busy(log, window, ranks=ranks)
    named = {
        "cpu_busy": cpu.reason,
        "io_pressure": stalled.reason,
        "gpu_kernel_busy": gpus.why_unknown(log, ranks=ranks),
    }
    missing = {k: v or "not recorded" for k, v in named.items() if values[k] is None}
    return values, missing


def _gpu_busy(log: CounterLog, window: Window, *, ranks: int) -> float | None:
    """Mean over the used GPUs of the kernel-busy share in the window."""
    means = []
    for times, values in gpus.kernel_busy(log, ranks=ranks):
        inside = values[(times >= window.start_s) & (times <= window.end_s)]
        inside = inside[~np.isnan(inside)]
        if len(inside):
            means.append(float(inside.mean()))
    return sum(means) / len(means) if means else None
