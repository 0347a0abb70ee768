"""Cumulative counters of one node's record, and what they grew by between two moments."""

from __future__ import annotations

from array import array

import msgspec
import numpy as np
import numpy.typing as npt

from ioprof.record.reading import Series
from ioprof.record.store import NodeRecord

Floats = npt.NDArray[np.float64]

AGE = "age_seconds"
"""Gauge of the sources that know since when they count."""
_LATE_INTERVALS = 12
"""A series that is silent for so many intervals at an edge was not there."""
_LATE_LOOKS = 3


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """What a counter grew by; None with the reason where it cannot be told."""

    value: float | None
    reason: str | None = None


class CounterLog:
    """All series of a node, by source, instance and name, on the node's monotonic clock."""

    def __init__(self, node: NodeRecord) -> None:
        self._interval_s = node.header.interval_s
        seen = [columns for columns in node.columns if columns.times]
        self._series = {columns.series.id: columns.series for columns in seen}
        self._times = {c.series.id: np.frombuffer(c.times) for c in seen}
        self._counters = {
            c.series.id: _table(c.counters, len(c.times), len(c.series.counters)) for c in seen
        }
        self._gauges = {
            c.series.id: _table(c.gauges, len(c.times), len(c.series.gauges)) for c in seen
        }
        self._reasons = {one.source: one.reason for one in node.unavailable}

    def instances(self, source: str) -> tuple[Series, ...]:
        """Every instance of a source that was seen, in the order of their declaration."""
        return tuple(series for series in self._series.values() if series.source == source)

    def every(self) -> tuple[Series, ...]:
        """All series that were seen, in the order of their declaration."""
        return tuple(self._series.values())

    def why_missing(self, source: str) -> str:
        """Why nothing of a source was recorded."""
        exact = self._reasons.get(source)
        if exact is not None:
            return exact
        near = [reason for name, reason in self._reasons.items() if name.startswith(source)]
        return near[0] if near else f"{source} was not recorded"

    def counter(self, series: Series, name: str) -> tuple[Floats, Floats]:
        """Times and cumulative values; NaN where the kernel keeps none."""
        column = series.counters.index(name)
        return self._times[series.id], self._counters[series.id][:, column]

    def gauge(self, series: Series, name: str) -> tuple[Floats, Floats]:
        """Times and values of a gauge; NaN where there was none."""
        column = series.gauges.index(name)
        return self._times[series.id], self._gauges[series.id][:, column]

    def growth(
        self, source: str, instance: str, name: str, *, start_s: float, end_s: float, whole: bool
    ) -> Growth:
        """What a counter grew by from `start_s` to `end_s`.

        With `whole`, from the last look before to the first look after, so that nothing that
        happened in the span is missed; else interpolated between looks, for rates.
        """
        series = next((s for s in self.instances(source) if s.instance == instance), None)
        if series is None:
            return Growth(value=None, reason=self.why_missing(source))
        if name not in series.counters:
            return Growth(value=None, reason=f"{source} does not count {_words(name)}")
        times, values = self.counter(series, name)
        known = ~np.isnan(values)
        if not known.any():
            return Growth(value=None, reason=f"this kernel does not keep {name} for {instance}")
        times, values = times[known], values[known]
        # What is read in a thread of its own comes at its own pace.
        pace_s = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
        slack_s = max(_LATE_INTERVALS * self._interval_s, _LATE_LOOKS * pace_s)
        if times[0] > start_s + slack_s or times[-1] < end_s - slack_s:
            return Growth(value=None, reason=f"{instance} was not seen for the whole window")
        first = max(0, int(np.searchsorted(times, start_s, side="right")) - 1)
        last = min(len(times) - 1, int(np.searchsorted(times, end_s, side="left")))
        fell = np.any(np.diff(values[first : last + 1]) < 0)
        if fell or self._restarted(series, times[first], times[last]):
            return Growth(value=None, reason=f"{name} of {instance} was reset during the window")
        if whole:
            return Growth(value=float(values[last] - values[first]))
        at_start, at_end = np.interp([start_s, end_s], times, values)
        return Growth(value=float(at_end - at_start))

    def _restarted(self, series: Series, start_s: float, end_s: float) -> bool:
        """Whether the counters began anew: by their age, where the source tells it. A mount that
        was made again may have counted past its old value before anybody looked."""
        if AGE not in series.gauges:
            return False
        times, ages = self.gauge(series, AGE)
        inside = ages[(times >= start_s) & (times <= end_s)]
        return bool(np.any(np.diff(inside[~np.isnan(inside)]) < 0))


def _words(name: str) -> str:
    return name.removesuffix("_total").replace("_", " ")


def _table(flat: array[float], rows: int, width: int) -> Floats:
    """The flat numbers as a table, without a copy."""
    return np.frombuffer(flat).reshape(rows, width) if width else np.empty((rows, 0))


def total(growths: list[Growth]) -> Growth:
    """The sum; None as soon as one part is missing, for a sum of some is none of all."""
    for growth in growths:
        if growth.value is None:
            return growth
    return Growth(value=sum(growth.value or 0.0 for growth in growths))
