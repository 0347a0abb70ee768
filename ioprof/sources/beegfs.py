"""BeeGFS: what its servers count for this host, where a command of its management may ask them.

The client keeps no counters of its own. It does tell the kernel what it fetched for a process, so
the block layer's account of processes holds BeeGFS reads, mapped files too: that needs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import msgspec

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.beegfsstats import (
    Row,
    counters,
    local_addresses,
    names,
    parse_queues,
    parse_v7,
    parse_v8,
)
from ioprof.sources.procfile import read_once, why
from ioprof.sources.program import ProgramError, ask, locate
from ioprof.sources.source import Fact, Found, Roots, Target

_PERIOD_S = 2.0
_PLACES = ("/usr/bin", "/usr/sbin", "/opt/beegfs/sbin")
_REMEDY = "none is needed: process.block sees what processes fetch from BeeGFS, mapped files too"
_QUEUE_EVERY_TICKS = 10
# An interval of 0: since the servers started, printed once.
_V8 = ("stats", "client", "--interval", "0", "--raw", "--output", "ndjson")
_V7 = (
    "--clientstats", "--interval=0", "--allstats", "--perinterval", "--rwunit=B", "--nodetype=",
)  # fmt: skip

Kind = Literal["storage", "meta"]

_FILE = "beegfs stats client (8) or beegfs-ctl --clientstats (7), rows of this host's addresses"
_SINCE = "BeeGFS 7 and 8; needs the command, access to the management node and, in 8, its secret"
_CAVEAT = (
    "since each server started; all jobs of this host; 7 tells bytes in six digits, early 8 none"
)
_CHECK_STORAGE = "beegfs-ctl --clientstats --nodetype=storage --interval=0 --allstats --rwunit=B"
_CHECK_META = "beegfs-ctl --clientstats --nodetype=meta --interval=0 --allstats"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="beegfs.storage",
        layer=Layer.WIRE,
        scope=Scope.HOST,
        counters=names("storage"),
        file=_FILE,
        field="B-rd, ops-rd, B-wr, ops-wr; in 8 rd for B-rd, wr for B-wr; all addresses added up",
        unit="bytes and requests to storage servers",
        since=_SINCE,
        caveat=_CAVEAT,
        check=_CHECK_STORAGE,
    ),
    Fact(
        source="beegfs.metadata",
        layer=Layer.WIRE,
        scope=Scope.HOST,
        counters=names("meta"),
        file=_FILE,
        field="open + openLI, stat + statLI, lookLI + revalLI, rddir; metadata is the sum of all",
        unit="requests to metadata servers",
        since=_SINCE,
        caveat="since each server started; all mounts and jobs of this host",
        check=_CHECK_META,
    ),
    Fact(
        source="beegfs.queues",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=tuple(parse_queues(b"")),
        file="/proc/fs/beegfs/*/status, .status in version 8",
        field="numAvailableMsgBufs, numDelayed*, numEnqueuedAcks, numFlushRefs",
        unit="how many there are now",
        since="BeeGFS 7; anybody; only while one BeeGFS is mounted here",
        caveat="no reads: those are counted in debug builds alone",
        check="cat /proc/fs/beegfs/*/status /proc/fs/beegfs/*/.status",
    ),
)


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A command that tells what servers count for each client."""

    command: tuple[str, ...]
    """The kind of servers follows: as a word, or where its last word ends in "=", joined to it."""
    parse: Callable[[bytes], dict[str, Row]]

    def ask(self, kind: Kind) -> dict[str, Row]:
        """Rows by address; ProgramError when it does not answer."""
        *before, last = self.command
        asked = [f"{last}{kind}"] if last.endswith("=") else [last, kind]
        return self.parse(ask([*before, *asked]))


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The sources of the target's mount, or why there is none; nothing when not BeeGFS."""
    mount = target.mount
    if mount is None or mount.filesystem != "beegfs":
        return []
    return [*_find_counters(mount, roots), *_find_queues(mount, roots)]


def _find_counters(mount: Mount, roots: Roots) -> list[Found]:
    controls = _controls(mount, roots)
    if not controls:
        return [_unavailable("neither beegfs nor beegfs-ctl is on this node")]
    addresses = _addresses(roots)
    if not addresses:
        return [_unavailable("/proc/net does not tell this host's addresses")]
    complaints: list[str] = []
    for control in controls:
        try:
            rows = control.ask("storage")
        except ProgramError as error:
            complaints.append(why(error))
            continue
        if rows:
            kinds: tuple[Kind, ...] = ("storage", "meta")
            made = (BeeGfsSource(control, k, mount=mount, addresses=addresses) for k in kinds)
            return [Aside(source, period_s=_PERIOD_S) for source in made]
        complaints.append(f"{Path(control.command[0]).name} tells no client")
    return [
        _unavailable("the servers' counters cannot be had: " + "; ".join(dict.fromkeys(complaints)))
    ]


def _unavailable(reason: str) -> Unavailable:
    return Unavailable(source="beegfs.storage", reason=reason, remedy=_REMEDY)


def _controls(mount: Mount, roots: Roots) -> list[Control]:
    found: list[Control] = []
    v8 = locate("beegfs", places=_PLACES, roots=roots)
    if v8 is not None:
        # Without --with-empty, which not every 8 has, a column of zeros is left out.
        for more in (["--with-empty"], []):
            asked = [str(v8), *_V8, *more, "--node-type"]
            found.append(Control(command=tuple(asked), parse=parse_v8))
    v7 = locate("beegfs-ctl", places=_PLACES, roots=roots)
    if v7 is not None:
        # The configuration of this very mount: a host may mount several.
        own = tuple(f"--{option}" for option in mount.options if option.startswith("cfgFile="))
        found.append(Control(command=(str(v7), *own[:1], *_V7), parse=parse_v7))
    return found


def _addresses(roots: Roots) -> frozenset[str]:
    texts: list[str] = []
    for name in ("fib_trie", "if_inet6"):
        try:
            texts.append((roots.proc / "net" / name).read_text(errors="replace"))
        except OSError:
            texts.append("")
    return local_addresses(*texts)


def _find_queues(mount: Mount, roots: Roots) -> list[Found]:
    """Gauges of the only client; of several, nothing tells which is the mount's."""
    folder = roots.proc / "fs" / "beegfs"
    files = sorted([*folder.glob("*/status"), *folder.glob("*/.status")])
    return [QueueSource(files[0], mount_path=mount.path)] if len(files) == 1 else []


class BeeGfsSource:
    """Readings "beegfs.storage" or "beegfs.metadata" of this host."""

    every_ticks = 1

    def __init__(
        self, control: Control, kind: Kind, *, mount: Mount, addresses: frozenset[str]
    ) -> None:
        self.name = "beegfs.storage" if kind == "storage" else "beegfs.metadata"
        self._control = control
        self._kind = kind
        self._mount_path = mount.path
        self._addresses = addresses

    def read(self) -> Iterable[Reading]:
        """One look; ProgramError when the command does not answer."""
        rows = self._control.ask(self._kind)
        yield Reading(
            source=self.name,
            instance=self._mount_path,
            layer=Layer.WIRE,
            scope=Scope.HOST,
            counters=counters(self._kind, rows, addresses=self._addresses),
        )

    def close(self) -> None:
        """Nothing is kept open."""


class QueueSource:
    """Reading "beegfs.queues" of one mount."""

    name = "beegfs.queues"
    every_ticks = _QUEUE_EVERY_TICKS

    def __init__(self, path: Path, *, mount_path: str) -> None:
        self._path = path
        self._mount_path = mount_path

    def read(self) -> Iterable[Reading]:
        """One look; none when the mount is gone."""
        try:
            text = read_once(str(self._path))
        except FileNotFoundError:
            return
        yield Reading(
            source=self.name,
            instance=self._mount_path,
            layer=Layer.CLIENT,
            scope=Scope.MOUNT,
            gauges=parse_queues(text),
        )

    def close(self) -> None:
        """Nothing is kept open."""
