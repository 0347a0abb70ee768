"""One look at one counter source, and how a node's looks are laid down in its file.

A source hands out `Reading`s: cumulative counters and instantaneous gauges, exactly as the kernel
gives them. Rates are made in `ioprof.analysis`, never here.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

Number = int | float


class Layer(StrEnum):
    """Where on the data path a number was counted; no bandwidth is printed without it."""

    APP = "app"
    """The process asked for it."""
    CACHE = "cache"
    """The page cache served or fetched it."""
    CLIENT = "client"
    """The filesystem client, or the block layer on behalf of one process, served it."""
    WIRE = "wire"
    """It left storage: a block device, or a network filesystem's transport, delivered it."""
    LINK = "link"
    """It passed a NIC or port, whatever it was for."""
    STALL = "stall"
    """Time lost waiting."""
    HOST = "host"
    """The node itself: CPU, memory, accelerator. Not on the data path."""


class Scope(StrEnum):
    """Whose work a number includes."""

    PROCESS = "process"
    """The recorded process tree alone."""
    MOUNT = "mount"
    """Everything through one mount on this node, other jobs too."""
    DEVICE = "device"
    """Everything on one device, other mounts and jobs too."""
    HOST = "host"
    """Everything on this node."""


class Role(StrEnum):
    """The place of a block device in the stack under the dataset's mount."""

    TOP = "top"
    """What the mount names: its bytes are the headline."""
    MIDDLE = "middle"
    """Between: shown, never added."""
    LEAF = "leaf"
    """The physical end: shown for balance, never added to the top."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One look at one instance of one source.

    `counters` only grow (until reset); `gauges` are instantaneous. A value the kernel does not
    keep is None, never 0. Names are OpenMetrics-like with the base unit in them, for instance
    `read_bytes_total`, `read_operations_total`, `read_time_seconds_total`.
    """

    source: str
    """Family, for instance "block.diskstats"."""
    instance: str
    """Which one: "nvme0n1", "tree", "eth0"."""
    layer: Layer
    scope: Scope
    counters: dict[str, Number | None] = {}
    gauges: dict[str, Number | None] = {}
    role: Role | None = None
    note: str | None = None
    """What a reader of this number must know: a fall-back taken, a blind spot."""
    t_s: float | None = None
    """Monotonic time at which it was read, where that is not the tick's own."""


class Unavailable(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="unavailable"):
    """A source that cannot be read here: what, why, and what would make it readable."""

    source: str
    reason: str
    remedy: str | None = None


class Series(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="series"):
    """Declares the columns that ticks then fill: one instance of one source."""

    id: int
    source: str
    instance: str
    layer: Layer
    scope: Scope
    counters: tuple[str, ...]
    gauges: tuple[str, ...]
    role: Role | None = None
    note: str | None = None


class SeriesValues(msgspec.Struct, frozen=True, array_like=True):
    """One series' values at one tick, in the order its `Series` declares."""

    id: int
    counters: tuple[Number | None, ...]
    gauges: tuple[Number | None, ...]


class Tick(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="tick"):
    """One visit to the sources. `t_s` is the monotonic time just before the first was read."""

    t_s: float
    values: tuple[SeriesValues, ...]


class SamplerEnd(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="end"):
    """Last line of a node's file: what the sampling itself cost. Absent when it was killed."""

    t_s: float
    ticks: int
    missed_ticks: int
    cpu_s: float
    """User + system CPU time of the sampler process from its first tick on."""
