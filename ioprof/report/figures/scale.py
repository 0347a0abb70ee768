"""Units and ticks of axes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

_BYTES = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_WIDE = 8


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The unit of an axis: its name, and how many base units it holds."""

    unit: float
    name: str


def bandwidth_scale(highest: float) -> Scale:
    """The unit in which `highest` bytes per second is a number of one to four digits."""
    return _fit(_BYTES, highest)


def seconds_scale(highest: float) -> Scale:
    """The unit in which `highest` seconds is a number of one to four digits."""
    return _fit(_SECONDS, highest)


def _fit(units: Sequence[tuple[float, str]], highest: float) -> Scale:
    for unit, name in units:
        if abs(highest) >= unit:
            return Scale(unit=unit, name=name)
    unit, name = units[0] if highest == 0 else units[-1]
    return Scale(unit=unit, name=name)


def ticks_of_accelerators(axes: Axes, counts: Sequence[int]) -> None:
    """Ticks at the numbers of accelerators measured; logarithmic when they span a factor of 8."""
    if not counts:
        axes.set_xticks([])
        return
    low, high = min(counts), max(counts)
    if high / low >= _WIDE:
        axes.set_xscale("log", base=2)
        axes.set_xlim(low / 1.4, high * 1.4)
    else:
        room = max((high - low) * 0.12, 0.5)
        axes.set_xlim(low - room, high + room)
    axes.xaxis.set_major_locator(FixedLocator(list(counts)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
