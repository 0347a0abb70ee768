"""The plan of a study, and what became of each of its cells.

A *cell* is one topology × loader × cache state, run once under one recorder per node.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from ioprof.errors import UsageError
from ioprof.record.dataset import Dataset, Mount
from ioprof.record.header import Host
from ioprof.record.headline import Calibration

CacheState = Literal["cold", "warm", "as-found"]
CellRole = Literal["synthetic", "cold", "warm", "as-found", "prep", "fetch"]
AcceleratorKind = Literal["cuda", "cpu", "emulated", "none"]


class Topology(msgspec.Struct, frozen=True, order=True):
    """N nodes × M accelerators per node, always nodes first: "2x8"."""

    nodes: int
    accelerators_per_node: int

    @classmethod
    def parse(cls, text: str) -> Topology:
        """Topology from "2x8"."""
        match = re.fullmatch(r"\s*([1-9][0-9]*)\s*[x×]\s*([1-9][0-9]*)\s*", text)
        if match is None:
            raise UsageError(
                f"{text!r} is not a topology. Write nodes x accelerators per node, like 2x8."
            )
        return cls(int(match[1]), int(match[2]))

    @property
    def accelerators(self) -> int:
        """N·M: one rank each."""
        return self.nodes * self.accelerators_per_node

    def __str__(self) -> str:
        return f"{self.nodes}x{self.accelerators_per_node}"


class AcceleratorModel(msgspec.Struct, frozen=True, kw_only=True):
    """What plays the accelerator. `samples_per_s` is the emulated rate of one of them (batch
    independent), None for real ones and for kind "none" (the loader runs alone)."""

    name: str
    kind: AcceleratorKind
    samples_per_s: float | None = None
    source: str = "measured here"


class Residency(msgspec.Struct, frozen=True, kw_only=True):
    """Share of the dataset's pages that are in this node's page cache, as observed.

    `resident_fraction` is None with a `reason` where it cannot be observed (the reader does not
    own the files, say). `method` is "cachestat" or "mincore".
    """

    resident_fraction: float | None
    pages_checked: int = 0
    files_checked: int = 0
    files_total: int = 0
    method: str | None = None
    reason: str | None = None


class CellPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One cell to be run; `command` is exactly what the engine starts."""

    id: str
    topology: str
    nodes: int
    accelerators_per_node: int
    loader: str
    role: CellRole
    cache: CacheState | None
    """None where no dataset is read (synthetic)."""
    accelerator: AcceleratorModel
    engine: str
    repeat: int
    command: tuple[str, ...] = ()


class CellOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`cells/<id>/cell.json`: how the run of one cell went."""

    id: str
    exit_status: int | None
    """Of the engine's command (128 + n for a signal); None when it was never started."""
    started_s: float
    ended_s: float
    residency_before: Residency | None = None
    residency_after: Residency | None = None
    partial: str | None = None
    """Why the cell ended early ("interrupted"), None when it ran its course."""
    error: str | None = None
    """What went wrong, with the last lines of the log; None when nothing did."""


class ProfileConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, verbatim; the command line of `profile` is made from it."""

    data: str
    loaders: tuple[str, ...]
    topologies: tuple[str, ...]
    accelerator: str
    caches: tuple[CacheState, ...]
    batch: int
    image_size: int
    model: str
    workers: int
    duration_s: float
    repeats: int
    interval_s: float
    engine: str
    fio: bool
    seed: int
    mmap: bool = False
    target_au: float = 0.9


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """`study.json`: everything decided before the first cell ran."""

    format_version: int
    ioprof_version: str
    created: str
    command: tuple[str, ...]
    config: ProfileConfig
    accelerator: AcceleratorModel
    host: Host
    dataset: Dataset
    mount: Mount
    devices: tuple[str, ...]
    """Block devices under the mount, topmost first; empty where the filesystem has none."""
    top_devices: tuple[str, ...]
    """Those whose bytes are the headline."""
    stack_notes: tuple[str, ...] = ()
    """What a reader must know of the devices: a buffered loop, an overlay's layers."""
    cells: tuple[CellPlan, ...]
    unavailable: dict[str, str] = {}
    """Counter source → why it cannot be read here."""
    calibration: Calibration | None = None
    """What each counter saw of a known amount; None in runs of before calibrating, and where no
    file could be read."""
