"""By how much runs differ from the first one, with the interval of each difference."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ioprof.record.comparison import Comparison, Difference
from ioprof.report.comparison import answer, signed
from ioprof.report.figure import Figure
from ioprof.report.figures.bars import name_rows, write_values
from ioprof.report.figures.sheet import Message, Sheet, missing
from ioprof.report.figures.style import Theme, theme_of

_ROW_IN = 0.27
_NUMBER = "samples_per_s"


def draw(found: Comparison) -> Figure:
    """A row for each cell and run: the difference in samples/s as a mark on its interval."""
    theme = theme_of("light")
    rows = [
        one for one in found.differences if one.name == _NUMBER and one.relative.value is not None
    ]
    message = Message(
        name="comparison",
        title=answer(found).rstrip("."),
        caption=_caption(found, rows),
        alt=_alt(found, rows),
    )
    legend = [
        Line2D([], [], color=theme.ink, marker="o", ls="none", label="differs significantly"),
        Line2D([], [], color=theme.ink, marker="o", mfc=theme.paper, ls="none", label="does not"),
        Line2D([], [], color=theme.ink, lw=1.4, label="99 % interval"),
    ]
    sheet = Sheet(
        message,
        theme=theme,
        plot_in=max(len(rows), 3) * _ROW_IN + 0.1,
        left_in=2.6,
        right_in=1.2,
        legend=legend if rows else (),
    )
    axes = sheet.axes()[0]
    if not rows:
        missing(axes, "No cell could be compared.", theme)
        return sheet.finish()
    axes.axvline(0, color=theme.faint, linewidth=1.2, zorder=1)
    for place, one in enumerate(rows):
        _draw_row(axes, place, one, theme)
    axes.set_xlabel("difference in samples/s from the first run")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:+.0%}" if value else "0")
    axes.margins(x=0.08)
    name_rows(axes, [_name(found, one) for one in rows], theme)
    write_values(axes, [signed(one.relative.value) for one in rows], theme)
    return sheet.finish()


def _draw_row(axes: Axes, place: int, one: Difference, theme: Theme) -> None:
    low, high, value = one.relative.low, one.relative.high, one.relative.value
    assert value is not None
    if low is not None and high is not None:
        axes.plot([low, high], [place, place], color=theme.ink, lw=1.4, marker="|", ms=7, zorder=2)
    fill = theme.ink if one.significant else theme.paper
    axes.plot([value], [place], color=theme.ink, marker="o", mfc=fill, ms=7, ls="none", zorder=3)


def _name(found: Comparison, one: Difference) -> str:
    return one.cell if len(found.runs) == 2 else f"{one.cell} #{one.run}"


def _caption(found: Comparison, rows: list[Difference]) -> str:
    counts = sorted(n for one in rows for n in (one.first.n, one.other.n))
    n = f"n = {counts[0]} to {counts[-1]} blocks of steps a side." if counts else ""
    others = "; ".join(f"#{number} {name}" for number, name in enumerate(found.runs[1:], start=1))
    unlike = f"Not alike: {'; '.join(found.unlike)}." if found.unlike else ""
    return " ".join(
        filter(None, [f"First: {found.runs[0]}. Against it: {others}.", n, unlike, *found.cautions])
    )


def _alt(found: Comparison, rows: list[Difference]) -> str:
    told = "; ".join(f"{_name(found, one)} {signed(one.relative.value)}" for one in rows)
    return f"Differences in samples per second from the first run: {told or 'none'}."
