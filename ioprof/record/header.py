"""Facts about a host and about who wrote a file."""

from __future__ import annotations

import msgspec


class ClockAnchor(msgspec.Struct, frozen=True, kw_only=True):
    """Both clocks read together: seconds of CLOCK_MONOTONIC and of the Unix epoch."""

    monotonic_s: float
    wall_s: float

    @property
    def offset_s(self) -> float:
        """What makes the calendar's time of a monotonic one."""
        return self.wall_s - self.monotonic_s


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """One physical accelerator of the host as the driver names it."""

    index: int
    name: str
    memory_bytes: int | None = None


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """The machine a cell ran on. `usable_cpus` is what affinity and cgroup quota leave us, and
    `memory_bytes` the host's memory or the cgroup limit above us, whichever is less."""

    hostname: str
    boot_id: str
    kernel: str
    cpu: str
    logical_cpus: int
    usable_cpus: float
    memory_bytes: int
    accelerators: tuple[Accelerator, ...] = ()
    versions: dict[str, str] = {}
    """Python, ioprof, torch, DALI, fio, driver …; only what is there."""


class NodeHeader(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="node"):
    """First line of `node-<n>.jsonl`."""

    format_version: int
    node: int
    hostname: str
    boot_id: str
    pid: int
    clock: ClockAnchor
    interval_s: float
    data_path: str | None
    cpus: tuple[int, ...]
    """CPUs that the recorded command may use (its affinity)."""


class RankHeader(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="rank"):
    """First line of `rank-<n>.jsonl`, written by `ioprof.mark`."""

    format_version: int
    rank: int
    local_rank: int
    world_size: int
    hostname: str
    boot_id: str
    pid: int
    monotonic_s: float
    wall_s: float

    @property
    def offset_s(self) -> float:
        """What makes the calendar's time of a monotonic one."""
        return self.wall_s - self.monotonic_s
