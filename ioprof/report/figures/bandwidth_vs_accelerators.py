"""Bandwidth against accelerators: what they need, what came, what storage can."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ioprof.record.summary import CellSummary, Demand, Summary
from ioprof.report.answer import (
    FROM_STORAGE,
    answer,
    emulation,
    no_storage_ceiling,
    storage_ceiling,
    trained_cells,
)
from ioprof.report.figure import Figure
from ioprof.report.figures.caption import caption, window_of
from ioprof.report.figures.scale import Scale, bandwidth_scale, heights, ticks_of_accelerators
from ioprof.report.figures.sheet import Message, Sheet, label, missing
from ioprof.report.figures.style import Theme, colour, loaders_of, mark
from ioprof.units import format_bandwidth, format_percent

_STEP_PT = 8.0
"""Points of neighbouring loaders stand this far apart, so that none hides another."""
_FAR = 3.0
"""A ceiling this many times above everything else is told, not drawn."""


def draw(summary: Summary, *, theme: Theme) -> Figure:
    """The figure; it says so where nothing was measured."""
    asked = _asked(summary)
    cells = [cell for cell in trained_cells(summary) if bandwidth(cell) is not None]
    ceiling = storage_ceiling(summary)
    tops = [bandwidth(cell) or 0.0 for cell in cells]
    tops += [one.required_read_bytes_per_s.high or _need(one) for one in asked]
    highest = max(tops, default=0.0)
    drawn = ceiling if ceiling is not None and ceiling <= _FAR * max(highest, 1.0) else None
    if drawn is not None:
        tops.append(drawn)
    scale = bandwidth_scale(max(tops, default=0.0))
    message = Message(
        name="bandwidth_vs_accelerators",
        title=answer(summary).rstrip("."),
        caption=_caption(summary, cells, ceiling=ceiling, drawn=drawn),
        alt=_alt(asked, cells),
    )
    legend = _legend(summary, asked, cells, drawn, theme)
    sheet = Sheet(message, theme=theme, plot_in=3.4, axis_in=0.62, legend=legend)
    axes = sheet.axes()[0]
    if not tops:
        missing(axes, "No bandwidth was measured in this run.", theme)
        return sheet.finish()
    _frame(axes, asked, cells, scale)
    heights(axes, [value / scale.unit for value in tops])
    if drawn is not None:
        axes.axhline(
            drawn / scale.unit, color=theme.ceiling, linewidth=1.6, linestyle=(0, (1, 1.5))
        )
    _draw_demand(axes, asked, scale, theme)
    _draw_cells(sheet, axes, summary, cells, scale)
    return sheet.finish()


def bandwidth(cell: CellSummary) -> float | None:
    """What is plotted of a cell: what storage delivered, or, warm, what training consumed."""
    if cell.role in FROM_STORAGE:
        return cell.storage_read_bytes_per_s
    return cell.consumed_bytes_per_s


def _asked(summary: Summary) -> list[Demand]:
    known = [one for one in summary.demand if one.required_read_bytes_per_s.value is not None]
    steady = [one for one in known if one.phase == "steady"] or known
    return sorted(steady, key=lambda one: (one.accelerators, one.topology))


def _need(one: Demand) -> float:
    return one.required_read_bytes_per_s.value or 0.0


def _count(cell: CellSummary) -> int:
    return cell.nodes * cell.accelerators_per_node


def _frame(axes: Axes, asked: list[Demand], cells: list[CellSummary], scale: Scale) -> None:
    places = [(one.accelerators, one.topology) for one in asked]
    ticks_of_accelerators(axes, places + [(_count(cell), cell.topology) for cell in cells])
    axes.set_xlabel("accelerators (topology: nodes x accelerators per node)")
    axes.set_ylabel(f"bandwidth ({scale.name})")


def _draw_demand(axes: Axes, asked: list[Demand], scale: Scale, theme: Theme) -> None:
    if not asked:
        return
    counts = [one.accelerators for one in asked]
    needs = [_need(one) / scale.unit for one in asked]
    axes.plot(counts, needs, color=theme.demand, linewidth=2.0, marker="_", markersize=14, mew=2)
    for one, need in zip(asked, needs, strict=True):
        axes.annotate(
            format_bandwidth(_need(one)),
            (one.accelerators, need),
            xytext=(-9, 5),
            textcoords="offset points",
            ha="right",
            fontsize=9,
            color=theme.ink,
        )
    ranges = [
        (one.accelerators, one.required_read_bytes_per_s.low, one.required_read_bytes_per_s.high)
        for one in asked
    ]
    whole = [(n, low, high) for n, low, high in ranges if low is not None and high is not None]
    if len(whole) > 1:
        axes.fill_between(
            [n for n, _, _ in whole],
            [low / scale.unit for _, low, _ in whole],
            [high / scale.unit for _, _, high in whole],
            color=theme.demand,
            alpha=0.14,
            linewidth=0,
        )


def _draw_cells(
    sheet: Sheet, axes: Axes, summary: Summary, cells: list[CellSummary], scale: Scale
) -> None:
    theme = sheet.theme
    loaders = loaders_of(summary)
    for cell in cells:
        value = bandwidth(cell)
        if value is None:
            continue
        offset = (loaders.index(cell.loader) - (len(loaders) - 1) / 2) * _STEP_PT
        below, above = _spread(cell, value)
        hue = colour(summary, cell.loader, theme)
        axes.errorbar(
            [_count(cell)],
            [value / scale.unit],
            yerr=[[below / scale.unit], [above / scale.unit]],
            fmt=mark(summary, cell.loader),
            color=hue,
            markerfacecolor=hue if cell.role in FROM_STORAGE else theme.paper,
            markeredgewidth=1.5,
            markersize=7,
            capsize=3,
            elinewidth=1.3,
            transform=sheet.beside(axes, offset),
            zorder=4,
        )


def _spread(cell: CellSummary, value: float) -> tuple[float, float]:
    """The 95 % interval of samples/s, carried over to bandwidth."""
    rate = cell.samples_per_s
    if rate is None or rate.low is None or rate.high is None or not rate.median:
        return 0.0, 0.0
    return (
        value * max(rate.median - rate.low, 0.0) / rate.median,
        value * max(rate.high - rate.median, 0.0) / rate.median,
    )


def _legend(
    summary: Summary,
    asked: list[Demand],
    cells: list[CellSummary],
    ceiling: float | None,
    theme: Theme,
) -> list[Any]:
    handles: list[Any] = []
    if asked:
        text = f"needed for AU {format_percent(asked[-1].at_au)}"
        handles.append(Line2D([], [], color=theme.demand, linewidth=2, label=text))
    if ceiling is not None:
        text = f"storage ceiling {format_bandwidth(ceiling)} (fio)"
        handles.append(
            Line2D([], [], color=theme.ceiling, linewidth=1.6, linestyle=(0, (1, 1.5)), label=text)
        )
    for loader in loaders_of(summary):
        if any(cell.loader == loader for cell in cells):
            hue = colour(summary, loader, theme)
            handles.append(_point(mark(summary, loader), hue, hue, label(loader)))
    if any(cell.role in FROM_STORAGE for cell in cells):
        roles = " / ".join(role for role in FROM_STORAGE if any(c.role == role for c in cells))
        text = f"filled: {roles}, read from storage"
        handles.append(_point("o", theme.muted, theme.muted, text))
    if any(cell.role == "warm" for cell in cells):
        text = "hollow: warm, consumed from the page cache"
        handles.append(_point("o", theme.muted, theme.paper, text))
    return handles


def _point(shape: str, edge: str, face: str, text: str) -> Line2D:
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=shape,
        markersize=7,
        color=edge,
        markerfacecolor=face,
        markeredgewidth=1.5,
        label=text,
    )


def _caption(
    summary: Summary, cells: list[CellSummary], *, ceiling: float | None, drawn: float | None
) -> str:
    why = no_storage_ceiling(summary)
    storage = None
    if why is not None:
        storage = f"No storage ceiling is claimed: {why}."
    elif ceiling is not None and drawn is None:
        storage = f"The storage ceiling, {format_bandwidth(ceiling)} (fio), lies above the plot."
    parts = [
        "Bars and band: 95 % interval." if cells else None,
        window_of(cells),
        storage,
    ]
    return caption(*parts, emulated=emulation(summary))


def _alt(asked: list[Demand], cells: list[CellSummary]) -> str:
    needs = [f"{one.topology} needs {format_bandwidth(_need(one))}" for one in asked]
    came = [
        f"{cell.topology} {cell.loader} {cell.role} reached {format_bandwidth(bandwidth(cell))}"
        for cell in cells
    ]
    said = "; ".join([*needs, *came]) or "nothing was measured"
    return f"Bandwidth against the number of accelerators: {said}."
