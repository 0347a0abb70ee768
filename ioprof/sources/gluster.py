"""GlusterFS: the volume's profile where this node may ask for it, and dumps that its client wrote.

Profiling costs the servers a little and is never switched on from here; nor is a dump asked for,
since that is an attribute to be set on the mount.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.record.sizes import names
from ioprof.sources.aside import Aside
from ioprof.sources.glusterstats import ProfileOffError, parse_dump, parse_profile, unit_seconds
from ioprof.sources.procfile import why
from ioprof.sources.program import ProgramError, ask, locate
from ioprof.sources.source import Fact, Found, Roots, Target

FILESYSTEM = "fuse.glusterfs"
_PERIOD_S = 2.0
_DEADLINE_S = 5.0
_PLACES = ("/usr/sbin", "/usr/local/sbin")
_OPERATIONS = (
    "read_operations_total", "write_operations_total", "open_operations_total",
    "lookup_operations_total", "getattr_operations_total", "readdir_operations_total",
    "metadata_operations_total",
)  # fmt: skip

_PROFILE = "gluster volume profile VOL info cumulative --xml"
_PROFILE_SINCE = "GlusterFS 3.5; root on a node of the trusted pool, with profiling on"
_VOLUME_CAVEAT = "all clients of the volume, on every node; replicas each count what is written"
_DUMP = "/var/run/gluster/*.VOL, written when somebody sets trusted.io-stats-dump on the mount"
_DUMP_CHECK = "tail -n 20 /var/run/gluster/*.VOL"
_DUMP_SINCE = "GlusterFS 10 read; root"
_FOPS = "READ, WRITE, OPEN, LOOKUP, (F)STAT, OPENDIR + READDIR(P); metadata: the last four"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="gluster.volume",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("read_bytes_total", "write_bytes_total"),
        file=_PROFILE,
        field="brick/cumulativeStats: totalRead and totalWrite, all bricks added up",
        unit="bytes",
        since=_PROFILE_SINCE,
        caveat=_VOLUME_CAVEAT,
        check="gluster volume profile VOL info cumulative | grep 'Data Read'",
    ),
    Fact(
        source="gluster.volume",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=_OPERATIONS,
        file=_PROFILE,
        field=f"fopStats/fop: hits of {_FOPS}",
        unit="calls since profiling began; one that was never made is not listed",
        since=_PROFILE_SINCE,
        caveat=_VOLUME_CAVEAT,
        check="gluster volume profile VOL info cumulative | grep -E 'READ|WRITE|OPEN|LOOKUP|STAT'",
    ),
    Fact(
        source="gluster.volume",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=names(),
        file=_PROFILE,
        field="blockStats/block: reads by size",
        unit="reads, by size rounded down to a power of two",
        since=_PROFILE_SINCE,
        caveat="a read of 5,000 bytes is among those of 4,096; all clients of the volume",
        check="gluster volume profile VOL info cumulative | grep -A 1 'Block Size'",
    ),
    Fact(
        source="gluster.volume",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("read_mean_seconds", "write_mean_seconds", "age_seconds"),
        file=_PROFILE,
        field="fopStats/fop/avgLatency of READ and WRITE, weighted by hits; duration, the least",
        unit="ns in 10.x, µs before: as the text form says; seconds",
        since=_PROFILE_SINCE,
        caveat="means since profiling began, inside the bricks: the network is not in them",
        check="gluster volume profile VOL info cumulative | grep -E ' READ| WRITE|Duration'",
    ),
    Fact(
        source="gluster.client",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("read_bytes_total", "write_bytes_total", *_OPERATIONS, *names()),
        file=_DUMP,
        field=f"BytesRead, BytesWritten, Read Count; calls of {_FOPS}",
        unit="bytes; calls; reads by size, rounded down to a power of two",
        since=_DUMP_SINCE,
        caveat="as fresh as the newest dump of any mount of VOL; no times: it misnames their unit",
        check=_DUMP_CHECK,
    ),
    Fact(
        source="gluster.client",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("age_seconds",),
        file=_DUMP,
        field="Cumulative stats: Duration",
        unit="seconds",
        since=_DUMP_SINCE,
        caveat="of the client's process, when it wrote the dump",
        check=_DUMP_CHECK,
    ),
)


def volume_of(mount: Mount) -> str | None:
    """The volume in a source such as "192.0.2.77:/gv0/folder"; None where it names none."""
    _, colon, path = mount.source.rpartition(":")
    name = path.lstrip("/").split("/")[0]
    return name if colon and name else None


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The volume's and the client's source, or why it cannot be read; nothing when not gluster."""
    mount = target.mount
    if mount is None or mount.filesystem != FILESYSTEM:
        return []
    volume = volume_of(mount)
    if volume is None:
        reason = f"{mount.source} of {mount.path} names no volume"
        return [Unavailable(source="gluster.volume", reason=reason)]
    return [_find_volume(volume, roots), _find_client(volume, mount, roots)]


def _find_volume(volume: str, roots: Roots) -> Found:
    program = locate("gluster", places=_PLACES, roots=roots)
    if program is None:
        return Unavailable(
            source="gluster.volume",
            reason="the command gluster is not on this node",
            remedy="run ioprof on a node of the trusted pool to read the volume's own counters",
        )
    try:
        parse_profile(_ask_profile(program, volume, "--xml"))
    except ProfileOffError as error:
        return Unavailable(
            source="gluster.volume",
            reason=f"the profile of volume {volume} cannot be read: {error}",
            remedy=f"gluster volume profile {volume} start (it costs the servers a little)",
        )
    except (ProgramError, ValueError) as error:
        cause = why(error) if isinstance(error, OSError) else str(error)
        return Unavailable(
            source="gluster.volume",
            reason=f"the profile of volume {volume} cannot be read: {cause}",
            remedy="run ioprof as root on a node of the trusted pool, where glusterd runs",
        )
    return Aside(VolumeSource(program, volume), period_s=_PERIOD_S)


def _find_client(volume: str, mount: Mount, roots: Roots) -> Found:
    folder = roots.root / "var" / "run" / "gluster"
    if _newest(folder, volume) is None:
        return Unavailable(
            source="gluster.client",
            reason=f"no dump of a client of volume {volume} is in {folder}",
            remedy=f"as root, every second: setfattr -n trusted.io-stats-dump -v io {mount.path}",
        )
    return ClientSource(folder, volume, mount_path=mount.path)


def _ask_profile(program: Path, volume: str, *options: str) -> bytes:
    # "cumulative" matters: without it the question itself begins a new interval.
    command = [str(program), "volume", "profile", volume, "info", "cumulative", *options]
    return ask(command, deadline_s=_DEADLINE_S)


def _newest(folder: Path, volume: str) -> Path | None:
    """The dump that was written last; None without any."""
    dated: list[tuple[int, Path]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(f".{volume}") and entry.is_file(follow_symlinks=False):
                    dated.append((entry.stat().st_mtime_ns, Path(entry.path)))
    except OSError:
        return None
    return max(dated)[1] if dated else None


class VolumeSource:
    """Reading "gluster.volume": all bricks of one volume added up."""

    name = "gluster.volume"
    every_ticks = 1

    def __init__(self, program: Path, volume: str) -> None:
        self._program = program
        self._volume = volume
        self._unit_s: float | None = None
        self._asked_unit = False

    def read(self) -> Iterable[Reading]:
        """One look; OSError or ValueError when gluster does not answer."""
        found = parse_profile(_ask_profile(self._program, self._volume, "--xml"))
        unit_s = self._unit() if any(found.means.values()) else None
        gauges: dict[str, Number | None] = {
            f"{name}_seconds": None if mean is None or unit_s is None else mean * unit_s
            for name, mean in found.means.items()
        }
        gauges["age_seconds"] = found.age_s
        yield Reading(
            source="gluster.volume",
            instance=self._volume,
            layer=Layer.WIRE,
            scope=Scope.DEVICE,
            counters=found.counters,
            gauges=gauges,
            note=f"all {found.bricks} bricks of the volume, and so all its clients on every node",
        )

    def _unit(self) -> float | None:
        if not self._asked_unit:
            self._asked_unit = True
            try:
                self._unit_s = unit_seconds(_ask_profile(self._program, self._volume))
            except ProgramError:
                self._unit_s = None
        return self._unit_s

    def close(self) -> None:
        """Nothing is kept open."""


class ClientSource:
    """Reading "gluster.client", once for each dump that somebody has the client write."""

    name = "gluster.client"
    every_ticks = 5

    def __init__(self, folder: Path, volume: str, *, mount_path: str) -> None:
        self._folder = folder
        self._volume = volume
        self._mount_path = mount_path
        self._seen: tuple[str, int, int] | None = None

    def read(self) -> Iterable[Reading]:
        """The newest dump; none when it was seen before: standing still would look like rest."""
        path = _newest(self._folder, self._volume)
        if path is None:
            return
        try:
            status = path.stat()
            stamp = (path.name, status.st_mtime_ns, status.st_size)
            if stamp == self._seen:
                return
            found = parse_dump(path.read_bytes())
        except (FileNotFoundError, ValueError):
            return  # it is being written
        self._seen = stamp
        yield Reading(
            source="gluster.client",
            instance=self._mount_path,
            layer=Layer.CLIENT,
            scope=Scope.MOUNT,
            counters=found.counters,
            gauges={"age_seconds": found.age_s},
            note=f"as of {path}, which another program has the client write",
        )

    def close(self) -> None:
        """Nothing is kept open."""
