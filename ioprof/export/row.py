"""A run's readings and step marks as tidy rows: one value a row, in the order of recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ioprof.record.header import NodeHeader
from ioprof.record.reading import Number, Series, Tick
from ioprof.record.step import Step
from ioprof.record.store import RunDirectory, node_lines, read_rank

MARK = "ioprof.mark"


class Row(NamedTuple):
    """One value that was read at one moment. Counters are cumulative, as the kernel gives them;
    the base unit is in `name`. `value` is None where the kernel keeps none."""

    cell: str
    node: int
    hostname: str
    t_s: float
    """Monotonic seconds of the node."""
    time: str
    """The same moment by the node's calendar, ISO 8601 in UTC, to the microsecond."""
    source: str
    instance: str
    layer: str
    scope: str
    role: str
    """The place of a block device in its stack: top, middle, leaf; "" for everything else."""
    kind: str
    """counter, gauge, or step: a fact of the training step that ended at `t_s`."""
    name: str
    value: Number | None


def rows(run: RunDirectory) -> Iterator[Row]:
    """Every value of a run, cell after cell: first its nodes' readings, then its ranks' steps."""
    for cell in cells(run):
        nodes: dict[str, int] = {}
        for path in run.node_files(cell):
            header = header_of(path)
            nodes.setdefault(header.hostname, header.node)
            yield from _of_node(cell, path)
        for path in run.rank_files(cell):
            yield from _of_rank(cell, path, nodes)


def header_of(path: Path) -> NodeHeader:
    """The first line of a node's file."""
    header = next(node_lines(path))
    assert isinstance(header, NodeHeader)
    return header


def cells(run: RunDirectory) -> list[str]:
    """The cells that left readings, in the order in which they ran."""
    names = {path.parent.name for path in run.root.glob("cells/*/node-*.jsonl")}
    began = {
        name: min(header_of(path).clock.wall_s for path in files)
        for name in names
        if (files := run.node_files(name))
    }
    return sorted(began, key=lambda name: (began[name], name))


def _of_node(cell: str, path: Path) -> Iterator[Row]:
    lines = node_lines(path)
    header = next(lines)
    assert isinstance(header, NodeHeader)
    offset_s = header.clock.offset_s
    series: dict[int, Series] = {}
    for line in lines:
        match line:
            case Series():
                series[line.id] = line
            case Tick():
                time = iso(line.t_s + offset_s)
                for values in line.values:
                    of = series[values.id]
                    for kind, names, found in (
                        ("counter", of.counters, values.counters),
                        ("gauge", of.gauges, values.gauges),
                    ):
                        for name, value in zip(names, found, strict=True):
                            yield Row(
                                cell,
                                header.node,
                                header.hostname,
                                line.t_s,
                                time,
                                of.source,
                                of.instance,
                                of.layer.value,
                                of.scope.value,
                                of.role.value if of.role else "",
                                kind,
                                name,
                                value,
                            )


def _of_rank(cell: str, path: Path, nodes: Mapping[str, int]) -> Iterator[Row]:
    record = read_rank(path)
    offset_s = record.header.offset_s
    for step in record.steps:
        for name, value in _facts(step):
            yield Row(
                cell,
                nodes.get(record.header.hostname, 0),
                record.header.hostname,
                step.end_s,
                iso(step.end_s + offset_s),
                MARK,
                f"rank-{record.header.rank}",
                "stall" if name == "wait_seconds" else "host",
                "process",
                "",
                "step",
                name,
                value,
            )


def _facts(step: Step) -> tuple[tuple[str, Number | None], ...]:
    return (
        ("step_seconds", step.step_s),
        ("wait_seconds", step.wait_s),
        ("copy_seconds", step.h2d_s),
        ("samples", step.samples),
        ("stored_bytes", step.stored_bytes),
        ("epoch", step.epoch),
    )


def iso(wall_s: float) -> str:
    """Seconds of the Unix epoch as a date that every tool reads."""
    return datetime.fromtimestamp(wall_s, UTC).isoformat(timespec="microseconds")
