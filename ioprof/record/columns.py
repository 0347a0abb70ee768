"""All looks at one series of a node, a row each, kept in as little memory as numbers need.

A day at ten looks a second is a million rows: as objects they would not fit.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator

from ioprof.record.reading import Number, Series, SeriesValues

_NAN = float("nan")


class Columns:
    """Rows in the order of reading. `counters` and `gauges` are flat: row after row, as wide as
    the series declares, NaN where the kernel keeps no value."""

    __slots__ = ("counters", "gauges", "series", "times")

    def __init__(self, series: Series) -> None:
        self.series = series
        self.times: array[float] = array("d")
        self.counters: array[float] = array("d")
        self.gauges: array[float] = array("d")

    def add(self, t_s: float, values: SeriesValues) -> None:
        """One more row; ValueError when it is not as wide as the series."""
        series = self.series
        if len(values.counters) != len(series.counters) or len(values.gauges) != len(series.gauges):
            raise ValueError(f"a row of {series.source} {series.instance} has not its width")
        self.times.append(t_s)
        _extend(self.counters, values.counters)
        _extend(self.gauges, values.gauges)

    def rows(self) -> Iterator[tuple[float, SeriesValues]]:
        """Time and values of each row; None again where the kernel keeps none."""
        wide, narrow = len(self.series.counters), len(self.series.gauges)
        for row, t_s in enumerate(self.times):
            yield (
                t_s,
                SeriesValues(
                    self.series.id,
                    _known(self.counters[row * wide : (row + 1) * wide]),
                    _known(self.gauges[row * narrow : (row + 1) * narrow]),
                ),
            )


def _extend(flat: array[float], values: tuple[Number | None, ...]) -> None:
    try:
        flat.fromlist(list(values))  # type: ignore[arg-type]
    except TypeError:
        # All or nothing: what was refused has added no value.
        flat.extend(_NAN if value is None else value for value in values)


def _known(values: array[float]) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(value) else value for value in values)
