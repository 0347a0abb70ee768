"""GPUDirect Storage: reads that go from storage to GPU memory and past the page cache.

The driver nvidia-fs counts them for the node, where it is asked to. Filesystems that reach the GPU
without it (WekaFS, GPFS, `use_pci_p2pdma`) leave it at rest; then cuFile's own statistics say what
each process of the tree read, and how much of that fell back to ordinary reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.descendants import Descendants
from ioprof.sources.gdsstats import (
    CUFILE_COUNTERS,
    DRIVER_COUNTERS,
    DRIVER_GAUGES,
    parse_cufile,
    parse_driver,
)
from ioprof.sources.procfile import ProcFile, why
from ioprof.sources.program import ProgramError, ask, locate
from ioprof.sources.source import Fact, Found, Roots, Target

_PLACES = ("/usr/local/cuda/gds/tools",)
_PERIOD_S = 2.0
_DEADLINE_S = 1.0
_LONGEST_LOOKS = 32
_LIBRARY = b"libcufile"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="gds",
        layer=Layer.CLIENT,
        scope=Scope.HOST,
        counters=DRIVER_COUNTERS,
        file="/proc/driver/nvidia-fs/stats",
        field="lines Reads and Writes: readMiB, writeMiB, ok, err",
        unit="MiB (so it moves in steps of 1 MiB), operations",
        since="nvidia-fs 2.7 and newer, with rw_stats_enabled=1",
        caveat="all processes of the node; 0 on WekaFS, GPFS and PCI P2PDMA, which pass it by",
        check="cat /proc/driver/nvidia-fs/stats",
    ),
    Fact(
        source="gds",
        layer=Layer.CLIENT,
        scope=Scope.HOST,
        counters=DRIVER_GAUGES,
        file="/proc/driver/nvidia-fs/stats",
        field="second line Reads: Bandwidth(MiB/s), Avg-Latency(usec)",
        unit="MiB/s and µs, over a window of the driver's",
        since="nvidia-fs 2.7 and newer, with rw_stats_enabled=1",
        caveat="a rate and a mean, shown as they are: never added up",
        check="grep Bandwidth /proc/driver/nvidia-fs/stats",
    ),
    Fact(
        source="gds.cufile",
        layer=Layer.CLIENT,
        scope=Scope.PROCESS,
        counters=CUFILE_COUNTERS,
        file="gds_stats -p PID -l 3",
        field="lines GPU N Read: MiB, n, posix (compatibility mode), err; Write: MiB, n",
        unit="MiB, operations",
        since="GPUDirect Storage with cufile_stats: 3 in cufile.json",
        caveat="processes of the recorded tree that use libcufile; those that ended are not in it",
        check="/usr/local/cuda/gds/tools/gds_stats -p PID -l 3",
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The driver's and cuFile's counters, or why they say nothing; none where neither is here."""
    found: list[Found] = []
    path = roots.proc / "driver" / "nvidia-fs" / "stats"
    if path.exists():
        found.append(_find_driver(path))
    program = locate("gds_stats", places=_PLACES, roots=roots)
    if program is not None:
        found.append(Aside(CufileSource(program, target, roots=roots), period_s=_PERIOD_S))
    return found


def _find_driver(path: Path) -> Found:
    try:
        file = ProcFile(path)
    except OSError as error:
        return Unavailable(source="gds", reason=f"{path} cannot be read: {why(error)}")
    try:
        if parse_driver(file.read()).counting:
            return GdsSource(file)
    except OSError as error:
        file.close()
        return Unavailable(source="gds", reason=f"{path} cannot be read: {why(error)}")
    file.close()
    return Unavailable(
        source="gds",
        reason="the driver nvidia-fs is loaded and counts no reads: its statistics are off",
        remedy="echo 1 > /sys/module/nvidia_fs/parameters/rw_stats_enabled, as root",
    )


class GdsSource:
    """Reading "gds" of the node."""

    name = "gds"
    every_ticks = 1

    def __init__(self, file: ProcFile) -> None:
        self._file = file

    def read(self) -> Iterable[Reading]:
        """One look; values are None while the statistics are off."""
        stats = parse_driver(self._file.read())
        yield Reading(
            source="gds",
            instance="host",
            layer=Layer.CLIENT,
            scope=Scope.HOST,
            counters=stats.counters,
            gauges=stats.gauges,
        )

    def close(self) -> None:
        """Close the driver's file."""
        self._file.close()


class CufileSource:
    """Readings "gds.cufile", one for each GPU of each process of the tree that uses cuFile."""

    name = "gds.cufile"
    every_ticks = 1

    def __init__(self, program: Path, target: Target, *, roots: Roots = Roots()) -> None:
        self._program = str(program)
        self._proc = roots.proc
        self._excluded = target.excluded_pids
        self._descendants = Descendants(roots)
        self._users: set[int] = set()
        self._others = {target.root_pid: 1}
        """Processes without the library, and after how many looks to look into each again."""
        self._looks = 0

    def read(self) -> Iterable[Reading]:
        """One look at every process that uses cuFile; ProgramError when none of them answers."""
        self._follow()
        readings: list[Reading] = []
        failure: ProgramError | None = None
        for pid in sorted(self._users):
            try:
                readings += self._of(pid)
            except ProgramError as error:
                failure = error
        if failure is not None and not readings:
            raise failure
        return readings

    def _of(self, pid: int) -> Iterable[Reading]:
        command = [self._program, "-p", str(pid), "-l", "3"]
        for gpu, counters in parse_cufile(ask(command, deadline_s=_DEADLINE_S)).items():
            yield Reading(
                source="gds.cufile",
                instance=f"pid {pid} gpu {gpu}",
                layer=Layer.CLIENT,
                scope=Scope.PROCESS,
                counters=counters,
            )

    def _follow(self) -> None:
        """Find new processes of the tree, and which of all have loaded the library by now."""
        self._looks += 1
        for pid, parent_pid in self._descendants.new({*self._users, *self._others}):
            known = parent_pid in self._users or parent_pid in self._others
            if known and pid not in self._excluded and pid not in self._users:
                self._others.setdefault(pid, 1)
        for pid, wait in list(self._others.items()):
            # The list of a process's libraries is long: those without it are asked ever less often.
            if self._looks % wait == 0:
                self._look_into(pid, wait)
        for pid in list(self._users):
            if not (self._proc / str(pid)).exists():
                self._users.discard(pid)

    def _look_into(self, pid: int, wait: int) -> None:
        try:
            libraries = (self._proc / str(pid) / "maps").read_bytes()
        except PermissionError:
            libraries = b""
        except OSError:
            del self._others[pid]
            return
        if _LIBRARY in libraries:
            del self._others[pid]
            self._users.add(pid)
        else:
            self._others[pid] = min(wait * 2, _LONGEST_LOOKS)

    def close(self) -> None:
        """Close what following the tree keeps open."""
        self._descendants.close()
