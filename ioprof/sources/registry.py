"""All counter sources. A new one is its file, one line here, and one in the contract test."""

from __future__ import annotations

from typing import Protocol

from ioprof.sources import (
    beegfs,
    block,
    blocksizes,
    ceph,
    cephfuse,
    cgroup,
    cifs,
    cpu,
    daos,
    dcgm,
    fuse,
    fusedaemon,
    gds,
    gluster,
    gpfs,
    infiniband,
    juicefs,
    lustre,
    moosefs,
    network,
    nfs,
    nvml,
    pressure,
    process,
    vmstat,
    weka,
    xfs,
    zfs,
)
from ioprof.sources.source import Fact, Found, Roots, Target


class Family(Protocol):
    """A module that reads one family of counters."""

    __name__: str
    FACTS: tuple[Fact, ...]
    """Every counter that its sources may give."""

    def find(self, target: Target, *, roots: Roots = ...) -> list[Found]:
        """The sources found, and an `Unavailable` for each that ought to be there and cannot be
        read. Empty when the family has nothing to do with the target: another filesystem, no such
        hardware."""


FAMILIES: tuple[Family, ...] = (
    block,
    process,
    vmstat,
    cpu,
    pressure,
    network,
    xfs,
    nfs,
    cifs,
    lustre,
    gpfs,
    weka,
    beegfs,
    zfs,
    ceph,
    cephfuse,
    juicefs,
    moosefs,
    gluster,
    daos,
    fuse,
    fusedaemon,
    blocksizes,
    cgroup,
    infiniband,
    gds,
    dcgm,
    nvml,
)
"""In the order in which a tick reads them: storage first."""

FACTS: tuple[Fact, ...] = tuple(fact for family in FAMILIES for fact in family.FACTS)


def find_all(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """What every family finds, in the order in which a tick reads it."""
    return [found for family in FAMILIES for found in family.find(target, roots=roots)]
