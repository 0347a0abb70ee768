"""Colours and marks: one per loader and one per stage, the same in every figure.

The hues are told apart with the common kinds of colour blindness and stand out at least 3:1 from
their paper; loaders differ by their mark as well.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ioprof.record.summary import Summary

ThemeName = Literal["light", "dark"]

MARKS = ("o", "s", "^", "D", "v", "P")
_READERS = ("synthetic", "reads")
"""Loaders that only serve as a reference and train nobody."""


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """Every colour of a figure, as #rrggbb."""

    name: ThemeName
    paper: str
    ink: str
    muted: str
    """Captions, ticks and axis labels."""
    faint: str
    """Grid and frame."""
    shade: str
    """Ground of the measured window."""
    demand: str
    ceiling: str
    stages: dict[str, str]
    loaders: tuple[str, ...]


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#1b1f24",
    muted="#57606a",
    faint="#d8dee4",
    shade="#eef2f6",
    demand="#1b1f24",
    ceiling="#6f42a8",
    stages={"compute": "#8c959f", "prep": "#bd8000", "fetch": "#6f42a8", "storage": "#2f1b57"},
    loaders=("#0072b2", "#d55e00", "#008a66", "#b5478f", "#2a8fcb", "#7a5c1e"),
)
DARK = Theme(
    name="dark",
    paper="#14181d",
    ink="#e6edf3",
    muted="#a9b4c0",
    faint="#333c46",
    shade="#1f262e",
    demand="#e6edf3",
    ceiling="#b79af0",
    stages={"compute": "#7d8894", "prep": "#f0c04a", "fetch": "#a27fe8", "storage": "#d9caff"},
    loaders=("#4ea6e0", "#f58b4c", "#2fc397", "#e58cc5", "#9ad6f7", "#d1b067"),
)
_THEMES = {"light": LIGHT, "dark": DARK}


def theme_of(name: ThemeName) -> Theme:
    """The theme of that name."""
    return _THEMES[name]


def loaders_of(summary: Summary) -> tuple[str, ...]:
    """Loaders that trained, in the order of the plan: their place decides colour and mark."""
    seen = [cell.loader for cell in summary.cells] + [one.loader for one in summary.ceilings]
    return tuple(name for name in dict.fromkeys(seen) if name not in _READERS)


def colour(summary: Summary, loader: str, theme: Theme) -> str:
    """The colour of a loader, the same in all figures of a run."""
    return theme.loaders[_place(summary, loader) % len(theme.loaders)]


def mark(summary: Summary, loader: str) -> str:
    """The marker of a loader, the same in all figures of a run."""
    return MARKS[_place(summary, loader) % len(MARKS)]


def _place(summary: Summary, loader: str) -> int:
    loaders = loaders_of(summary)
    return loaders.index(loader) if loader in loaders else 0
