"""How fast each stage could go alone; the lowest is the bottleneck."""

from __future__ import annotations

import msgspec
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ioprof.record.estimate import Estimate
from ioprof.record.summary import Ceilings, Summary
from ioprof.report.answer import bare, emulation, no_storage_ceiling, stages
from ioprof.report.figure import Figure
from ioprof.report.figures.bars import name_rows, write_values
from ioprof.report.figures.caption import caption
from ioprof.report.figures.scale import lengths_on_logarithm, wide
from ioprof.report.figures.sheet import Message, Sheet, missing
from ioprof.report.figures.style import Theme
from ioprof.units import format_rate

_ROW_IN = 0.27
_STAGES = ("compute", "prep", "fetch", "storage")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One ceiling: of a stage at a topology, for one loader or shared by all."""

    topology: str
    stage: str
    loader: str | None
    value: Estimate
    limits: bool
    """It is the bottleneck of a loader."""

    @property
    def name(self) -> str:
        """As the row is labelled."""
        whose = "" if self.loader is None else f" {self.loader}"
        return f"{self.topology} {self.stage}{whose}"


def draw(summary: Summary, *, theme: Theme) -> Figure:
    """The figure; it says so where no ceiling was measured."""
    rows = _rows(summary.ceilings)
    message = Message(
        name="ceilings",
        title=_title(summary.ceilings),
        caption=_caption(summary, rows),
        alt=_alt(rows),
    )
    names = {"storage": "storage (fio)"}
    shown = [stage for stage in _STAGES if any(row.stage == stage for row in rows)]
    legend = [Patch(color=theme.stages[s], label=names.get(s, s)) for s in shown]
    whisker = Line2D([], [], color=theme.ink, lw=1.4, label="95 % interval")
    sheet = Sheet(
        message,
        theme=theme,
        plot_in=max(len(rows), 3) * _ROW_IN + 0.1,
        left_in=2.6,
        right_in=1.75,
        legend=[*legend, whisker] if rows else (),
    )
    axes = sheet.axes()[0]
    if not rows:
        missing(axes, "No ceiling was measured in this run.", theme)
        return sheet.finish()
    medians = [row.value.median for row in rows]
    logarithmic = wide(medians)
    for place, row in enumerate(rows):
        _draw_row(axes, place, row, theme, bar=not logarithmic)
    for place in range(1, len(rows)):
        if rows[place].topology != rows[place - 1].topology:
            axes.axhline(place - 0.5, color=theme.faint, linewidth=1.2)
    _scale(axes, medians, logarithmic=logarithmic)
    name_rows(axes, [row.name for row in rows], theme)
    write_values(axes, [_value(row) for row in rows], theme)
    return sheet.finish()


def _rows(ceilings: tuple[Ceilings, ...]) -> list[Row]:
    """Ceilings by topology and stage; one row where loaders share a value."""
    rows: list[Row] = []
    for topology in dict.fromkeys(one.topology for one in ceilings):
        here = [one for one in ceilings if one.topology == topology]
        for stage in _STAGES:
            known = [(one, value) for one in here if (value := stages(one)[stage]) is not None]
            shared = stage != "prep" and len({value for _, value in known}) == 1
            rows += [
                Row(
                    topology=topology,
                    stage=stage,
                    loader=None if shared else one.loader,
                    value=value,
                    limits=any(_limit(one) == stage for one in (here if shared else [one])),
                )
                for one, value in (known[:1] if shared else known)
            ]
    return rows


def _limit(one: Ceilings) -> str:
    return "prep" if one.bottleneck == "client-limited" else one.bottleneck


def _scale(axes: Axes, medians: list[float], *, logarithmic: bool) -> None:
    what = "samples per second, all ranks together (samples/s)"
    if logarithmic:
        lengths_on_logarithm(axes, medians)
        axes.set_xlabel(f"{what}, logarithmic")
    else:
        axes.set_xlim(left=0)
        axes.margins(x=0.04)
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel(what)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")


def _draw_row(axes: Axes, place: int, row: Row, theme: Theme, *, bar: bool) -> None:
    """A bar from 0, or on a logarithm, where length means nothing, a mark."""
    value = row.value
    hue = theme.stages[row.stage]
    if bar:
        axes.barh(place, value.median, height=0.62, color=hue, zorder=2)
    else:
        axes.plot([value.median], [place], color=hue, marker="o", ms=7, ls="none", zorder=2)
    if value.low is not None and value.high is not None:
        ends = [value.low, value.high]
        axes.plot(
            ends, [place, place], color=theme.ink, lw=1.4, marker="|", ms=7 if bar else 12, zorder=3
        )


def _value(row: Row) -> str:
    return f"{format_rate(row.value.median)}{'  bottleneck' if row.limits else ''}"


def _title(ceilings: tuple[Ceilings, ...]) -> str:
    known = [one for one in ceilings if any(stages(one).values())]
    if not known:
        return "How fast each stage could go alone was not measured"
    one = max(known, key=lambda c: (_accelerators(c), c.prep.median if c.prep else 0.0))
    lowest = stages(one).get(_limit(one))
    where = f"{one.topology} with {one.loader}"
    if lowest is None:
        return f"{where}: no stage is clearly the slowest ({one.bottleneck})"
    why = "the host's CPUs" if one.bottleneck == "client-limited" else one.bottleneck
    could = "" if one.compute is None else f"; the accelerators could take {_rate(one.compute)}"
    if one.bottleneck == "compute":
        return f"{where} is limited by its accelerators, at {_rate(lowest)} samples/s"
    return f"{where} is limited by {why}, at {_rate(lowest)} samples/s{could}"


def _accelerators(one: Ceilings) -> int:
    nodes, _, each = one.topology.partition("x")
    return int(nodes) * int(each) if nodes.isdigit() and each.isdigit() else 0


def _rate(value: Estimate) -> str:
    return format_rate(value.median)


def _caption(summary: Summary, rows: list[Row]) -> str:
    why = no_storage_ceiling(summary)
    ns = sorted(row.value.n for row in rows)
    n = None if not ns else f"{ns[0]}" if ns[0] == ns[-1] else f"{ns[0]} to {ns[-1]}"
    gone = {
        f"{stage}: {bare(one.reasons[stage])}."
        for one in summary.ceilings
        for stage in ("compute", "prep", "fetch")
        if stages(one)[stage] is None and stage in one.reasons
    }
    return caption(
        "Each stage alone: compute without reading, prep from the page cache without a model, "
        "fetch without decoding, storage by fio.",
        f"n = {n} blocks of steps, in the window of each reference cell." if n else None,
        f"No storage ceiling is claimed: {why}." if why else None,
        *sorted(gone)[:3],
        emulated=emulation(summary),
    )


def _alt(rows: list[Row]) -> str:
    said = "; ".join(f"{row.name} {_value(row)}" for row in rows)
    return f"Ceilings in samples per second: {said or 'none measured'}."
