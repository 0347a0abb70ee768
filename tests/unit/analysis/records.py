"""Synthetic records of one node and of its ranks, from literal readings.

`table` lays down counters as they are written in a test, `ramp` counters that grow evenly over a
span, `rank` the steps of one rank from their times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ioprof.record.header import ClockAnchor, NodeHeader, RankHeader
from ioprof.record.reading import (
    Layer,
    SamplerEnd,
    Scope,
    Series,
    SeriesValues,
    Tick,
    Unavailable,
)
from ioprof.record.step import Event, Scalar, Step
from ioprof.record.store import FORMAT_VERSION, NodeRecord, RankRecord, gathered

SAMPLE_BYTES = 100_000
BATCH = 50
START_S = 100.0
"""Where the first epoch begins unless a test says otherwise."""
GONE = "gone"
"""Stands in a column for a tick at which the instance was not there."""

Column = Sequence[float | str | None]
Columns = Mapping[tuple[str, str], Mapping[str, Column]]

_LAYERS = {
    "block.diskstats": (Layer.WIRE, Scope.DEVICE),
    "process.io": (Layer.APP, Scope.PROCESS),
    "process.block": (Layer.CLIENT, Scope.PROCESS),
}


def node_header(*, interval_s: float) -> NodeHeader:
    return NodeHeader(
        format_version=FORMAT_VERSION,
        node=0,
        hostname="node-a",
        boot_id="6f1d2f5e-0000-4000-8000-000000000000",
        pid=10,
        clock=ClockAnchor(monotonic_s=99.0, wall_s=1_790_000_000.0),
        interval_s=interval_s,
        data_path="/data",
        cpus=(0, 1),
    )


def table(
    counters: Columns,
    *,
    times: Sequence[float],
    gauges: Columns | None = None,
    interval_s: float = 1.0,
    unavailable: Mapping[str, str] | None = None,
    ended: bool = True,
    missed_ticks: int = 0,
) -> NodeRecord:
    """A node's record: (source, instance) → name → one value for each of `times`."""
    gauges = gauges or {}
    series = []
    for number, key in enumerate([*counters, *(key for key in gauges if key not in counters)]):
        layer, scope = _LAYERS.get(key[0], (Layer.HOST, Scope.HOST))
        series.append(
            Series(
                id=number,
                source=key[0],
                instance=key[1],
                layer=layer,
                scope=scope,
                counters=tuple(counters.get(key, {})),
                gauges=tuple(gauges.get(key, {})),
            )
        )
    ticks = []
    for row, t_s in enumerate(times):
        values = []
        for one in series:
            key = (one.source, one.instance)
            of_counters = [column[row] for column in counters.get(key, {}).values()]
            of_gauges = [column[row] for column in gauges.get(key, {}).values()]
            if GONE not in (*of_counters, *of_gauges):
                values.append(SeriesValues(one.id, _numbers(of_counters), _numbers(of_gauges)))
        ticks.append(Tick(t_s=t_s, values=tuple(values)))
    end = SamplerEnd(
        t_s=times[-1],
        ticks=len(times),
        missed_ticks=missed_ticks,
        cpu_s=0.01 * (times[-1] - times[0]),
    )
    missing = [Unavailable(source=name, reason=why) for name, why in (unavailable or {}).items()]
    header = node_header(interval_s=interval_s)
    return gathered([header, *missing, *series, *ticks, *([end] if ended else [])])


def _numbers(values: Sequence[float | str | None]) -> tuple[float | None, ...]:
    return tuple(value for value in values if not isinstance(value, str))


def ramp(
    totals: Mapping[tuple[str, str], Mapping[str, float]],
    *,
    start_s: float,
    end_s: float,
    interval_s: float = 0.1,
    until_s: float | None = None,
    **more: Any,
) -> NodeRecord:
    """Counters that stand still, grow evenly by their total from `start_s` to `end_s`, and stand
    still again. The sampler is killed at `until_s` if that is given."""
    first, last = start_s - 5 * interval_s, end_s + 5 * interval_s
    count = int((last - first) / interval_s) + 2
    times = [round(first + i * interval_s, 6) for i in range(count)]
    if until_s is not None:
        times = [t for t in times if t <= until_s]
        more["ended"] = False
    share = [min(1.0, max(0.0, (t - start_s) / (end_s - start_s))) for t in times]
    columns = {
        key: {name: [1e6 + total * s for s in share] for name, total in named.items()}
        for key, named in totals.items()
    }
    return table(columns, times=times, interval_s=interval_s, **more)


def rank(
    step_s: Sequence[float],
    *,
    number: int = 0,
    world: int = 1,
    samples: int | Sequence[int] = BATCH,
    sample_bytes: int | None = SAMPLE_BYTES,
    wait_s: float | None = 0.0,
    h2d_s: float | None = None,
    epochs: Sequence[int] = (),
    pause_s: float = 0.0,
    prefetch: int = 0,
    batch: int = BATCH,
    drain: int = 0,
    start_s: float = START_S,
    events: Sequence[Event] = (),
) -> RankRecord:
    """One rank whose steps take `step_s`, in epochs of so many steps with pauses between.

    The last `drain` of them are taken after the clock was stopped.
    """
    counts = list(epochs) or [len(step_s)]
    loader: dict[str, Scalar] = {
        "loader": "torch-files",
        "workers": 3,
        "batch": batch,
        "prefetch_batches": prefetch,
    }
    steps: list[Step] = []
    marks = [Event(t_s=start_s - 0.1, name="loader", fields=loader), *events]
    now_s = start_s
    for epoch, count in enumerate(counts):
        marks.append(Event(t_s=now_s, name="epoch_start", fields={"epoch": epoch}))
        for _ in range(count):
            i = len(steps)
            made = samples if isinstance(samples, int) else samples[i]
            steps.append(
                Step(
                    index=i,
                    epoch=epoch,
                    start_s=now_s,
                    end_s=now_s + step_s[i],
                    samples=made,
                    stored_bytes=None if sample_bytes is None else made * sample_bytes,
                    wait_s=wait_s,
                    h2d_s=h2d_s,
                    phase="drain" if i >= len(step_s) - drain else "steady",
                )
            )
            now_s += step_s[i]
        marks.append(Event(t_s=now_s, name="epoch_end", fields={"epoch": epoch}))
        now_s += pause_s
    header = RankHeader(
        format_version=FORMAT_VERSION,
        rank=number,
        local_rank=number,
        world_size=world,
        hostname="node-a",
        boot_id="6f1d2f5e-0000-4000-8000-000000000000",
        pid=100 + number,
        monotonic_s=start_s - 1.0,
        wall_s=1_790_000_000.0,
    )
    return RankRecord(header=header, steps=tuple(steps), events=tuple(marks))
