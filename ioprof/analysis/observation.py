"""One cell as it was recorded: plan, outcome, the node's counters, the ranks' marks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from ioprof.analysis.counters import CounterLog
from ioprof.analysis.window import Stepping, stepping
from ioprof.errors import RunFileError
from ioprof.record.store import (
    NodeRecord,
    RankRecord,
    RunDirectory,
    read_json,
    read_node,
    read_rank,
)
from ioprof.record.study import CellOutcome, CellPlan

_Record = TypeVar("_Record")


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What is there of a cell; any part may be missing when the run ended badly."""

    plan: CellPlan
    outcome: CellOutcome | None
    node: NodeRecord | None
    log: CounterLog | None
    ranks: tuple[RankRecord, ...]
    stepping: Stepping | None
    problems: tuple[str, ...]
    """What could not be read, in words."""

    @property
    def started(self) -> bool:
        """Whether the cell was begun at all."""
        return self.outcome is not None or self.node is not None

    @property
    def span_s(self) -> tuple[float, float] | None:
        """First epoch's start to the last step's end, drain included: all reads of the dataset."""
        starts = [
            event.t_s for rank in self.ranks for event in rank.events if event.name == "epoch_start"
        ]
        ends = [step.end_s for rank in self.ranks for step in rank.steps]
        return (min(starts), max(ends)) if starts and ends else None

    @property
    def consumed_bytes(self) -> int | None:
        """Stored bytes of every sample that was delivered, warm-up and drain included."""
        sizes = [step.stored_bytes for rank in self.ranks for step in rank.steps]
        known = [size for size in sizes if size is not None]
        return sum(known) if sizes and len(known) == len(sizes) else None


def _readable(
    paths: list[Path], read: Callable[[Path], _Record], problems: list[str]
) -> list[_Record]:
    """What can be read of `paths`; why one cannot is added to `problems`."""
    found = []
    for path in paths:
        try:
            found.append(read(path))
        except RunFileError as error:
            problems.append(str(error))
    return found


def observe(run: RunDirectory, plan: CellPlan) -> Observation:
    """Read what there is of a cell. Never raises for a cell that ended badly."""
    problems: list[str] = []
    ended = [path for path in (run.cell(plan.id) / "cell.json",) if path.exists()]
    outcomes = _readable(ended, lambda path: read_json(path, CellOutcome), problems)
    outcome = outcomes[0] if outcomes else None
    nodes = _readable(run.node_files(plan.id), read_node, problems)
    ranks = _readable(run.rank_files(plan.id), read_rank, problems)
    if outcome is not None and any(node.truncated for node in nodes):
        problems.append("the sampler was killed before its end")
    expected = plan.nodes * plan.accelerators_per_node
    if outcome is not None and len(ranks) < expected:
        problems.append(f"{expected - len(ranks)} of {expected} ranks left no marks")
    return Observation(
        plan=plan,
        outcome=outcome,
        node=nodes[0] if nodes else None,
        log=CounterLog(nodes[0]) if nodes else None,
        ranks=tuple(ranks),
        stepping=stepping(tuple(ranks)),
        problems=tuple(problems),
    )
