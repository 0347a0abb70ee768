"""Storage, accelerator and waiting on one clock, for a picture."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from ioprof.analysis import gpus
from ioprof.analysis.counters import CounterLog, Floats
from ioprof.analysis.coverage import covered_s
from ioprof.analysis.observation import Observation, observe
from ioprof.analysis.storage import OPERATIONS, counter_seen, series_over, storage_counters
from ioprof.record.headline import Candidate
from ioprof.record.step import Step
from ioprof.record.store import RunDirectory, read_json
from ioprof.record.study import Study

_MOST_BINS = 400
_TICKS_PER_BIN = 2
"""A bin as short as a tick would show the sampler's jitter."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Series over equal bins of a cell; None where nothing is known of a bin.

    `t_s` is the middle of each bin, seconds since the first epoch began; `window` and `epochs`
    are spans on the same axis. Shares are from 0 to 1, over all ranks.
    """

    cell_id: str
    bin_s: float
    t_s: list[float]
    read_bytes_per_s: list[float | None]
    reads_per_s: list[float | None]
    accelerator_busy: list[float | None]
    accelerator_busy_source: str
    data_wait: list[float | None]
    window: tuple[float, float]
    epochs: list[tuple[float, float]]
    read_source: str | None
    envelope_s: float | None = None
    """Of a long cell each bin holds many looks: the rates of its parts of this length lie between
    the two lists of each envelope. None where a bin is as short as its looks allow."""
    read_bytes_envelope: tuple[list[float | None], list[float | None]] | None = None
    reads_envelope: tuple[list[float | None], list[float | None]] | None = None


def timeline(run: RunDirectory, cell_id: str) -> Timeline | None:
    """The timeline of a cell; None when it left too little to draw."""
    study = read_json(run.study, Study)
    plan = next((cell for cell in study.cells if cell.id == cell_id), None)
    if plan is None:
        return None
    seen = observe(run, plan)
    if seen.stepping is None or seen.log is None or seen.span_s is None or seen.node is None:
        return None
    start_s, end_s = seen.span_s
    bin_s = max(_TICKS_PER_BIN * seen.node.header.interval_s, (end_s - start_s) / _MOST_BINS)
    count = int((end_s - start_s) / bin_s)
    if count < 1:
        return None
    edges: Floats = np.linspace(start_s, start_s + bin_s * count, count + 1, dtype=np.float64)
    gpu = _gpu_busy(seen.log, edges, ranks=len(seen.ranks))
    told = any(value is not None for value in gpu)
    steps = [[step for step in rank.steps if step.phase == "steady"] for rank in seen.ranks]
    busy = _share(steps, edges, what="busy")
    storage = counter_seen(seen.log, storage_counters(study))
    parts = int(bin_s / (_TICKS_PER_BIN * seen.node.header.interval_s))
    return Timeline(
        cell_id=cell_id,
        bin_s=bin_s,
        t_s=[float(t) for t in edges[:-1] - start_s + bin_s / 2],
        read_bytes_per_s=_rate(seen.log, storage, storage.counter if storage else "", edges),
        reads_per_s=_rate(seen.log, storage, OPERATIONS, edges),
        accelerator_busy=gpu if told else busy,
        accelerator_busy_source="NVML" if told else "step marks",
        data_wait=_share(steps, edges, what="wait"),
        envelope_s=bin_s / parts if parts > 1 else None,
        read_bytes_envelope=_envelope(
            seen.log, storage, storage.counter if storage else "", edges, parts=parts
        ),
        reads_envelope=_envelope(seen.log, storage, OPERATIONS, edges, parts=parts),
        window=(seen.stepping.window.start_s - start_s, seen.stepping.window.end_s - start_s),
        epochs=_epochs(seen, start_s),
        read_source=storage.name if storage else None,
    )


def _rate(
    log: CounterLog, counter: Candidate | None, name: str, edges: Floats
) -> list[float | None]:
    """Sum over the counter's parts; a bin in which one fell, or was not seen, is a gap."""
    grown = series_over(log, counter, name, edges)
    return [None] * (len(edges) - 1) if grown is None else _listed(grown / np.diff(edges))


def _envelope(
    log: CounterLog, counter: Candidate | None, name: str, edges: Floats, *, parts: int
) -> tuple[list[float | None], list[float | None]] | None:
    """Lowest and highest rate among so many equal parts of each bin; None for a single part."""
    if parts < 2:
        return None
    count = (len(edges) - 1) * parts
    fine: Floats = np.linspace(edges[0], edges[-1], count + 1, dtype=np.float64)
    grown = series_over(log, counter, name, fine)
    if grown is None:
        return None
    rates = (grown / np.diff(fine)).reshape(-1, parts)
    # A bin of which nothing is known stays unknown; of the others, what is known counts.
    known = ~np.all(np.isnan(rates), axis=1)
    low, high = (np.full(len(rates), np.nan) for _ in range(2))
    low[known], high[known] = np.nanmin(rates[known], axis=1), np.nanmax(rates[known], axis=1)
    return _listed(low), _listed(high)


def _share(ranks: list[list[Step]], edges: Floats, *, what: str) -> list[float | None]:
    """Share of each bin that ranks spent waiting for data, or at work, by their step marks."""
    covered = np.zeros(len(edges) - 1)
    for steps in filter(None, ranks):
        spans = []
        for step in steps:
            middle_s = step.start_s + (step.wait_s or 0.0)
            spans.append((step.start_s, middle_s) if what == "wait" else (middle_s, step.end_s))
        covered += covered_s(spans, edges)
    width = edges[1] - edges[0]
    return _listed(np.clip(covered / (width * max(1, len(ranks))), 0.0, 1.0))


def _gpu_busy(log: CounterLog, edges: Floats, *, ranks: int) -> list[float | None]:
    """Mean over the used GPUs of the kernel-busy share; empty when none tells it."""
    middle = (edges[:-1] + edges[1:]) / 2
    means = [
        np.interp(middle, times, values, left=np.nan, right=np.nan)
        for times, values in gpus.kernel_busy(log, ranks=ranks)
    ]
    return _listed(np.mean(means, axis=0)) if means else []


def _epochs(seen: Observation, start_s: float) -> list[tuple[float, float]]:
    events = seen.ranks[0].events
    begins = [e.t_s - start_s for e in events if e.name == "epoch_start"]
    ends = [e.t_s - start_s for e in events if e.name == "epoch_end"]
    return list(zip(begins, ends, strict=False))


def _listed(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
