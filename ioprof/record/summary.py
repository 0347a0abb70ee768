"""`summary.json`: everything a report shows. All rates in base units, fractions 0–1.

Where a number is missing its field is null and the object's `reasons` says why, by field name.
The JSON Schema in `docs/summary.schema.json` is generated from these classes.
"""

from __future__ import annotations

import statistics

import msgspec

from ioprof.record.dataset import Quarantined, SizeStatistics
from ioprof.record.estimate import Estimate, Interval
from ioprof.record.finding import Finding
from ioprof.record.header import Host
from ioprof.record.study import AcceleratorModel, CacheState, CellRole


class MountSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Where the dataset lives and which counter says what storage delivered."""

    path: str
    filesystem: str
    source: str
    devices: tuple[str, ...]
    counter_source: str | None
    """Headline source, for instance "block.diskstats vda (wire)"; None when there is none."""
    counter_note: str | None = None
    """Why that source was chosen, or why there is none."""
    counter_ratio: float | None = None
    """Share of a known amount that it saw; None where no amount was tried."""
    runner_up: str | None = None
    """The counter that would have been taken next."""
    blind_spots: tuple[str, ...] = ()
    """What the headline source cannot see, and whose reads it includes."""


class DatasetSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset as surveyed."""

    path: str
    layout: str
    samples: int
    classes: int
    stored_bytes: int
    stored_bytes_per_sample: SizeStatistics
    quarantined: tuple[Quarantined, ...]
    quarantined_count: int
    notes: tuple[str, ...]
    mount: MountSummary
    survey_s: float


class CacheSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The cache state asked for and the one observed; `state` is what may be claimed."""

    asked: CacheState | None
    observed_resident_fraction: float | None
    observed_resident_fraction_after: float | None
    state: str
    """"cold" (< 1 % resident), "warm" (> 99 %), "partial", "unknown", or "not read"."""
    server_cache: str = "unknown"


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The contiguous steps that all statistics of a cell use, on the node's monotonic clock.

    `seconds` is stepping time: pauses between epochs (eviction) are left out.
    """

    start_s: float
    end_s: float
    seconds: float
    first_step: int
    last_step: int
    steps: int
    warmup_steps: int
    epochs: int
    block_steps: int
    """Step times are averaged over blocks of this many steps before their median is taken."""


class SamplerSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the measurement itself cost."""

    interval_s: float
    cpu_fraction: float | None
    missed_ticks: int | None
    ticks: int


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of the whole cell, first read to last, counted three ways."""

    consumed_bytes: int | None
    requested_bytes: int | None
    storage_read_bytes: int | None
    storage_scope: str | None
    """Whose reads the storage number includes: "process", "mount", "device"."""
    process_read_bytes: int | None
    """What the block layer fetched for the processes alone; 0 on FUSE and network filesystems."""
    others_read: bool
    """Storage delivered more than was consumed, and less of it to these processes: other programs
    read from the device too."""
    requested_over_consumed: float | None
    storage_over_consumed: float | None
    agrees: bool | None
    """All that are known agree within 5 %; None when fewer than two are known."""
    why: str
    """One sentence: that they agree, or what explains the difference."""
    reasons: dict[str, str] = {}

    @property
    def own_storage_bytes(self) -> int | None:
        """What storage delivered for this cell: other programs' reads left out where they show."""
        return self.process_read_bytes if self.others_read else self.storage_read_bytes


class RequestSizes(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of the read requests of a window, as a histogram over powers of two.

    `reads[i]` counts requests of more than `up_to_bytes[i-1]` and at most `up_to_bytes[i]`; what
    was larger than the last edge is in `larger`.
    """

    source: str
    up_to_bytes: tuple[int, ...]
    reads: tuple[float, ...]
    larger: float


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that training was real: only for kinds `cpu` and `cuda`."""

    loss_first: float | None
    loss_last: float | None
    weights_changed: bool
    ranks_agree: bool
    """All ranks held the same weights at the end (by digest)."""


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One cell, measured. Bandwidths name their layer in `storage_read_source`."""

    id: str
    topology: str
    nodes: int
    accelerators_per_node: int
    loader: str
    role: CellRole
    repeat: int
    repeats: int
    """How many runs were pooled (same topology, loader and role)."""
    cache: CacheSummary
    accelerator: AcceleratorModel
    engine: str
    window: Window | None
    samples_per_s: Estimate | None
    step_s: Estimate | None
    wait_s: Estimate | None
    compute_s: Estimate | None
    au: float | None
    data_stall_s: float | None
    prep_stall_s: float | None
    fetch_stall_s: float | None
    gpu_kernel_busy: float | None
    cpu_busy: float | None
    consumed_bytes_per_s: float | None
    requested_bytes_per_s: float | None
    storage_read_bytes_per_s: float | None
    storage_read_source: str | None
    peak_storage_read_bytes_per_s: float | None
    """99th percentile of 1-second windows."""
    reads_per_s: float | None
    read_request_bytes: float | None
    """The mean: storage bytes ÷ reads."""
    read_request_sizes: RequestSizes | None
    read_latency_s: float | None
    metadata_ops_per_s: float | None
    metadata_ops_source: str | None
    cache_served: float | None
    read_amplification: float | None
    io_pressure: float | None
    """Share of the window in which some task waited for I/O (PSI `some`)."""
    sampler: SamplerSummary | None
    reconciliation: Reconciliation | None
    training: Training | None
    quarantined: tuple[Quarantined, ...]
    verdict: str
    """compute, prep, fetch, balanced, client-limited, cache-served, invalid, or – for a cell that
    only serves another (synthetic, prep, fetch) – "reference"."""
    partial: str | None
    findings: tuple[Finding, ...]
    reasons: dict[str, str] = {}


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """Samples per second of each stage alone, all ranks together; lowest is the bottleneck."""

    topology: str
    loader: str
    compute: Estimate | None
    prep: Estimate | None
    fetch: Estimate | None
    storage: Estimate | None
    """fio's bandwidth ÷ mean stored bytes per sample."""
    storage_read_bytes_per_s: float | None
    bottleneck: str
    """compute, prep, fetch, balanced, client-limited or unknown."""
    reasons: dict[str, str] = {}


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What storage must deliver so that the accelerators of this topology reach `at_au`."""

    topology: str
    accelerators: int
    phase: str
    basis: str
    """measured, fitted or refused."""
    at_au: float
    required_read_bytes_per_s: Interval
    peak_read_bytes_per_s: float | None
    required_reads_per_s: float | None
    required_metadata_ops_per_s: float | None
    required_write_bytes_per_s: float | None
    emulated: bool
    reasons: dict[str, str] = {}


class Headroom(msgspec.Struct, frozen=True, kw_only=True):
    """The largest number of accelerators this mount feeds, and the first limit that binds."""

    at_au: float
    max_accelerators: int | None
    first_limit: str
    """storage, prep, client, compute or unknown."""
    available_read_bytes_per_s: float | None
    sentence: str
    reasons: dict[str, str] = {}


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    format_version: int
    ioprof_version: str
    created: str
    command: tuple[str, ...]
    host: Host
    dataset: DatasetSummary
    accelerator: AcceleratorModel
    cells: tuple[CellSummary, ...]
    ceilings: tuple[Ceilings, ...]
    demand: tuple[Demand, ...]
    headroom: Headroom
    findings: tuple[Finding, ...]
    partial: str | None = None
    """Why the run is incomplete; None when every cell ran its course."""
    sources: dict[str, str] = {}
    """Counter source → "read", or why it could not be."""

    def synthetic_step_s(self, topology: str) -> float | None:
        """T_syn: the step time of this topology with no reading at all; None when not measured."""
        known = [
            cell.step_s.median
            for cell in self.cells
            if cell.topology == topology and cell.role == "synthetic" and cell.step_s is not None
        ]
        return statistics.median(known) if known else None
