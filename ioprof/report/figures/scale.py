"""Units and ticks of axes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, NullLocator

_BYTES = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_WIDE = 8
_VANISHING = 40


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
    unit, name = units[-1]
    return Scale(unit=unit, name=name)


def ticks_of_accelerators(axes: Axes, topologies: Sequence[tuple[int, str]]) -> None:
    """Ticks at the numbers of accelerators measured, with their topologies; logarithmic when they
    span a factor of 8."""
    if not topologies:
        return
    names: dict[int, list[str]] = {}
    for count, topology in topologies:
        names.setdefault(count, []).append(topology)
    low, high = min(names), max(names)
    if high / low >= _WIDE:
        axes.set_xscale("log", base=2)
        axes.set_xlim(low / 1.8, high * 1.4)
    else:
        room = max((high - low) * 0.12, 0.5)
        axes.set_xlim(low - room, high + room)
    axes.xaxis.set_minor_locator(NullLocator())
    labels = [f"{count}\n{', '.join(dict.fromkeys(names[count]))}" for count in sorted(names)]
    axes.set_xticks(sorted(names), labels)


def heights(axes: Axes, values: Sequence[float]) -> None:
    """The vertical axis for `values`: from 0, or logarithmic where the smallest would vanish."""
    known = [value for value in values if value > 0]
    if not known:
        return
    low, high = min(known), max(known)
    if high / low <= _VANISHING:
        axes.set_ylim(0, high * 1.16)
        return
    axes.set_yscale("log")
    axes.set_ylim(low / 2, high * 2.2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def wide(values: Sequence[float]) -> bool:
    """Whether the smallest of `values` would vanish on an axis from 0."""
    known = [value for value in values if value > 0]
    return bool(known) and max(known) / min(known) > _VANISHING


def lengths_on_logarithm(axes: Axes, values: Sequence[float]) -> None:
    """A logarithmic horizontal axis around `values`; marks on it, not bars: it has no zero."""
    known = [value for value in values if value > 0]
    axes.set_xscale("log")
    axes.set_xlim(min(known) / 2, max(known) * 2)
    axes.xaxis.set_minor_formatter(NullFormatter())
