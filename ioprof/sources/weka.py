"""WekaFS: operations that its driver counts, and rates that the `weka` command tells.

Neither holds bytes that could be differenced: the driver counts operations and gives means of times
since it was loaded, the command gives rates of whole minutes. Bytes are what processes asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.procfile import read_once, why
from ioprof.sources.program import ProgramError, ask, locate
from ioprof.sources.source import Fact, Found, Roots, Target
from ioprof.sources.wekastats import (
    COUNTERS,
    MEANS,
    RATES,
    counters,
    frontends,
    means,
    parse_processes,
    parse_rates,
    parse_stat,
)

FILESYSTEM = "wekafs"
_DRIVER_PERIOD_S = 1.0
# The command averages over a minute; asking it more often only loads the cluster's management.
_RATES_PERIOD_S = 20.0
_FRONTENDS = "connected_frontends"
_CONTAINER = "container_name="
_PROCESSES = (("cluster", "process", "--json"), ("cluster", "nodes", "--json"))
_STATS = (
    "stats", "--category", "ops_driver", "--stat", "READS", "--stat", "READ_BYTES",
    "--stat", "READ_LATENCY", "--interval", "180", "--resolution-secs", "60", "--json",
)  # fmt: skip
# Named after processes since version 4, after nodes before.
_EACH = ("--per-process", "--per-node")
_REMEDY = "none is needed for bytes: process.io holds what the processes asked for with read calls"

_STAT = "/proc/wekafs/stat, or /proc/wekafs/<container>/stat"
_SINCE = "the driver of the WekaFS client; which versions, no document says"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="weka.driver",
        layer=Layer.CLIENT,
        scope=Scope.HOST,
        counters=COUNTERS,
        file=_STAT,
        field="IO count of read + jumbo read, write, lookup, getattr, open, readdir; "
        "metadata is the sum of the last four",
        unit="operations since the driver was loaded",
        since=_SINCE,
        caveat="no bytes; all WekaFS mounts and jobs of this node; the number in brackets that "
        "follows a count is documented nowhere and left alone",
        check="cat /proc/wekafs/stat",
    ),
    Fact(
        source="weka.driver",
        layer=Layer.CLIENT,
        scope=Scope.HOST,
        counters=MEANS,
        file=_STAT,
        field="UM Average and KM Average of read",
        unit="us and ns, as the text says",
        since=_SINCE,
        caveat="means since the driver was loaded: after many reads they hardly move, and no "
        "latency of a run can be made of them",
        check="grep '^read:' /proc/wekafs/stat",
    ),
    Fact(
        source="weka.driver",
        layer=Layer.CLIENT,
        scope=Scope.HOST,
        counters=(_FRONTENDS,),
        file="/proc/wekafs/interface",
        field="lines Container=NAME FE N: Connected frontend",
        unit="frontends, of the mount's container where its options name one",
        since=_SINCE,
        caveat="0 means that reads of the mount wait; reading the file may block, so it is read "
        "aside",
        check="cat /proc/wekafs/interface",
    ),
    Fact(
        source="weka.rates",
        layer=Layer.CLIENT,
        scope=Scope.HOST,
        counters=RATES,
        file="weka stats --category ops_driver --per-process --json",
        field="READ_BYTES, READS, READ_LATENCY of this host's frontend processes",
        unit="bytes/s, reads/s, us; means of one minute",
        since="WekaFS 3 and 4; needs the command and a login",
        caveat="rates, never differenced or added up; the minute before last or older; the "
        "command's JSON is taken as that of its API",
        check="weka stats --category ops_driver --stat READ_BYTES --per-process",
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The sources of the target's mount, or why there is none; nothing when not WekaFS."""
    mount = target.mount
    if mount is None or mount.filesystem != FILESYSTEM:
        return []
    return [_find_driver(mount, roots), _find_rates(mount, roots)]


def _find_driver(mount: Mount, roots: Roots) -> Found:
    folder = roots.proc / "wekafs"
    path = _stat_path(folder, _container(mount))
    if path is None:
        return Unavailable(
            source="weka.driver",
            reason="no /proc/wekafs/stat tells what the driver did for this mount",
            remedy=_REMEDY,
        )
    source = DriverSource(path, folder / "interface", mount=mount)
    return Aside(source, period_s=_DRIVER_PERIOD_S)


def _stat_path(folder: Path, container: str | None) -> Path | None:
    """The one of all containers, that of the mount's, or the only one there is."""
    places = [folder / "stat", *([folder / container / "stat"] if container else [])]
    found = [path for path in places if path.exists()] or sorted(folder.glob("*/stat"))
    return found[0] if found and (len(found) == 1 or found[0] in places) else None


def _container(mount: Mount) -> str | None:
    named = [o.removeprefix(_CONTAINER) for o in mount.options if o.startswith(_CONTAINER)]
    return named[0] if named and "/" not in named[0] else None


def _find_rates(mount: Mount, roots: Roots) -> Found:
    program = locate("weka", roots=roots)
    if program is None:
        return _no_rates("the command weka is not on this node")
    try:
        answer = _first_answer(program, _PROCESSES)
    except ProgramError as error:
        return _no_rates(why(error))
    hosts = _host_names(roots)
    processes = parse_processes(answer, hosts=hosts)
    if not processes:
        named = " or ".join(sorted(hosts)) or "this host"
        return _no_rates(f"weka tells no frontend process of {named}")
    source = RatesSource(program, processes, mount_path=mount.path)
    return Aside(source, period_s=_RATES_PERIOD_S)


def _no_rates(reason: str) -> Unavailable:
    return Unavailable(source="weka.rates", reason=reason, remedy=_REMEDY)


def _first_answer(program: Path, questions: Iterable[Sequence[str]]) -> bytes:
    """The answer to the first question that this version knows; else the first complaint."""
    complaint: ProgramError | None = None
    for question in questions:
        try:
            return ask([str(program), *question])
        except ProgramError as error:
            complaint = complaint or error
    raise complaint or ProgramError("weka was asked nothing")


def _host_names(roots: Roots) -> frozenset[str]:
    """This host's name, as it is and without its domain."""
    try:
        name = read_once(str(roots.proc / "sys" / "kernel" / "hostname")).decode().strip()
    except (OSError, UnicodeDecodeError):
        return frozenset()
    return frozenset({name, name.partition(".")[0]} - {""})


class DriverSource:
    """Reading "weka.driver" of this node's driver."""

    name = "weka.driver"
    every_ticks = 1

    def __init__(self, stat: Path, interface: Path, *, mount: Mount) -> None:
        self._stat = stat
        self._interface = interface
        self._mount_path = mount.path
        self._container = _container(mount)

    def read(self) -> Iterable[Reading]:
        """One look; none when the driver is gone. It may block where the driver hangs."""
        try:
            rows = parse_stat(read_once(str(self._stat)))
        except FileNotFoundError:
            return
        yield Reading(
            source=self.name,
            instance=self._mount_path,
            layer=Layer.CLIENT,
            scope=Scope.HOST,
            counters=counters(rows),
            gauges={**means(rows), _FRONTENDS: self._connected()},
        )

    def _connected(self) -> int | None:
        try:
            found = frontends(read_once(str(self._interface)))
        except OSError:
            return None
        if self._container is not None:
            return found.get(self._container, 0)
        return sum(found.values())

    def close(self) -> None:
        """Nothing is kept open."""


class RatesSource:
    """Reading "weka.rates" of this host's frontend processes."""

    name = "weka.rates"
    every_ticks = 1

    def __init__(self, program: Path, processes: frozenset[int], *, mount_path: str) -> None:
        self._program = program
        self._processes = processes
        self._mount_path = mount_path

    def read(self) -> Iterable[Reading]:
        """One look; ProgramError when the command does not answer."""
        answer = _first_answer(self._program, [(*_STATS, each) for each in _EACH])
        yield Reading(
            source=self.name,
            instance=self._mount_path,
            layer=Layer.CLIENT,
            scope=Scope.HOST,
            gauges=parse_rates(answer, processes=self._processes),
        )

    def close(self) -> None:
        """Nothing is kept open."""
