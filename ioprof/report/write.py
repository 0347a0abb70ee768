"""Writes the pictures and the page of a run into its directory."""

from __future__ import annotations

from ioprof.analysis.timeline import Timeline
from ioprof.record.store import RunDirectory
from ioprof.record.summary import Summary
from ioprof.report.figures import draw_all
from ioprof.report.page import render


def write(run: RunDirectory, summary: Summary, timelines: dict[str, Timeline]) -> None:
    """`figures/<name>.png` and `.svg` in the light theme, and `report.html` in both."""
    light = draw_all(summary, timelines, theme="light")
    dark = draw_all(summary, timelines, theme="dark")
    run.figures.mkdir(parents=True, exist_ok=True)
    for figure in light:
        (run.figures / f"{figure.name}.png").write_bytes(figure.png)
        (run.figures / f"{figure.name}.svg").write_bytes(figure.svg)
    run.page.write_text(render(summary, light, dark), encoding="utf-8")
