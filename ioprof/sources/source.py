"""What a counter source is, and what it is pointed at."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Reading, Role, Scope, Unavailable


class Roots(msgspec.Struct, frozen=True, kw_only=True):
    """Where the kernel's files are; a test hands in a folder."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    root: Path = Path("/")
    """For places that are neither: /var/run/ceph, /usr/lpp/mmfs/bin."""


class BlockDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One block device under a mount, by its place in the stack."""

    name: str
    """As in /proc/diskstats, for instance "nvme0n1p2", "dm-0", "loop0"."""
    role: Role
    paths: tuple[str, ...] = ()
    """Hidden paths of a multipath NVMe head: their counters stand in when the head's rest."""


class BlockStack(msgspec.Struct, frozen=True, kw_only=True):
    """The block devices under a mount, topmost first; empty, with a reason, where there are none.

    A device that is both what the mount names and the physical end has role TOP.
    """

    devices: tuple[BlockDevice, ...]
    reason: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def top(self) -> tuple[str, ...]:
        """Names of the devices whose bytes are the headline."""
        return tuple(d.name for d in self.devices if d.role is Role.TOP)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What is watched: a mount, the devices under it, a process tree, the CPUs it may use."""

    root_pid: int
    """The recorder; its descendants, without `excluded_pids`, are the recorded tree."""
    excluded_pids: frozenset[int] = frozenset()
    cpus: tuple[int, ...] = ()
    data_path: Path | None = None
    mount: Mount | None = None
    stack: BlockStack | None = None


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """What one counter is: where it is found, what it silently gets wrong, how to check it by hand.

    `docs/sources.md` and `ioprof doctor` are made from these.
    """

    source: str
    """As in its readings: "nfs.wire"."""
    layer: Layer
    scope: Scope
    counters: tuple[str, ...]
    """Names as in its readings, counters and gauges alike."""
    file: str
    """File, command or system call that holds it."""
    field: str
    """Its place there: line, column, key."""
    unit: str
    """Its unit there, before ours is made of it."""
    since: str
    """Kernel or product version that has it, and where it differs between versions."""
    caveat: str
    check: str
    """A shell command that shows the same number."""


class Source(Protocol):
    """Reads one family of counters. Keeps its files open; never raises for what a kernel lacks."""

    name: str

    @property
    def every_ticks(self) -> int:
        """1 reads at every tick; n (for what is dear or slow) at every n-th of ticks 100 ms apart,
        as often on any other grid. It may change from tick to tick.
        """

    def read(self) -> Iterable[Reading]:
        """One look at every instance. An instance that is gone is left out."""

    def close(self) -> None:
        """Close what was kept open."""


Found = Source | Unavailable
"""What looking for a source gives: the source, or why it is not there."""
