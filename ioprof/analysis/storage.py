"""Which counters are believed to say what storage delivered, in a study or without one."""

from __future__ import annotations

import msgspec
import numpy as np

from ioprof.analysis.counters import CounterLog, Floats, Growth, total
from ioprof.record.headline import Access, Calibration, Candidate
from ioprof.record.reading import Layer, Scope
from ioprof.record.study import Study

_SEES_ABOVE = 0.5
OPERATIONS = "read_operations_total"
_TIME = "read_time_seconds_total"


class StorageCounters(msgspec.Struct, frozen=True, kw_only=True):
    """The counters to be asked, in this order; `why` says why there is none."""

    candidates: tuple[Candidate, ...]
    block_sees: bool = True
    """Whether the block layer's account of the processes holds what they read of this mount."""
    why: str | None = None


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """What storage delivered in a span, by the first counter that tells it; None if none does."""

    counter: Candidate | None
    bytes: Growth
    reads: Growth
    read_time_s: Growth


def storage_counters(study: Study) -> StorageCounters:
    """The calibrated counter of a study; of a run without calibration, the devices of its mount."""
    if study.calibration is None:
        return uncalibrated(study.top_devices)
    return calibrated(study.calibration, access="mmap" if study.config.mmap else "read")


def calibrated(found: Calibration, *, access: Access) -> StorageCounters:
    """The headline of a calibration alone: nothing else has proved that it sees these reads."""
    block = [c for c in found.candidates if c.source == "process.block"]
    return StorageCounters(
        candidates=(found.headline,) if found.headline else (),
        block_sees=any((c.ratios.get(access) or 0.0) > _SEES_ABOVE for c in block),
        why=None if found.headline else found.why,
    )


def uncalibrated(top_devices: tuple[str, ...]) -> StorageCounters:
    """By structure alone: the devices that the mount is on, else the block layer's account of the
    process tree, which stays at zero on FUSE and network filesystems."""
    devices = Candidate(
        source="block.diskstats",
        instances=top_devices,
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counter="read_bytes_total",
        ratios={},
    )
    tree = Candidate(
        source="process.block",
        instances=("tree",),
        layer=Layer.CLIENT,
        scope=Scope.PROCESS,
        counter="read_bytes_total",
        ratios={},
    )
    return StorageCounters(candidates=(devices, tree) if top_devices else (tree,))


def delivered(
    log: CounterLog, storage: StorageCounters, *, start_s: float, end_s: float, whole: bool
) -> Delivered:
    """What the first counter that tells it grew by from `start_s` to `end_s`."""
    reason = storage.why
    for candidate in storage.candidates:

        def over(name: str, of: Candidate = candidate) -> Growth:
            grown = [
                log.growth(of.source, one, name, start_s=start_s, end_s=end_s, whole=whole)
                for one in of.instances
            ]
            return total(grown)

        found = over(candidate.counter)
        guessed = candidate.scope is Scope.PROCESS and not candidate.ratios
        if found.value is None or (guessed and found.value == 0):
            # An account that rests, and was never proved to move, is no measured zero.
            reason = reason or (log.why_missing("block.diskstats") if guessed else found.reason)
            continue
        return Delivered(
            counter=candidate, bytes=found, reads=over(OPERATIONS), read_time_s=over(_TIME)
        )
    none = Growth(value=None, reason=reason or "no counter of storage is known")
    return Delivered(counter=None, bytes=none, reads=none, read_time_s=none)


def counter_seen(log: CounterLog, storage: StorageCounters) -> Candidate | None:
    """The counter that a picture over time is drawn from: the first one that was recorded."""
    for candidate in storage.candidates:
        parts = [s for s in log.instances(candidate.source) if s.instance in candidate.instances]
        if not parts or len(parts) < len(candidate.instances):
            continue
        moved = any(
            np.nanmax(np.diff(log.counter(p, candidate.counter)[1], prepend=0)) for p in parts
        )
        if candidate.ratios or candidate.scope is not Scope.PROCESS or moved:
            return candidate
    return None


def series_over(
    log: CounterLog, counter: Candidate | None, name: str, edges: Floats
) -> Floats | None:
    """What the parts of a counter grew by together between each two edges; NaN where one of them
    is not known or fell. None when a part was never seen, or does not count this."""
    if counter is None:
        return None
    sums = np.zeros(len(edges) - 1)
    parts = [s for s in log.instances(counter.source) if s.instance in counter.instances]
    if not parts or len(parts) < len(counter.instances):  # a sum of some is none of all
        return None
    for part in parts:
        if name not in part.counters:
            return None
        times, values = log.counter(part, name)
        sums += np.diff(np.interp(edges, times, values, left=np.nan, right=np.nan))
        for at in np.flatnonzero(np.diff(values) < 0):
            # From the look before a fall to the look after it nothing is known.
            sums[(edges[:-1] < times[at + 1]) & (edges[1:] > times[at])] = np.nan
    return sums
