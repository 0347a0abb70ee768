"""All figures of a report, in the order in which they are shown."""

from __future__ import annotations

from ioprof.analysis.timeline import Timeline
from ioprof.record.summary import Summary
from ioprof.report.answer import trained_cells
from ioprof.report.figure import Figure
from ioprof.report.figures import (
    bandwidth_vs_accelerators,
    ceilings,
    demand_by_topology,
    step_breakdown,
    timeline,
)
from ioprof.report.figures.style import ThemeName, theme_of

_OF_THE_RUN = (bandwidth_vs_accelerators, step_breakdown, ceilings, demand_by_topology)


def draw_all(summary: Summary, timelines: dict[str, Timeline], *, theme: ThemeName) -> list[Figure]:
    """Every figure in one theme; timelines, by cell id, only of cells that trained."""
    colours = theme_of(theme)
    figures = [module.draw(summary, theme=colours) for module in _OF_THE_RUN]
    for cell in trained_cells(summary):
        line = timelines.get(cell.id)
        if line is not None:
            figures.append(timeline.draw(summary, cell, line, theme=colours))
    return figures
