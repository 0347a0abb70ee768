"""Runs side by side: the same cells, the same numbers, and which of them differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from ioprof.analysis.coverage import covered_s
from ioprof.analysis.observation import Observation, observe
from ioprof.analysis.resample import FEWEST, Floats, relative_difference
from ioprof.analysis.storage import OPERATIONS, counter_seen, series_over, storage_counters
from ioprof.errors import UsageError
from ioprof.record.comparison import Comparison, Difference, Side
from ioprof.record.estimate import Interval
from ioprof.record.store import RunDirectory, read_json
from ioprof.record.study import Study

_Key = tuple[str, str, str]


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    study: Study
    cells: dict[_Key, list[Observation]]
    """By topology, loader and role: one for each repeat."""


def compare(runs: Sequence[RunDirectory], *, anyway: bool = False) -> Comparison:
    """Every number that the first run and another one have of the same cell.

    UsageError when they did different work (another dataset, batch, model, accelerator) and not
    `anyway`, when one is no run of `profile`, or when no cell is in both.
    """
    read = [_read(run) for run in runs]
    first, others = read[0], read[1:]
    unlike = tuple(sentence for other in others for sentence in _unlike(first, other))
    if unlike and not anyway:
        raise UsageError(
            f"These runs did different work, so their numbers may not be compared: "
            f"{'; '.join(unlike)}. Add --anyway to see them side by side all the same."
        )
    differences = tuple(
        difference
        for number, other in enumerate(others, start=1)
        for difference in _differences(first, other, number)
    )
    if not differences:
        raise UsageError(
            f"{first.name} and the others have no cell in common: no topology and loader ran in "
            "both. Profile with the same --topology and --loader."
        )
    return Comparison(
        runs=tuple(run.name for run in read),
        differences=differences,
        unlike=unlike,
        cautions=tuple(_cautions(read)),
    )


def _read(run: RunDirectory) -> _Run:
    if run.recorded.exists():
        raise UsageError(
            f"{run.root} is a recorded command. Runs of `ioprof profile` can be compared."
        )
    study = read_json(run.study, Study)
    cells: dict[_Key, list[Observation]] = {}
    for plan in study.cells:
        seen = observe(run, plan)
        if seen.stepping is not None:
            cells.setdefault((plan.topology, plan.loader, plan.role), []).append(seen)
    return _Run(name=str(run.root), study=study, cells=cells)


def _unlike(first: _Run, other: _Run) -> Iterator[str]:
    """Why two runs did different work. Where the dataset lies may differ: that is the question."""
    for what, of in _WORK:
        mine, theirs = of(first.study), of(other.study)
        if mine != theirs:
            yield f"{what} is {mine} in {first.name} and {theirs} in {other.name}"


_WORK: tuple[tuple[str, Callable[[Study], object]], ...] = (
    ("the number of samples", lambda s: f"{s.dataset.samples:,}"),
    ("the size of the dataset", lambda s: f"{s.dataset.stored_bytes:,} B"),
    ("the layout", lambda s: s.dataset.layout),
    ("the batch", lambda s: s.config.batch),
    ("the image size", lambda s: s.config.image_size),
    ("the model", lambda s: s.config.model),
    ("the accelerator", lambda s: _accelerator(s)),
)


def _accelerator(study: Study) -> str:
    one = study.accelerator
    rate = "" if one.samples_per_s is None else f" at {one.samples_per_s:g} samples/s"
    return f"{one.name} ({one.kind}){rate}"


def _differences(first: _Run, other: _Run, number: int) -> Iterator[Difference]:
    for key, mine in first.cells.items():
        theirs = other.cells.get(key)
        if theirs is None:
            continue
        for name, observed in _NUMBERS.items():
            a = [observed(seen, first.study) for seen in mine]
            b = [observed(seen, other.study) for seen in theirs]
            if any(map(len, a)) or any(map(len, b)):
                yield _difference(key, name, number, a, b)


def _difference(
    key: _Key, name: str, number: int, first: list[Floats], other: list[Floats]
) -> Difference:
    kept = [[values for values in side if len(values)] for side in (first, other)]
    a, b = (_side(values) for values in kept)
    value = low = high = None
    reason = a.reason or b.reason
    if a.value is not None and b.value is not None:
        if a.value == 0:
            reason = "it is 0 in the first run: nothing can be so many per cent of that"
        else:
            value, low, high = relative_difference(*kept)
            if low is None:
                reason = f"fewer than {FEWEST} observations: no interval"
    significant = None if low is None or high is None else not low <= 0 <= high
    topology, loader, role = key
    return Difference(
        topology=topology,
        loader=loader,
        role=role,
        name=name,
        run=number,
        first=a,
        other=b,
        relative=Interval(value=value, low=low, high=high),
        significant=significant,
        reason=reason,
    )


def _side(repeats: list[Floats]) -> Side:
    if not repeats:
        return Side(value=None, reason="not known in one of the runs")
    every = np.concatenate(repeats)
    return Side(value=float(np.mean(every)), n=len(every), repeats=len(repeats))


def _blocks(name: str) -> Callable[[Observation, Study], Floats]:
    def of(seen: Observation, study: Study) -> Floats:
        assert seen.stepping is not None
        if name == "wait_s" and seen.plan.role == "synthetic":
            return np.empty(0)  # microseconds of asking for what is there already
        values = np.asarray(getattr(seen.stepping.blocks, name), dtype=np.float64)
        return values[np.isfinite(values)]

    return of


def _per_second(counter: str | None) -> Callable[[Observation, Study], Floats]:
    """Of each whole second of the window; of what a warm cell reads nothing is compared."""

    def of(seen: Observation, study: Study) -> Floats:
        nothing = np.empty(0)
        if seen.log is None or seen.stepping is None or seen.plan.cache == "warm":
            return nothing
        window = seen.stepping.window
        edges: Floats = np.arange(window.start_s, window.end_s, 1.0, dtype=np.float64)
        storage = counter_seen(seen.log, storage_counters(study))
        if storage is None or len(edges) < 2 or seen.plan.role == "synthetic":
            return nothing
        grown = series_over(seen.log, storage, counter or storage.counter, edges)
        if grown is None:
            return nothing
        return np.asarray(grown[np.isfinite(grown) & _stepped(seen, edges)])

    return of


def _stepped(seen: Observation, edges: Floats) -> npt.NDArray[np.bool_]:
    """Which of the seconds between `edges` were stepped through: pauses between epochs are none."""
    steps = [step for step in seen.ranks[0].steps if step.phase == "steady"]
    covered = covered_s([(step.start_s, step.end_s) for step in steps], edges)
    return np.asarray(covered >= 0.99 * np.diff(edges))


_NUMBERS: dict[str, Callable[[Observation, Study], Floats]] = {
    "samples_per_s": _blocks("samples_per_s"),
    "step_s": _blocks("step_s"),
    "wait_s": _blocks("wait_s"),
    "storage_read_bytes_per_s": _per_second(None),
    "reads_per_s": _per_second(OPERATIONS),
}
NAMES = tuple(_NUMBERS)
"""What is compared, by the names of a summary."""


def _cautions(read: Sequence[_Run]) -> Iterator[str]:
    if any(len(cells) < 2 for run in read for cells in run.cells.values()):
        yield (
            "Some cells ran once: how much they scatter from run to run is not in the intervals. "
            "Profile with --repeats 3 or more."
        )
    hosts = {run.study.host.hostname for run in read}
    if len(hosts) > 1:
        yield f"The runs were made on different hosts: {', '.join(sorted(hosts))}."
    emulated = {r.study.accelerator.name for r in read if r.study.accelerator.kind == "emulated"}
    if emulated:
        yield f"The accelerator was emulated: {', '.join(sorted(emulated))}."
