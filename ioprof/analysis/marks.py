"""What a recorded command said of its own steps, through `ioprof.mark`."""

from __future__ import annotations

from statistics import fmean

from ioprof.analysis.estimate import estimate
from ioprof.analysis.window import stepping
from ioprof.record.recorded import Marks
from ioprof.record.store import RankRecord


def marks(ranks: tuple[RankRecord, ...]) -> Marks | None:
    """Steps, waits and AU of the ranks that marked; None when none made a step that took time."""
    ranks = tuple(rank for rank in ranks if rank.steps)
    made = stepping(ranks)
    if made is None:
        return None
    blocks = made.blocks
    known = bool(blocks.compute_s) and fmean(blocks.step_s) > 0
    consumed = made.consumed_bytes
    seconds = made.window.seconds
    return Marks(
        ranks=len(ranks),
        window=made.window,
        samples_per_s=estimate(blocks.samples_per_s),
        step_s=estimate(blocks.step_s),
        wait_s=estimate(blocks.wait_s),
        compute_s=estimate(blocks.compute_s),
        au=fmean(blocks.compute_s) / fmean(blocks.step_s) if known else None,
        consumed_bytes_per_s=None if consumed is None else consumed / seconds,
    )
