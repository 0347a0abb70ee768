"""Whole cells and run directories, from synthetic records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ioprof.analysis.counters import CounterLog
from ioprof.analysis.observation import Observation
from ioprof.analysis.window import stepping
from ioprof.record.ceiling import StorageCeiling
from ioprof.record.dataset import Dataset, Mount, SizeStatistics
from ioprof.record.header import Host
from ioprof.record.reading import SeriesValues, Tick
from ioprof.record.step import Event, Step
from ioprof.record.store import FORMAT_VERSION, NodeRecord, RankRecord, RunDirectory, write_json
from ioprof.record.study import (
    AcceleratorModel,
    CacheState,
    CellOutcome,
    CellPlan,
    CellRole,
    ProfileConfig,
    Residency,
    Study,
)
from tests.unit.analysis.records import BATCH, SAMPLE_BYTES, START_S, ramp, rank

EMULATED = AcceleratorModel(
    name="H100", kind="emulated", samples_per_s=250.0, source="typed in for a test"
)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell to be written, or observed as it is."""

    plan: CellPlan
    outcome: CellOutcome | None = None
    node: NodeRecord | None = None
    ranks: tuple[RankRecord, ...] = ()


_CACHES: dict[CellRole, CacheState | None] = {
    "synthetic": None,
    "cold": "cold",
    "warm": "warm",
    "as-found": "as-found",
    "prep": "warm",
    "fetch": "cold",
}


def plan(
    role: CellRole = "cold", *, topology: str = "1x1", loader: str = "torch-files"
) -> CellPlan:
    """The plan of one cell as `profile` makes it."""
    if role in ("synthetic", "fetch"):
        loader = {"synthetic": "synthetic", "fetch": "reads"}[role]
    nodes, each = topology.split("x")
    return CellPlan(
        id=f"{topology}-{role}" if loader == role else f"{topology}-{loader}-{role}",
        topology=topology,
        nodes=int(nodes),
        accelerators_per_node=int(each),
        loader=loader,
        role=role,
        cache=_CACHES[role],
        accelerator=EMULATED,
        engine="torchrun",
        repeat=1,
        command=("python", "-m", "ioprof_pipelines"),
    )


def outcome(cell_id: str, *, resident: float | None = None, **changes: Any) -> CellOutcome:
    """The outcome of a cell that ran its course, so much of the dataset being cached before it."""
    before = Residency(resident_fraction=resident, method="cachestat", pages_checked=100)
    ran = CellOutcome(
        id=cell_id,
        exit_status=0,
        started_s=START_S - 2.0,
        ended_s=START_S + 60.0,
        residency_before=before if resident is not None else None,
        residency_after=before if resident is not None else None,
    )
    return msgspec.structs.replace(ran, **changes)


def observed(cell: Cell) -> Observation:
    """The observation of a cell that is whole, without a file."""
    return Observation(
        plan=cell.plan,
        outcome=cell.outcome,
        node=cell.node,
        log=CounterLog(cell.node) if cell.node else None,
        ranks=cell.ranks,
        stepping=stepping(cell.ranks),
        problems=(),
    )


def counted(
    steps: RankRecord | Sequence[RankRecord],
    *,
    requested: float | None = 1.0,
    storage: float | None = 1.0,
    block: float | None = None,
    interval_s: float = 0.1,
    cpu_busy: float = 0.5,
    daemon_cpus: float | None = None,
    **more: Any,
) -> NodeRecord:
    """Counters beside `steps`: requested and storage bytes so many times the consumed bytes, read
    evenly from the first step to the last, in reads of 50,000 B and 2 ms."""
    ranks = [steps] if isinstance(steps, RankRecord) else list(steps)
    start_s = min(step.start_s for one in ranks for step in one.steps)
    end_s = max(step.end_s for one in ranks for step in one.steps)
    consumed = sum(step.stored_bytes or 0 for one in ranks for step in one.steps)
    totals: dict[tuple[str, str], dict[str, float]] = {
        ("cpu", "cpus"): {
            "busy_seconds_total": 2 * cpu_busy * (end_s - start_s),
            "iowait_seconds_total": 0.0,
            "total_seconds_total": 2 * (end_s - start_s),
        },
        ("pressure.io", "host"): {"stall_some_seconds_total": 0.25 * (end_s - start_s)},
    }
    if requested is not None:
        totals["process.io", "tree"] = {"requested_bytes_total": requested * consumed}
    if storage is not None:
        totals["block.diskstats", "vda"] = {
            "read_bytes_total": storage * consumed,
            "read_operations_total": storage * consumed / 50_000,
            "read_time_seconds_total": storage * consumed / 50_000 * 0.002,
        }
    if daemon_cpus is not None:
        totals["fuse.daemon", "/data"] = {"busy_seconds_total": daemon_cpus * (end_s - start_s)}
    if block is not None:
        totals["process.block", "tree"] = {"read_bytes_total": block * consumed}
    more.setdefault("unavailable", {"nvml": "no NVIDIA driver is loaded here"})
    return ramp(totals, start_s=start_s, end_s=end_s, interval_s=interval_s, **more)


def study(cells: Sequence[CellPlan], **changes: Any) -> Study:
    """A study of `cells` on one node with 2 CPUs; `changes` replace fields of it."""
    topologies = tuple(dict.fromkeys(cell.topology for cell in cells))
    loaders = dict.fromkeys(c.loader for c in cells if c.role not in ("synthetic", "fetch"))
    made = Study(
        format_version=FORMAT_VERSION,
        ioprof_version="0.1.0",
        created="2026-12-01T12:00:00Z",
        command=("ioprof", "profile", "--data", "/data"),
        config=ProfileConfig(
            data="/data",
            loaders=tuple(loaders),
            topologies=topologies,
            accelerator="emulated:250",
            caches=("cold", "warm"),
            batch=BATCH,
            image_size=224,
            model="resnet50",
            workers=2,
            duration_s=8.0,
            repeats=1,
            interval_s=0.1,
            engine="torchrun",
            fio=True,
            seed=0,
        ),
        accelerator=EMULATED,
        host=Host(
            hostname="node-a",
            boot_id="6f1d2f5e-0000-4000-8000-000000000000",
            kernel="6.12.8",
            cpu="AMD EPYC 9654",
            logical_cpus=2,
            usable_cpus=2.0,
            memory_bytes=8 * 2**30,
        ),
        dataset=Dataset(
            path="/data",
            layout="files",
            samples=4000,
            classes=10,
            stored_bytes=4000 * SAMPLE_BYTES,
            stored_bytes_per_sample=SizeStatistics(
                mean=SAMPLE_BYTES, std=0, p50=1e5, p95=1e5, p99=1e5, max=1e5
            ),
        ),
        mount=Mount(
            mount_id=30,
            path="/data",
            filesystem="ext4",
            source="/dev/vda",
            root="/",
            options=("ro",),
            major_minor="254:0",
        ),
        devices=("vda",),
        top_devices=("vda",),
        cells=tuple(cells),
    )
    return msgspec.structs.replace(made, **changes)


def write_run(
    root: Path,
    cells: Sequence[Cell],
    *,
    storage: StorageCeiling | None = None,
    **changes: Any,
) -> RunDirectory:
    """A run directory with these cells; one without outcome, node and ranks was never run."""
    run = RunDirectory.create(root, overwrite=False)
    write_json(run.study, study([cell.plan for cell in cells], **changes))
    if storage is not None:
        write_json(run.fio / "ceiling.json", storage)
    for cell in cells:
        folder = run.cell(cell.plan.id)
        if cell.outcome is None and cell.node is None:
            continue
        folder.mkdir(parents=True)
        if cell.outcome is not None:
            write_json(folder / "cell.json", cell.outcome)
        if cell.node is not None:
            write_node(folder / "node-0.jsonl", cell.node)
        for one in cell.ranks:
            lines: list[Step | Event] = sorted([*one.steps, *one.events], key=_written_s)
            _write_lines(folder / f"rank-{one.header.rank}.jsonl", [one.header, *lines])
    return run


def write_node(path: Path, node: NodeRecord) -> None:
    """A node's file as the sampler writes it."""
    rows: dict[float, list[SeriesValues]] = {}
    for columns in node.columns:
        for t_s, values in columns.rows():
            rows.setdefault(t_s, []).append(values)
    ticks = [Tick(t_s=t_s, values=tuple(rows[t_s])) for t_s in sorted(rows)]
    series = [columns.series for columns in node.columns]
    end = [node.end] if node.end else []
    _write_lines(path, [node.header, *node.unavailable, *series, *ticks, *end])


def _written_s(line: Step | Event) -> float:
    return line.t_s if isinstance(line, Event) else line.end_s


def _write_lines(path: Path, lines: Sequence[msgspec.Struct]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


STEP_S: dict[CellRole, float] = {
    "synthetic": 0.2,
    "cold": 0.25,
    "warm": 0.22,
    "prep": 0.1,
    "fetch": 0.24,
}
"""Of `whole_cells`: 250, 200, 227, 500 and 208 samples/s; AU is 0.8."""
FIO = StorageCeiling(
    read_bytes_per_s=50e6, reads_per_s=1000.0, jobs=2, depth=1, engine="psync", direct=True
)


def whole_cells(
    *, steps: int = 40, interval_s: float = 0.1, storage: dict[CellRole, float] | None = None
) -> list[Cell]:
    """Every cell of a small study, in order. Storage delivers what the cold ones consume, or so
    many times as much as `storage` says by role."""
    found = []
    for role, step_s in STEP_S.items():
        own = plan(role)
        reads = role != "synthetic"
        cold = role in ("cold", "fetch")
        marks = rank([step_s] * steps, sample_bytes=SAMPLE_BYTES if reads else None)
        share = (storage or {}).get(role, 1.0 if cold else 0.0)
        found.append(
            Cell(
                plan=own,
                outcome=outcome(own.id, resident=(0.0 if cold else 1.0) if reads else None),
                node=counted(marks, storage=share, interval_s=interval_s),
                ranks=(marks,),
            )
        )
    return found
