"""Perfetto, and Chrome's trace viewer: counters as tracks, steps as slices.

The format is Chrome's trace events as JSON (ui.perfetto.dev opens it): times in microseconds, here
since the first look of the run by the calendar, so that cells and nodes stand on one axis.
A counter's track is its rate since the look before; held until the next event of the track, it sums
to what the counter grew by. A rate that stays the same is said once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ioprof.export.row import cells, header_of, iso
from ioprof.record.columns import Columns
from ioprof.record.store import RankRecord, RunDirectory, read_node, read_rank

_Event = dict[str, Any]
_ANEW = "began to count anew: its rate since the look before is not known"


def write(run: RunDirectory, out: BinaryIO) -> None:
    """One JSON object; cell after cell, so that one of them is in memory at a time."""
    names = cells(run)
    paths = [path for name in names for path in run.node_files(name)]
    start_s = min((header_of(path).clock.wall_s for path in paths), default=0.0)
    out.write(b'{"traceEvents":[')
    comma = b""
    for event in _events(run, names, start_s):
        out.write(comma + b"\n" + msgspec.json.encode(event))
        comma = b","
    end = {"run": run.root.name, "start": iso(start_s)}
    out.write(b'\n],"displayTimeUnit":"ms","otherData":' + msgspec.json.encode(end) + b"}\n")


def _events(run: RunDirectory, names: Iterable[str], start_s: float) -> Iterator[_Event]:
    process = 0
    for name in names:
        ranks = [read_rank(path) for path in run.rank_files(name)]
        for path in run.node_files(name):
            process += 1
            yield from _of_node(name, path, process, start_s)
            header = header_of(path)
            mine = [r for r in ranks if r.header.hostname == header.hostname]
            ranks = [r for r in ranks if r.header.hostname != header.hostname]
            for rank in mine:
                yield from _of_rank(rank, process, start_s)


def _of_node(cell: str, path: Path, process: int, start_s: float) -> Iterator[_Event]:
    node = read_node(path)
    yield _named("process_name", process, 0, f"{cell}, {node.header.hostname}")
    yield {**_named("process_sort_index", process, 0, ""), "args": {"sort_index": process}}
    offset_s = node.header.clock.offset_s - start_s
    for columns in node.columns:
        yield from _tracks(columns, process, offset_s)


def _tracks(columns: Columns, process: int, offset_s: float) -> Iterator[_Event]:
    series = columns.series
    wide, narrow = len(series.counters), len(series.gauges)
    for at, name in enumerate(series.counters):
        track = f"{series.source} {series.instance} {name.removesuffix('_total')} per second"
        looks = zip(columns.times, columns.counters[at::wide], strict=True)
        for t_s, value in _rates(looks):
            yield _counter(track, process, t_s + offset_s, value or 0.0)
            if value is None:
                yield _instant(f"{series.instance} {name} {_ANEW}", process, t_s + offset_s)
    for at, name in enumerate(series.gauges):
        track = f"{series.source} {series.instance} {name}"
        last = None
        for t_s, value in zip(columns.times, columns.gauges[at::narrow], strict=True):
            if not math.isnan(value) and value != last:
                yield _counter(track, process, t_s + offset_s, value)
                last = value


def _rates(looks: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float | None]]:
    """When each rate begins, and the rate; None where the counter fell. Ends at a rate of 0."""
    before: tuple[float, float] | None = None
    shown: float | None = 0.0
    for t_s, value in looks:
        if math.isnan(value):
            continue
        if before is not None and t_s > before[0]:
            grown = value - before[1]
            rate = grown / (t_s - before[0]) if grown >= 0 else None
            if rate != shown or rate is None:
                yield before[0], rate
                shown = rate
        before = t_s, value
    if before is not None and shown:
        yield before[0], 0.0


def _instant(name: str, process: int, t_s: float) -> _Event:
    at = _microseconds(t_s)
    return {"ph": "i", "name": name, "pid": process, "tid": 0, "ts": at, "s": "p"}


def _counter(track: str, process: int, t_s: float, value: float) -> _Event:
    return {
        "ph": "C",
        "name": track,
        "pid": process,
        "tid": 0,
        "ts": _microseconds(t_s),
        "args": {"value": value},
    }


def _of_rank(record: RankRecord, process: int, start_s: float) -> Iterator[_Event]:
    header = record.header
    thread = header.rank + 1
    offset_s = header.offset_s - start_s
    yield _named("thread_name", process, thread, f"rank {header.rank}")
    for begin_s, end_s, epoch in _epochs(record):
        yield _slice(f"epoch {epoch}", process, thread, begin_s + offset_s, end_s + offset_s, {})
    for step in record.steps:
        begin_s, end_s = step.start_s + offset_s, step.end_s + offset_s
        facts = {"samples": step.samples, "stored_bytes": step.stored_bytes, "phase": step.phase}
        yield _slice(f"step {step.index}", process, thread, begin_s, end_s, facts)
        if step.wait_s:
            waited_s = min(begin_s + step.wait_s, end_s)
            yield _slice("wait for data", process, thread, begin_s, waited_s, {})


def _epochs(record: RankRecord) -> Iterator[tuple[float, float, Any]]:
    begun: dict[Any, float] = {}
    for event in record.events:
        epoch = event.fields.get("epoch")
        if event.name == "epoch_start":
            begun[epoch] = event.t_s
        elif event.name == "epoch_end" and epoch in begun:
            yield begun.pop(epoch), event.t_s, epoch


def _slice(
    name: str, process: int, thread: int, begin_s: float, end_s: float, facts: dict[str, Any]
) -> _Event:
    begin = _microseconds(begin_s)
    return {
        "ph": "X",
        "name": name,
        "cat": name.split()[0],
        "pid": process,
        "tid": thread,
        "ts": begin,
        "dur": round(_microseconds(end_s) - begin, 3),
        "args": facts,
    }


def _named(kind: str, process: int, thread: int, name: str) -> _Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _microseconds(t_s: float) -> float:
    return round(t_s * 1e6, 3)
