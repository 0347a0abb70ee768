"""Writing a node's file, line by line."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import IO

import msgspec

from ioprof.record.header import NodeHeader
from ioprof.record.reading import Reading, SamplerEnd, Series, SeriesValues, Tick, Unavailable

_FLUSH_S = 1.0


class Recording:
    """Writes a node's file: declares each series when it is first seen, then its values."""

    def __init__(self, file: IO[bytes], *, header: NodeHeader) -> None:
        self._file = file
        self._encoder = msgspec.json.Encoder()
        self._series: dict[tuple[str, str], Series] = {}
        self._flushed_s = -math.inf
        self.write(header)

    def write(self, line: NodeHeader | Series | Tick | Unavailable | SamplerEnd) -> None:
        """Add one line."""
        self._file.write(self._encoder.encode(line) + b"\n")

    def tick(self, t_s: float, readings: Iterable[Reading]) -> None:
        """Add one tick. An instance that is not among the readings leaves a gap.

        Readings that were taken at times of their own come first, as ticks of their own.
        """
        together: list[SeriesValues] = []
        apart: dict[float, list[SeriesValues]] = {}
        for reading in readings:
            values = together if reading.t_s is None else apart.setdefault(reading.t_s, [])
            values.append(self._values(reading))
        for own_s in sorted(apart):
            self.write(Tick(t_s=own_s, values=tuple(apart[own_s])))
        self.write(Tick(t_s=t_s, values=tuple(together)))
        if t_s - self._flushed_s >= _FLUSH_S:
            self._file.flush()
            self._flushed_s = t_s

    def _values(self, reading: Reading) -> SeriesValues:
        series = self._series.get((reading.source, reading.instance))
        if series is None:
            series = self._declare(reading)
        return SeriesValues(
            series.id,
            tuple(map(reading.counters.get, series.counters)),
            tuple(map(reading.gauges.get, series.gauges)),
        )

    def _declare(self, reading: Reading) -> Series:
        series = Series(
            id=len(self._series),
            source=reading.source,
            instance=reading.instance,
            layer=reading.layer,
            scope=reading.scope,
            counters=tuple(reading.counters),
            gauges=tuple(reading.gauges),
            role=reading.role,
            note=reading.note,
        )
        self._series[reading.source, reading.instance] = series
        self.write(series)
        return series
