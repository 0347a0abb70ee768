"""What storage must deliver, by topology."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ioprof.record.summary import Demand, Summary
from ioprof.report.answer import (
    bare,
    count,
    emulation,
    largest_demand,
    no_storage_ceiling,
    storage_ceiling,
)
from ioprof.report.figure import Figure
from ioprof.report.figures.bars import name_rows, write_values
from ioprof.report.figures.caption import caption
from ioprof.report.figures.scale import Scale, bandwidth_scale
from ioprof.report.figures.sheet import Message, Sheet, missing
from ioprof.report.figures.style import Theme
from ioprof.units import format_bandwidth, format_percent, format_rate

_ROW_IN = 0.42
_FAR = 3.0
"""A ceiling this many times above every demand is told, not drawn."""


def draw(summary: Summary, *, theme: Theme) -> Figure:
    """The figure; a topology whose demand is refused keeps its row and says why."""
    rows = sorted(summary.demand, key=lambda one: (one.accelerators, one.topology, one.phase))
    tops = [value for one in rows for value in (_need(one), one.peak_read_bytes_per_s) if value]
    highest = max(tops, default=0.0)
    ceiling = storage_ceiling(summary)
    drawn = ceiling if ceiling is not None and ceiling <= _FAR * highest else None
    scale = bandwidth_scale(max(highest, drawn or 0.0))
    message = Message(
        name="demand_by_topology",
        title=_title(summary),
        caption=_caption(summary, rows, hidden=drawn is None),
        alt=_alt(rows),
    )
    handles = [Patch(color=_bar(theme), label="required, sustained")]
    lines = [Line2D([], [], color=theme.ink, lw=1.4, label="95 % interval")]
    if any(one.peak_read_bytes_per_s for one in rows):
        lines.append(_peak_key(theme))
    if drawn is not None:
        text = f"storage ceiling {format_bandwidth(drawn)} (fio)"
        lines.append(Line2D([], [], color=theme.ceiling, lw=1.6, ls=(0, (1, 1.5)), label=text))
    sheet = Sheet(
        message,
        theme=theme,
        plot_in=max(len(rows), 1) * _ROW_IN + 0.15,
        left_in=1.9,
        right_in=1.3,
        legend=[*handles, *lines] if tops else (),
    )
    axes = sheet.axes()[0]
    if not tops:
        missing(axes, "No topology has a demand that could be worked out.", theme)
        return sheet.finish()
    _draw_bars(axes, rows, scale, theme)
    if drawn is not None:
        axes.axvline(drawn / scale.unit, color=theme.ceiling, lw=1.6, ls=(0, (1, 1.5)), zorder=4)
    axes.set_xlim(0, max(highest, drawn or 0.0) / scale.unit * 1.04)
    axes.set_xlabel(f"read bandwidth ({scale.name})")
    name_rows(axes, [_name(one) for one in rows], theme)
    write_values(axes, [format_bandwidth(_need(one)) for one in rows], theme)
    return sheet.finish()


def _draw_bars(axes: Axes, rows: list[Demand], scale: Scale, theme: Theme) -> None:
    for row, one in enumerate(rows):
        need = one.required_read_bytes_per_s
        if need.value is None:
            continue
        axes.barh(row, need.value / scale.unit, height=0.56, color=_bar(theme), zorder=2)
        if need.low is not None and need.high is not None:
            ends = [need.low / scale.unit, need.high / scale.unit]
            axes.plot(ends, [row, row], color=theme.ink, lw=1.4, marker="|", ms=8, zorder=3)
        if one.peak_read_bytes_per_s is not None:
            peak = one.peak_read_bytes_per_s / scale.unit
            axes.plot([peak], [row], color=theme.ink, marker="D", ms=5, ls="none", zorder=3)


def _bar(theme: Theme) -> str:
    return theme.stages["compute"]


def _peak_key(theme: Theme) -> Line2D:
    text = "peak (99th percentile of 1 s)"
    return Line2D([], [], color=theme.ink, marker="D", markersize=5, ls="none", label=text)


def _need(one: Demand) -> float | None:
    return one.required_read_bytes_per_s.value


def _name(one: Demand) -> str:
    phase = "" if one.phase == "steady" else f", {one.phase}"
    return f"{one.topology} ({count(one.accelerators, 'accelerator')}{phase})"


def _title(summary: Summary) -> str:
    most = largest_demand(summary)
    value = None if most is None else _need(most)
    if most is None or value is None:
        return "What storage must deliver could not be worked out"
    each = format_bandwidth(value / most.accelerators)
    whole = format_bandwidth(value)
    au = format_percent(most.at_au)
    if most.accelerators == 1:
        return f"One accelerator at AU {au} asks {whole} of storage"
    return (
        f"{count(most.accelerators, 'accelerator')} at AU {au} ask {whole} of storage, {each} each"
    )


def _caption(summary: Summary, rows: list[Demand], *, hidden: bool) -> str:
    refused = {
        f"{one.topology}: {bare(why)}."
        for one in rows
        if _need(one) is None
        for name, why in one.reasons.items()
        if name == "required_read_bytes_per_s"
    }
    bases = ", ".join(dict.fromkeys(one.basis for one in rows))
    why, ceiling = no_storage_ceiling(summary), storage_ceiling(summary)
    storage = None
    if why is not None:
        storage = f"No storage ceiling is claimed: {why}."
    elif hidden and ceiling is not None:
        storage = f"The storage ceiling, {format_bandwidth(ceiling)} (fio), lies beyond the plot."
    reads = [
        f"{one.topology} {format_rate(one.required_reads_per_s)}"
        for one in rows
        if one.required_reads_per_s is not None
    ]
    return caption(
        f"Basis: {bases}." if bases else None,
        f"Reads per second: {', '.join(reads)}." if reads else None,
        *sorted(refused),
        storage,
        emulated=emulation(summary) if any(one.emulated for one in rows) or not rows else None,
    )


def _alt(rows: list[Demand]) -> str:
    said = "; ".join(f"{_name(one)} {format_bandwidth(_need(one))}" for one in rows)
    return f"Required read bandwidth by topology: {said or 'none known'}."
