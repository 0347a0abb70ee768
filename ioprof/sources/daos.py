"""DAOS: what its clients on this node read through libdfs, by the metrics of the node's agent.

They are kept for processes that were started with D_CLIENT_METRICS_ENABLE=1, dfuse among them, and
read where the environment names the agent: IOPROF_DAOS_METRICS=http://127.0.0.1:9191/metrics. With
an interception library loaded, reads pass both FUSE and the system calls by: this alone sees them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.daosstats import NAMES, Tally, parse
from ioprof.sources.exporter import Exporter
from ioprof.sources.source import Fact, Found, Roots, Target

FILESYSTEMS = ("fuse.daos", "fuse.dfuse")
VARIABLE = "IOPROF_DAOS_METRICS"
_PERIOD_S = 1.0
_FILE = f"the text of the node's daos_agent, where {VARIABLE} names it"
_SINCE = "DAOS that has client_dfs_ metrics, with telemetry_port and D_CLIENT_METRICS_ENABLE=1"
_CAVEAT = "all DAOS clients of this agent, other mounts and jobs too; a process without it is not"
_CHECK = f"curl -s ${VARIABLE} | grep "
_BYTES = ("read_bytes_total", "write_bytes_total")

FACTS: tuple[Fact, ...] = (
    Fact(
        source="daos.dfs",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=_BYTES,
        file=_FILE,
        field="client_dfs_read_bytes_sum and client_dfs_write_bytes_sum, all lines added up",
        unit="bytes",
        since=_SINCE,
        caveat=_CAVEAT,
        check=_CHECK + "-E 'dfs_(read|write)_bytes_sum'",
    ),
    Fact(
        source="daos.dfs",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=tuple(name for name in NAMES if name not in _BYTES),
        file=_FILE,
        field="client_dfs_ops_: read, write, open, lookup, stat + getsize, opendir + readdir",
        unit="calls of libdfs; metadata is the last six added up",
        since=_SINCE,
        caveat=_CAVEAT,
        check=_CHECK + "dfs_ops_",
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source, or why the agent is not asked; nothing when the mount is not DAOS'."""
    mount = target.mount
    if mount is None or mount.filesystem not in FILESYSTEMS:
        return []
    address = os.environ.get(VARIABLE)
    if not address:
        return [
            Unavailable(
                source="daos.dfs",
                reason=f"{VARIABLE} does not say where the node's DAOS agent gives its metrics",
                remedy="set telemetry_port in daos_agent.yml, D_CLIENT_METRICS_ENABLE=1 for dfuse, "
                f"and {VARIABLE}=http://127.0.0.1:PORT/metrics",
            )
        ]
    try:
        exporter = Exporter(address)
    except ValueError as error:
        return [Unavailable(source="daos.dfs", reason=f"{VARIABLE} is not usable: {error}")]
    return [Aside(DaosSource(exporter, mount_path=mount.path), period_s=_PERIOD_S)]


class DaosSource:
    """Reading "daos.dfs": all clients of the node's agent, ended ones too."""

    name = "daos.dfs"
    every_ticks = 1

    def __init__(self, exporter: Exporter, *, mount_path: str) -> None:
        self._exporter = exporter
        self._mount_path = mount_path
        self._tally = Tally()

    def read(self) -> Iterable[Reading]:
        """One look; OSError when the agent does not answer."""
        yield Reading(
            source="daos.dfs",
            instance=self._mount_path,
            layer=Layer.WIRE,
            scope=Scope.DEVICE,
            counters=self._tally.counters(parse(self._exporter.fetch())),
            note="all DAOS clients of this node that keep metrics, not this mount alone",
        )

    def close(self) -> None:
        """Nothing is kept open."""
