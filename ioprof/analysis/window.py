"""The steps that count, and the blocks their times are averaged over.

With W workers batches come in bursts: step times alternate between very short and very long, and
the median of single steps is far from the time a step takes. The mean over as many steps as the
loader may hold ready is not.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ioprof.record.step import Step
from ioprof.record.store import RankRecord
from ioprof.record.summary import Window

_FEWEST_BLOCKS = 5
_MOST_WARMUP_SHARE = 3


class Blocks(msgspec.Struct, frozen=True, kw_only=True):
    """Means over blocks of consecutive steps, one value per block, averaged over ranks."""

    step_s: tuple[float, ...]
    """Steps with a full batch only."""
    wait_s: tuple[float, ...]
    compute_s: tuple[float, ...]
    samples_per_s: tuple[float, ...]
    """All ranks together."""


class Stepping(msgspec.Struct, frozen=True, kw_only=True):
    """A cell's window and what its steps say."""

    window: Window
    blocks: Blocks
    consumed_bytes: int | None
    """Stored bytes of all samples that all ranks consumed in the window."""


def loader_fact(ranks: tuple[RankRecord, ...], name: str, default: int) -> int:
    """An integer from the first `loader` event, for instance prefetch_batches."""
    for rank in ranks:
        for event in rank.events:
            value = event.fields.get(name) if event.name == "loader" else None
            if isinstance(value, int):
                return value
    return default


def stepping(ranks: tuple[RankRecord, ...]) -> Stepping | None:
    """Window and blocks over the steady steps that all ranks made.

    None when there are none, or none that took any time: no rate can be made of those.
    """
    steady = [[step for step in rank.steps if step.phase == "steady"] for rank in ranks]
    made = min((len(steps) for steps in steady), default=0)
    if made == 0:
        return None
    prefetch = loader_fact(ranks, "prefetch_batches", 0)
    warmup = min(prefetch + 1, made // _MOST_WARMUP_SHARE)
    # Column j holds the j-th step of every rank: they made it together.
    columns = list(zip(*(steps[warmup:made] for steps in steady), strict=True))
    batch = loader_fact(ranks, "batch", 0) or max(step.samples for step in columns[0])
    size = max(1, min(prefetch, len(columns) // _FEWEST_BLOCKS))
    window = Window(
        start_s=min(step.start_s for step in columns[0]),
        end_s=max(step.end_s for step in columns[-1]),
        seconds=sum(_mean([step.step_s for step in column]) for column in columns),
        first_step=warmup,
        last_step=made - 1,
        steps=len(columns),
        warmup_steps=warmup,
        epochs=len({step.epoch for column in columns for step in column}),
        block_steps=size,
    )
    if window.seconds <= 0:
        return None
    return Stepping(
        window=window,
        blocks=_blocks(columns, size=size, batch=batch),
        consumed_bytes=_consumed(columns),
    )


def _blocks(columns: list[tuple[Step, ...]], *, size: int, batch: int) -> Blocks:
    full = [column for column in columns if all(step.samples >= batch for step in column)]
    full_blocks = _chunks(full, size)
    waits = [[step.wait_s for step in column] for column in columns]
    known = all(wait is not None for column in waits for wait in column)
    return Blocks(
        step_s=tuple(_mean_over(block, lambda step: step.step_s) for block in full_blocks),
        wait_s=tuple(_mean_over(block, lambda step: step.wait_s or 0.0) for block in full_blocks)
        if known
        else (),
        compute_s=tuple(_mean_over(block, _compute_s) for block in full_blocks) if known else (),
        samples_per_s=tuple(_rate(block) for block in _chunks(columns, size)),
    )


def _chunks(columns: list[tuple[Step, ...]], size: int) -> list[list[tuple[Step, ...]]]:
    """Whole blocks; a shorter rest at the end is left out unless it is all there is."""
    whole = [columns[i : i + size] for i in range(0, len(columns) - size + 1, size)]
    return whole or ([columns] if columns else [])


def _compute_s(step: Step) -> float:
    return step.step_s - (step.wait_s or 0.0) - (step.h2d_s or 0.0)


def _rate(block: list[tuple[Step, ...]]) -> float:
    samples = sum(step.samples for column in block for step in column)
    seconds = sum(_mean([step.step_s for step in column]) for column in block)
    return samples / seconds if seconds > 0 else float("nan")


def _mean_over(block: list[tuple[Step, ...]], value: Callable[[Step], float]) -> float:
    return _mean([value(step) for column in block for step in column])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _consumed(columns: list[tuple[Step, ...]]) -> int | None:
    sizes = [step.stored_bytes for column in columns for step in column]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
