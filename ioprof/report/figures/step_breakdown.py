"""Where the time of a step goes: compute, prep stall, fetch stall."""

from __future__ import annotations

import statistics

import msgspec
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ioprof.record.summary import CellSummary, Summary
from ioprof.report.answer import (
    FROM_STORAGE,
    bare,
    count,
    emulation,
    share,
    trained_cells,
)
from ioprof.report.figure import Figure
from ioprof.report.figures.bars import name_rows, write_values
from ioprof.report.figures.caption import caption, window_of
from ioprof.report.figures.scale import Scale, seconds_scale
from ioprof.report.figures.sheet import Message, Sheet, missing
from ioprof.report.figures.style import Theme
from ioprof.units import format_seconds

_ROW_IN = 0.42
_STAGES = ("compute", "prep", "fetch")
_STALLS = {"prep": "preparing samples", "fetch": "reading from storage"}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The step of one topology and loader, in seconds: its parts, None where not measured."""

    topology: str
    accelerators: int
    loader: str
    step_s: float
    parts_s: dict[str, float | None]
    from_storage: bool

    @property
    def name(self) -> str:
        """Topology and loader; "warm" when only that was measured."""
        return f"{self.topology} {self.loader}{'' if self.from_storage else ' (warm)'}"


def draw(summary: Summary, *, theme: Theme) -> Figure:
    """The figure; it says so where no step was measured."""
    rows = _rows(summary)
    cells = [cell for cell in trained_cells(summary) if cell.step_s is not None]
    message = Message(
        name="step_breakdown",
        title=_title(rows),
        caption=_caption(summary, cells, rows),
        alt=_alt(rows),
    )
    names = {"compute": "compute", "prep": "prep stall", "fetch": "fetch stall"}
    legend = [Patch(color=theme.stages[stage], label=names[stage]) for stage in _STAGES]
    step = Line2D([], [], color=theme.ink, marker="|", ms=12, mew=2, ls="none", label="step time")
    sheet = Sheet(
        message,
        theme=theme,
        plot_in=max(len(rows), 1) * _ROW_IN + 0.15,
        left_in=2.45,
        right_in=2.25,
        legend=[*legend, step] if rows else (),
    )
    axes = sheet.axes()[0]
    if not rows:
        missing(axes, "No step was measured in this run.", theme)
        return sheet.finish()
    scale = seconds_scale(max(row.step_s for row in rows))
    for place, row in enumerate(rows):
        _draw_row(axes, place, row, scale, theme)
    axes.set_xlabel(f"time of one step ({scale.name})")
    axes.margins(x=0.03)
    if not any((part or 0.0) < 0 for row in rows for part in row.parts_s.values()):
        axes.set_xlim(left=0)
    name_rows(axes, [row.name for row in rows], theme)
    write_values(axes, [_sum(row) for row in rows], theme)
    return sheet.finish()


def _rows(summary: Summary) -> list[Row]:
    """One row per topology and loader: from storage if that was measured, else warm."""
    groups: dict[tuple[str, str], list[CellSummary]] = {}
    for cell in trained_cells(summary):
        if cell.step_s is not None:
            groups.setdefault((cell.topology, cell.loader), []).append(cell)
    rows: list[Row] = []
    for (topology, loader), cells in groups.items():
        role = next((r for r in FROM_STORAGE if any(c.role == r for c in cells)), "warm")
        chosen = [cell for cell in cells if cell.role == role]
        rows.append(
            Row(
                topology=topology,
                accelerators=chosen[0].nodes * chosen[0].accelerators_per_node,
                loader=loader,
                step_s=statistics.median(c.step_s.median for c in chosen if c.step_s),
                parts_s={
                    "compute": summary.synthetic_step_s(topology),
                    "prep": _middle([cell.prep_stall_s for cell in chosen]),
                    "fetch": _middle([cell.fetch_stall_s for cell in chosen]),
                },
                from_storage=role != "warm",
            )
        )
    return rows


def _middle(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _draw_row(axes: Axes, place: int, row: Row, scale: Scale, theme: Theme) -> None:
    """Positive parts stack to the right of zero, negative ones, hatched, to its left."""
    right = left = 0.0
    for stage in _STAGES:
        part = (row.parts_s[stage] or 0.0) / scale.unit
        if not part:
            continue
        axes.barh(
            place,
            part,
            left=right if part > 0 else left,
            height=0.56,
            color=theme.stages[stage],
            edgecolor=theme.paper,
            linewidth=0.8,
            hatch=None if part > 0 else "////",
            zorder=2,
        )
        if part > 0:
            right += part
        else:
            left += part
    axes.plot([row.step_s / scale.unit], [place], color=theme.ink, marker="|", ms=15, mew=2)


def _sum(row: Row) -> str:
    """ "26 + 54 + 282 = 362 ms": the parts in the unit of the whole."""
    unit = seconds_scale(row.step_s)
    digits = 2 if unit.name == "s" else 1 if row.step_s / unit.unit < 100 else 0
    parts = [row.parts_s[stage] for stage in _STAGES]
    known = ["–" if part is None else f"{part / unit.unit:.{digits}f}" for part in parts]
    shown = known if row.from_storage else known[:2]
    whole = " + ".join(shown).replace("+ -", "− ")
    return f"{whole} = {row.step_s / unit.unit:.{digits}f} {unit.name}"


def _title(rows: list[Row]) -> str:
    if not rows:
        return "Where the time of a step goes could not be measured"
    most = max(row.accelerators for row in rows)
    row = min((row for row in rows if row.accelerators == most), key=lambda one: one.step_s)
    who = f"With {count(most, 'accelerator')} and {row.loader}"
    of_step = f"of each step of {format_seconds(row.step_s)}"
    stalls = {stage: part for stage in _STALLS if (part := row.parts_s[stage]) is not None}
    stage = max(stalls, key=lambda name: stalls[name], default=None)
    if stage is None or stalls[stage] <= 0:
        return f"{who}, no stall shows in a step of {format_seconds(row.step_s)}"
    if min(stalls.values()) < 0:
        return f"{who}, waiting for data takes {share(sum(stalls.values()) / row.step_s)} {of_step}"
    return f"{who}, {_STALLS[stage]} takes {share(stalls[stage] / row.step_s)} {of_step}"


def _caption(summary: Summary, cells: list[CellSummary], rows: list[Row]) -> str:
    negative = any((part or 0.0) < 0 for row in rows for part in row.parts_s.values())
    whys = {
        f"{name} of {cell.topology} {cell.loader}: {bare(cell.reasons[name])}."
        for cell in trained_cells(summary)
        for name in ("step_s", "prep_stall_s", "fetch_stall_s")
        if name in cell.reasons and not (cell.role == "warm" and name == "fetch_stall_s")
    }
    return caption(
        "Compute: step without reading. Prep: warm step less that. Fetch: cold step less warm.",
        "Hatched: a negative difference, the noise of the measurement." if negative else None,
        window_of(cells),
        *sorted(whys)[:3],
        emulated=emulation(summary),
    )


def _alt(rows: list[Row]) -> str:
    said = "; ".join(f"{row.name} {_sum(row)}" for row in rows)
    return f"Step time as compute + prep stall + fetch stall: {said or 'not measured'}."
