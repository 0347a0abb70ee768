"""Rows of horizontal bars: their names to the left, their values to the right of the axes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from ioprof.report.figures.sheet import label
from ioprof.report.figures.style import Theme

_NAME = 30
"""Characters of a row's name that fit beside the axes."""


def name_rows(axes: Axes, names: Sequence[str], theme: Theme) -> None:
    """Name rows 0, 1, … from the top down, and leave only vertical grid lines."""
    axes.set_yticks(range(len(names)), [label(name, _NAME) for name in names])
    for tick in axes.get_yticklabels():
        tick.set_color(theme.ink)
        tick.set_parse_math(False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def write_values(axes: Axes, values: Sequence[str], theme: Theme) -> None:
    """Write the value of each row beside the axes, where no bar or whisker can cross it."""
    for row, value in enumerate(values):
        axes.annotate(
            value,
            (1.0, row),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            ha="left",
            fontsize=9,
            color=theme.ink,
            annotation_clip=False,
            parse_math=False,
        )
