"""Literal timelines for the report's tests."""

from __future__ import annotations

from ioprof.analysis.timeline import Timeline
from ioprof.record.summary import Summary

BINS = 40


def timeline(cell_id: str, *, known: bool = True) -> Timeline:
    """Four seconds in two epochs with a pause between them; all None when not `known`."""
    times = [0.05 + 0.1 * i for i in range(BINS)]
    paused = [1.9 < t < 2.3 for t in times]

    def series(value: float) -> list[float | None]:
        return [None if pause or not known else value for pause in paused]

    return Timeline(
        cell_id=cell_id,
        bin_s=0.1,
        t_s=times,
        read_bytes_per_s=series(20e6),
        reads_per_s=series(305.0),
        accelerator_busy=series(0.25),
        accelerator_busy_source="step marks",
        data_wait=series(0.75),
        window=(0.5, 3.8),
        epochs=[(0.0, 1.9), (2.3, 4.0)],
        read_source="block.diskstats vda (wire)" if known else None,
    )


def timelines(made: Summary, *, known: bool = True) -> dict[str, Timeline]:
    """One for each cell, those that never trained as well."""
    return {cell.id: timeline(cell.id, known=known) for cell in made.cells}
