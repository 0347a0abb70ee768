"""Captions: what is drawn, n and window, and what the numbers rest on."""

from __future__ import annotations

from collections.abc import Sequence

from ioprof.record.summary import CellSummary
from ioprof.units import format_seconds


def caption(*parts: str | None, emulated: str | None) -> str:
    """The parts that are there, in order, after the one that says what is emulated."""
    said = [f"{emulated}." if emulated else None, *parts]
    return " ".join(part for part in said if part)


def window_of(cells: Sequence[CellSummary]) -> str | None:
    """How many cells, and the n and window that each of them is measured over."""
    known = [cell.window for cell in cells if cell.window is not None]
    blocks = [cell.samples_per_s.n for cell in cells if cell.samples_per_s is not None]
    if not known or not blocks:
        return None
    many = "" if len(cells) == 1 else f"{len(cells)} cells, each of "
    steps = _range([str(one.steps) for one in sorted(known, key=lambda w: w.steps)])
    seconds = [format_seconds(one.seconds) for one in sorted(known, key=lambda w: w.seconds)]
    n = _range([str(one) for one in sorted(blocks)])
    return f"{many}n = {n} blocks, {steps} steps, in a window of {_range(seconds)}."


def _range(ordered: Sequence[str]) -> str:
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"
