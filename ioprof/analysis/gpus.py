"""The GPUs that a cell used, as far as that can be told."""

from __future__ import annotations

from collections.abc import Iterator

from ioprof.analysis.counters import CounterLog, Floats
from ioprof.record.reading import Series


def used(log: CounterLog, *, ranks: int) -> tuple[Series, ...]:
    """The GPUs of this node, when each was driven by a rank; none when some stood idle, since
    which ones is not recorded."""
    found = log.instances("nvml")
    return found if len(found) <= ranks else ()


def kernel_busy(log: CounterLog, *, ranks: int) -> Iterator[tuple[Floats, Floats]]:
    """Times and kernel-busy shares of each used GPU that tells it."""
    for series in used(log, ranks=ranks):
        if "gpu_kernel_busy" in series.gauges:
            yield log.gauge(series, "gpu_kernel_busy")


def why_unknown(log: CounterLog, *, ranks: int) -> str:
    """Why no used GPU tells how busy it was."""
    there = log.instances("nvml")
    if not there:
        return log.why_missing("nvml")
    if not used(log, ranks=ranks):
        return f"{len(there)} GPUs are visible and {ranks} were used: which ones is not recorded"
    return there[0].note or "this driver does not tell the utilisation of this GPU"
