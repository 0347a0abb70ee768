"""A small record, written by hand, whose every number is known."""

from pathlib import Path

import msgspec

from ioprof.record.header import ClockAnchor, NodeHeader, RankHeader
from ioprof.record.reading import Layer, Role, SamplerEnd, Scope, Series, SeriesValues, Tick
from ioprof.record.step import Event, Step
from ioprof.record.store import RunDirectory

DISK = Series(
    id=0,
    source="block.diskstats",
    instance="vda",
    layer=Layer.WIRE,
    scope=Scope.DEVICE,
    counters=("read_bytes_total", "merges_total"),
    gauges=("in_flight",),
    role=Role.TOP,
)
BYTES = (0, 1000, 1000, 500, 700)
"""At 10.0 s, 10.1 s and so on: the counter begins anew before 10.3 s."""
IN_FLIGHT = (3, 3, None, 5, 5)
WALL_S = 1_700_000_000.0
"""2023-11-14T22:13:20 UTC, when the monotonic clock stood at 10 s."""


def header(node: int = 0, hostname: str = "n1") -> NodeHeader:
    return NodeHeader(
        format_version=1,
        node=node,
        hostname=hostname,
        boot_id="b",
        pid=7,
        clock=ClockAnchor(monotonic_s=10.0, wall_s=WALL_S),
        interval_s=0.1,
        data_path="/data",
        cpus=(0, 1),
    )


def rank_header(rank: int = 0) -> RankHeader:
    return RankHeader(
        format_version=1,
        rank=rank,
        local_rank=rank,
        world_size=1,
        hostname="n1",
        boot_id="b",
        pid=8,
        monotonic_s=10.0,
        wall_s=WALL_S,
    )


def ticks() -> list[Tick]:
    return [
        Tick(
            t_s=round(10.0 + 0.1 * row, 1),
            values=(SeriesValues(id=0, counters=(count, None), gauges=(waiting,)),),
        )
        for row, (count, waiting) in enumerate(zip(BYTES, IN_FLIGHT, strict=True))
    ]


STEPS = (
    Event(t_s=10.0, name="epoch_start", fields={"epoch": 0}),
    Step(index=0, epoch=0, start_s=10.0, end_s=10.2, samples=4, stored_bytes=900, wait_s=0.05),
    Step(index=1, epoch=0, start_s=10.2, end_s=10.35, samples=4, wait_s=0.5),
    Event(t_s=10.4, name="epoch_end", fields={"epoch": 0}),
)


def write(root: Path, *, cells: tuple[str, ...] = ("command",)) -> RunDirectory:
    run = RunDirectory.create(root, overwrite=False)
    for cell in cells:
        folder = run.cell(cell)
        folder.mkdir(parents=True)
        end = SamplerEnd(t_s=10.4, ticks=5, missed_ticks=0, cpu_s=0.001)
        _lines(folder / "node-0.jsonl", [header(), DISK, *ticks(), end])
        _lines(folder / "rank-0.jsonl", [rank_header(), *STEPS])
    return run


def _lines(path: Path, records: list[msgspec.Struct]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in records))
