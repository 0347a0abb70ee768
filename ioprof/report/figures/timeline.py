"""One cell on one clock: read bandwidth, IOPS, accelerator busy, data wait."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ioprof.analysis.timeline import Timeline
from ioprof.record.summary import CellSummary, Summary
from ioprof.report.answer import cell_name, emulation, share
from ioprof.report.figure import Figure
from ioprof.report.figures.caption import caption, window_of
from ioprof.report.figures.scale import bandwidth_scale
from ioprof.report.figures.sheet import Message, Sheet, missing
from ioprof.report.figures.style import Theme, colour
from ioprof.units import format_bandwidth, format_seconds


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """One series with its axis; `absent` says why there is nothing when all of it is None."""

    values: list[float | None]
    label: str
    absent: str
    top: float | None = None
    """Fixed upper end of the axis; None lets the values decide."""
    envelope: tuple[list[float | None], list[float | None]] | None = None
    """Lowest and highest within each bin."""


def draw(summary: Summary, cell: CellSummary, line: Timeline, *, theme: Theme) -> Figure:
    """The figure of one cell; a panel without values says what is missing."""
    panels = _panels(cell, line)
    message = Message(
        name=f"timeline-{cell.id}",
        title=_title(cell, line),
        caption=_caption(summary, cell, line),
        alt=_alt(cell, line),
    )
    legend: list[Any] = [
        Patch(facecolor=theme.shade, edgecolor=theme.faint, label="measured window"),
        Patch(facecolor=theme.faint, label="pause between epochs"),
    ]
    if not _pauses(line):
        del legend[1]
    if len(line.epochs) > 1:
        legend.append(_epoch_key(theme))
    sheet = Sheet(message, theme=theme, plot_in=4.6, left_in=0.95, legend=legend)
    hue = colour(summary, cell.loader, theme)
    rows = sheet.axes(rows=len(panels))
    start = min([0.0, *line.t_s])
    end = max([line.window[1], *(epoch[1] for epoch in line.epochs), *line.t_s, start + 1e-3])
    for axes, panel in zip(rows, panels, strict=True):
        _draw_panel(axes, panel, line, hue, theme)
        axes.set_xlim(start, end)
    rows[-1].set_xlabel("seconds since the first epoch began (s)")
    return sheet.finish()


def _panels(cell: CellSummary, line: Timeline) -> list[Panel]:
    known = [value for value in line.read_bytes_per_s if value is not None]
    scale = bandwidth_scale(max(known, default=1e6))
    return [
        Panel(
            values=[None if v is None else v / scale.unit for v in line.read_bytes_per_s],
            label=f"storage read\n({scale.name})",
            absent=_why(cell, "storage_read_bytes_per_s", "no counter of this mount could be read"),
            envelope=_scaled(line.read_bytes_envelope, scale.unit),
        ),
        Panel(
            values=line.reads_per_s,
            label="reads\n(1/s)",
            absent=_why(cell, "reads_per_s", "no counter of this mount could be read"),
            envelope=line.reads_envelope,
        ),
        Panel(
            values=_percent(line.accelerator_busy),
            label="accelerator\nbusy (%)",
            absent="Not measured: neither NVML nor step marks say",
            top=100.0,
        ),
        Panel(
            values=_percent(line.data_wait),
            label="data wait\n(%)",
            absent="Not measured: this cell left no step marks",
            top=100.0,
        ),
    ]


def _scaled(
    envelope: tuple[list[float | None], list[float | None]] | None, unit: float
) -> tuple[list[float | None], list[float | None]] | None:
    if envelope is None:
        return None
    low, high = ([None if v is None else v / unit for v in edge] for edge in envelope)
    return low, high


def _percent(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else value * 100 for value in values]


def _why(cell: CellSummary, name: str, otherwise: str) -> str:
    return f"Not measured: {cell.reasons.get(name, otherwise)}"


def _draw_panel(axes: Axes, panel: Panel, line: Timeline, hue: str, theme: Theme) -> None:
    axes.set_ylabel(panel.label)
    axes.yaxis.set_label_coords(-0.075, 0.5)
    known = [value for value in panel.values if value is not None]
    if not known:
        missing(axes, panel.absent, theme, keep_x=True)
        return
    axes.axvspan(*line.window, color=theme.shade, linewidth=0, zorder=0)
    for start, end in _pauses(line):
        axes.axvspan(start, end, color=theme.faint, linewidth=0, zorder=0.5)
    for start, _ in line.epochs[1:]:
        axes.axvline(start, color=theme.muted, linewidth=0.9, linestyle=(0, (4, 2)), zorder=3)
    values = [math.nan if value is None else value for value in panel.values]
    highest = max(known)
    if panel.envelope is None:
        axes.fill_between(line.t_s, values, color=hue, alpha=0.22, linewidth=0, step="mid")
    else:
        low, high = ([math.nan if v is None else v for v in edge] for edge in panel.envelope)
        axes.fill_between(line.t_s, low, high, color=hue, alpha=0.3, linewidth=0, step="mid")
        highest = max([highest, *(v for v in panel.envelope[1] if v is not None)])
    axes.plot(line.t_s, values, color=hue, linewidth=1.3, drawstyle="steps-mid")
    axes.set_ylim(0, (panel.top or highest or 1.0) * 1.08)
    if panel.top is None and not any(known):
        axes.set_yticks([0])
    else:
        axes.locator_params(axis="y", nbins=4)


def _epoch_key(theme: Theme) -> Line2D:
    return Line2D([], [], color=theme.muted, lw=0.9, ls=(0, (4, 2)), label="an epoch begins")


def _pauses(line: Timeline) -> list[tuple[float, float]]:
    gaps = zip(line.epochs, line.epochs[1:], strict=False)
    return [(before[1], after[0]) for before, after in gaps if after[0] > before[1]]


def _mean(line: Timeline, values: Sequence[float | None]) -> float | None:
    """Mean over the bins in the window, pauses left out; None when no bin is known."""
    inside = [
        value
        for t, value in zip(line.t_s, values, strict=True)
        if value is not None
        and line.window[0] <= t <= line.window[1]
        and not any(start <= t <= end for start, end in _pauses(line))
    ]
    return sum(inside) / len(inside) if inside else None


def _title(cell: CellSummary, line: Timeline) -> str:
    wait, read = _mean(line, line.data_wait), cell.storage_read_bytes_per_s
    waited = None if wait is None else f"ranks waited for data {share(wait)} of the time"
    came = None if read is None else f"storage delivered {format_bandwidth(read)}"
    said = " and ".join(part for part in (came, waited) if part)
    return f"{cell_name(cell)}: {said or 'neither storage nor waiting could be measured'}"


def _caption(summary: Summary, cell: CellSummary, line: Timeline) -> str:
    read = line.read_source or cell.storage_read_source
    return caption(
        f"Storage: {read}." if read else "Storage: no counter could be read.",
        f"Busy: {line.accelerator_busy_source}.",
        f"Bins of {format_seconds(line.bin_s)}; {len(line.epochs)} epochs.",
        f"Bands: lowest and highest {format_seconds(line.envelope_s)} of each bin."
        if line.envelope_s and line.read_bytes_envelope
        else None,
        window_of([cell]),
        emulated=emulation(summary) if cell.accelerator.kind == "emulated" else None,
    )


def _alt(cell: CellSummary, line: Timeline) -> str:
    means = [
        f"accelerator busy {share(_mean(line, line.accelerator_busy))}",
        f"data wait {share(_mean(line, line.data_wait))}",
        f"storage read {format_bandwidth(_mean(line, line.read_bytes_per_s))}",
    ]
    return f"Timeline of {cell_name(cell)}; means over the window: {', '.join(means)}."
