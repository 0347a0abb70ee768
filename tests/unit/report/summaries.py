"""Literal summaries for the report's tests: a throttled mount under emulated accelerators.

The numbers follow from five: each accelerator could take 2,500 samples/s, the loaders alone reach
800 (torch-files) and 2,000 (dali-files), the mount delivers 20 MB/s, a sample holds 113,000 B.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ioprof.record.dataset import SizeStatistics
from ioprof.record.estimate import Estimate, Interval
from ioprof.record.finding import Finding
from ioprof.record.header import Host
from ioprof.record.study import AcceleratorModel, CellRole
from ioprof.record.summary import (
    CacheSummary,
    Ceilings,
    CellSummary,
    DatasetSummary,
    Demand,
    Headroom,
    MountSummary,
    Reconciliation,
    SamplerSummary,
    Summary,
    Training,
    Window,
)

SAMPLE_BYTES = 113_000
MOUNT_BYTES_PER_S = 20e6
PER_ACCELERATOR = 2500.0
BATCH = 64
PREP = {"torch-files": 800.0, "dali-files": 2000.0}
EMULATED = AcceleratorModel(
    name="NVIDIA A100-SXM4-80GB",
    kind="emulated",
    samples_per_s=PER_ACCELERATOR,
    source="MLPerf Training v3.1",
)
REAL = AcceleratorModel(name="NVIDIA H200", kind="cuda")


def estimate(value: float, *, spread: float = 0.02, n: int = 12) -> Estimate:
    return Estimate(
        median=value,
        mad=value * spread / 2,
        n=n,
        low=value * (1 - spread),
        high=value * (1 + spread),
    )


def accelerators(topology: str) -> int:
    nodes, each = topology.split("x")
    return int(nodes) * int(each)


def rate_of(topology: str, loader: str, role: str) -> float:
    """Samples/s of one cell, all ranks together."""
    compute = PER_ACCELERATOR * accelerators(topology)
    prep = PREP.get(loader, 700.0)
    fetch = MOUNT_BYTES_PER_S / SAMPLE_BYTES
    return {
        "synthetic": compute,
        "prep": prep,
        "fetch": fetch,
        "warm": min(compute, prep),
        "cold": min(compute, prep, fetch),
        "as-found": min(compute, prep, fetch),
    }[role]


def cell(topology: str, loader: str, role: CellRole, **changes: Any) -> CellSummary:
    rate = rate_of(topology, loader, role)
    ranks = accelerators(topology)
    step = BATCH * ranks / rate
    alone = BATCH / PER_ACCELERATOR
    reads = role != "synthetic"
    from_disk = role in ("cold", "fetch", "as-found")
    consumed = rate * SAMPLE_BYTES
    warm = BATCH * ranks / rate_of(topology, loader, "warm")
    trained = role in ("cold", "warm", "as-found")
    asked: Any = None if not reads else "cold" if from_disk else "warm"
    made = CellSummary(
        id=f"{topology}-{loader}-{role}",
        topology=topology,
        nodes=int(topology.split("x")[0]),
        accelerators_per_node=int(topology.split("x")[1]),
        loader=loader,
        role=role,
        repeat=1,
        repeats=1,
        cache=CacheSummary(
            asked=asked,
            observed_resident_fraction=None if not reads else 0.0 if from_disk else 1.0,
            observed_resident_fraction_after=None if not reads else 1.0,
            state=asked or "not read",
        ),
        accelerator=EMULATED,
        engine="torchrun",
        window=Window(
            start_s=3.0,
            end_s=11.0,
            seconds=8.0,
            first_step=5,
            last_step=28,
            steps=24,
            warmup_steps=5,
            epochs=2,
            block_steps=2,
        ),
        samples_per_s=estimate(rate, spread=0.04),
        step_s=estimate(step, spread=0.04),
        wait_s=estimate(max(step - alone, 0.0)),
        compute_s=estimate(alone),
        au=alone / step if trained else None,
        data_stall_s=step - alone if role == "cold" else None,
        prep_stall_s=warm - alone if trained else None,
        fetch_stall_s=step - warm if role == "cold" else None,
        gpu_kernel_busy=None,
        cpu_busy=0.42,
        consumed_bytes_per_s=consumed if reads else None,
        requested_bytes_per_s=consumed * 1.001 if reads else None,
        storage_read_bytes_per_s=(consumed * 1.01 if from_disk else 0.0) if reads else None,
        storage_read_source="block.diskstats vda (wire, whole device)" if reads else None,
        peak_storage_read_bytes_per_s=consumed * 1.2 if from_disk else None,
        reads_per_s=consumed / 65536 if from_disk else None,
        read_request_bytes=65536.0 if from_disk else None,
        read_request_sizes=None,
        read_latency_s=0.0031 if from_disk else None,
        metadata_ops_per_s=None,
        metadata_ops_source=None,
        cache_served=0.0 if from_disk else 1.0 if reads else None,
        read_amplification=1.01 if from_disk else None,
        io_pressure=0.81 if from_disk else 0.0,
        sampler=SamplerSummary(interval_s=0.1, cpu_fraction=0.004, missed_ticks=0, ticks=110),
        reconciliation=reconciliation(consumed) if from_disk else None,
        training=None,
        quarantined=(),
        verdict={"cold": "fetch", "warm": "prep", "as-found": "fetch"}.get(role, "reference"),
        partial=None,
        findings=(),
        reasons={},
    )
    return msgspec.structs.replace(made, **changes)


def reconciliation(consumed_per_s: float) -> Reconciliation:
    return Reconciliation(
        consumed_bytes=round(consumed_per_s * 10),
        requested_bytes=round(consumed_per_s * 10.01),
        storage_read_bytes=round(consumed_per_s * 10.1),
        storage_scope="device",
        requested_over_consumed=1.001,
        storage_over_consumed=1.01,
        process_read_bytes=round(consumed_per_s * 10.1),
        others_read=False,
        agrees=True,
        why="Consumed, requested and storage bytes agree within 5 %.",
    )


def ceilings(topology: str, loader: str, **changes: Any) -> Ceilings:
    made = Ceilings(
        topology=topology,
        loader=loader,
        compute=estimate(rate_of(topology, loader, "synthetic"), spread=0.01),
        prep=estimate(rate_of(topology, loader, "prep")),
        fetch=estimate(rate_of(topology, loader, "fetch")),
        storage=estimate(MOUNT_BYTES_PER_S * 1.02 / SAMPLE_BYTES),
        storage_read_bytes_per_s=MOUNT_BYTES_PER_S * 1.02,
        bottleneck="fetch",
    )
    return msgspec.structs.replace(made, **changes)


def demand(topology: str, **changes: Any) -> Demand:
    needed = 0.9 * PER_ACCELERATOR * accelerators(topology) * SAMPLE_BYTES * 1.01
    made = Demand(
        topology=topology,
        accelerators=accelerators(topology),
        phase="steady",
        basis="measured",
        at_au=0.9,
        required_read_bytes_per_s=Interval(value=needed, low=needed * 0.97, high=needed * 1.03),
        peak_read_bytes_per_s=needed * 1.2,
        required_reads_per_s=needed / 65536,
        required_metadata_ops_per_s=None,
        required_write_bytes_per_s=None,
        emulated=True,
        reasons={"required_metadata_ops_per_s": "not counted by this filesystem"},
    )
    return msgspec.structs.replace(made, **changes)


HEADROOM = Headroom(
    at_au=0.9,
    max_accelerators=0,
    first_limit="storage",
    available_read_bytes_per_s=MOUNT_BYTES_PER_S * 1.02,
    sentence="This mount feeds at most 0 accelerators at AU 90 %; the first limit is storage.",
)

HOST = Host(
    hostname="node-a",
    boot_id="1b4e28ba-2fa1-11d2-883f-0016d3cca427",
    kernel="6.12.8",
    cpu="AMD EPYC 9654",
    logical_cpus=2,
    usable_cpus=2.0,
    memory_bytes=8 * 2**30,
    versions={"python": "3.11.9", "torch": "2.14.1", "fio": "3.39"},
)


def dataset(path: str = "/data/images") -> DatasetSummary:
    return DatasetSummary(
        path=path,
        layout="files",
        samples=4000,
        classes=10,
        stored_bytes=4000 * SAMPLE_BYTES,
        stored_bytes_per_sample=SizeStatistics(
            mean=SAMPLE_BYTES, std=116_000, p50=98_000, p95=250_000, p99=600_000, max=1_900_000
        ),
        quarantined=(),
        quarantined_count=0,
        notes=(),
        mount=MountSummary(
            path="/data",
            filesystem="ext4",
            source="/dev/vda",
            devices=("vda",),
            counter_source="block.diskstats vda (wire)",
            counter_note="counts every reader of the device",
        ),
        survey_s=0.4,
    )


def summary(
    *,
    topologies: tuple[str, ...] = ("1x1", "1x2"),
    loaders: tuple[str, ...] = ("torch-files", "dali-files"),
    **changes: Any,
) -> Summary:
    """A whole run; `changes` replace fields of the summary."""
    cells: list[CellSummary] = []
    for topology in topologies:
        cells.append(cell(topology, "synthetic", "synthetic"))
        cells.append(cell(topology, "reads", "fetch"))
        for loader in loaders:
            cells += [cell(topology, loader, role) for role in ("prep", "warm", "cold")]
    made = Summary(
        format_version=1,
        ioprof_version="0.1.0",
        created="2026-12-01T12:00:00Z",
        command=("ioprof", "profile", "--data", "/data/images"),
        host=HOST,
        dataset=dataset(),
        accelerator=EMULATED,
        cells=tuple(cells),
        ceilings=tuple(ceilings(t, loader) for t in topologies for loader in loaders),
        demand=tuple(demand(t) for t in topologies),
        headroom=HEADROOM,
        findings=(),
        partial=None,
        sources={"block.diskstats": "read", "nvml": "no NVIDIA driver on this host"},
    )
    return msgspec.structs.replace(made, **changes)


def on_real(made: Summary) -> Summary:
    """The same, as if an accelerator that is here had done the work."""
    proof = Training(loss_first=2.31, loss_last=1.9, weights_changed=True, ranks_agree=True)
    cells = tuple(
        msgspec.structs.replace(one, accelerator=REAL, gpu_kernel_busy=0.4, training=proof)
        for one in made.cells
    )
    asked = tuple(msgspec.structs.replace(one, emulated=False) for one in made.demand)
    return msgspec.structs.replace(made, accelerator=REAL, cells=cells, demand=asked)


def unmeasured() -> Summary:
    """Every number that may be missing is, with its reason."""
    gone = {
        name: None
        for name in CellSummary.__struct_fields__
        if CellSummary.__annotations__[name].endswith("None") and name != "partial"
    }
    made = summary()
    no_reason = {"step_s": "the trainer made no steps"}
    cells = tuple(
        msgspec.structs.replace(one, **gone, reasons=no_reason, verdict="invalid")
        for one in made.cells
    )
    bare = {"compute": None, "prep": None, "fetch": None, "storage": None}
    why = dict.fromkeys(bare, "no steps")
    limits = tuple(
        msgspec.structs.replace(
            one, **bare, storage_read_bytes_per_s=None, bottleneck="unknown", reasons=why
        )
        for one in made.ceilings
    )
    asked = tuple(
        msgspec.structs.replace(
            one,
            basis="refused",
            required_read_bytes_per_s=Interval(value=None),
            peak_read_bytes_per_s=None,
            required_reads_per_s=None,
            reasons={"required_read_bytes_per_s": "no synthetic cell was measured"},
        )
        for one in made.demand
    )
    return msgspec.structs.replace(
        made,
        cells=cells,
        ceilings=limits,
        demand=asked,
        partial="interrupted",
        headroom=Headroom(
            at_au=0.9,
            max_accelerators=None,
            first_limit="unknown",
            available_read_bytes_per_s=None,
            sentence="Headroom is unknown: no cell was measured.",
        ),
        findings=(
            Finding(
                level="invalid",
                what="Nothing was measured.",
                evidence="No cell made a step.",
                remedy="Read the log of the first cell.",
                code="nothing-measured",
            ),
        ),
    )
