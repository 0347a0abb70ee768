"""Lustre: what processes asked of a mount, what its client served, and what each OST delivered.

Older clients keep this in /proc, where anybody may read it, newer in debugfs, which is root's.
Where neither may be read, `lctl get_param` may still answer. Nothing is ever written: writing to a
file of statistics clears it for everybody.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources import lustrestats as stats
from ioprof.sources.aside import Aside
from ioprof.sources.lustrefacts import FACTS as FACTS
from ioprof.sources.lustreparams import FileParams, LctlParams, Params
from ioprof.sources.program import ProgramError, ask, locate
from ioprof.sources.source import Found, Roots, Target

_PERIOD_S = 1.0
_PLACES = ("/usr/sbin", "/usr/bin", "/sbin")
_OSTS_PER_TICK = 64
_DETAIL_EVERY_TICKS = 10
_REMEDY = "run ioprof as root, with debugfs mounted at /sys/kernel/debug and lctl on the PATH"

Make = Callable[[bytes, str], Iterable[Reading]]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter, and the readings that are made of its text for an instance."""

    param: str
    instance: str
    make: Make


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The sources of the target's mount, or why they cannot be read; nothing when not Lustre."""
    mount = target.mount
    if mount is None or mount.filesystem != "lustre":
        return []
    name = filesystem_of(mount)
    if name is None:
        reason = f"{mount.source} of {mount.path} names no Lustre filesystem"
        return [Unavailable(source="lustre.osc", reason=reason)]
    files = FileParams(roots=roots)
    program = locate("lctl", places=_PLACES, roots=roots)
    ways: list[Params] = [files] if program is None else [files, LctlParams(program)]
    clients = next((found for way in ways if (found := _clients(way, name))), [])
    client = _client(mount, clients, roots=roots) if clients else _nothing(name, files, ways)
    if isinstance(client, Unavailable):
        return [client]
    for way in ways:
        osts = _osts(way, name, client)
        if osts and way.readable(f"llite.{client}.stats") and way.readable(_osc(osts[0])):
            return _sources(way, mount, client=client, osts=osts)
    return [_forbidden(client, ways)]


def filesystem_of(mount: Mount) -> str | None:
    """The filesystem in a source such as "192.0.2.7@tcp:192.0.2.8@tcp:/train/folder"; else None."""
    _, found, path = mount.source.partition(":/")
    name = path.lstrip("/").split("/")[0]
    return name if found and name else None


def _clients(params: Params, name: str) -> list[str]:
    """Names of the llite instances of a filesystem: one for each mount of it."""
    own = re.compile(re.escape(name) + "-[0-9a-f]+")
    return [found for found in params.names("llite") if own.fullmatch(found)]


def _client(mount: Mount, clients: list[str], *, roots: Roots) -> str | Unavailable:
    """The mount's own instance; of several, the one that `lfs getname` tells."""
    if len(clients) == 1:
        return clients[0]
    why = "lfs is not on this node"
    program = locate("lfs", places=_PLACES, roots=roots)
    if program is not None:
        try:
            # It touches the mount, which may be dead: ask kills it at its deadline.
            answer = ask([str(program), "getname", mount.path]).decode(errors="replace")
            told = (answer.split() or [""])[0]
            if told in clients:
                return told
            why = f"lfs getname tells {told or 'nothing'}"
        except ProgramError as error:
            why = error.strerror or "lfs failed"
    return Unavailable(
        source="lustre.osc",
        reason=f"{len(clients)} mounts of this filesystem may be {mount.path}, and {why}",
        remedy=f"`lfs getname {mount.path}` must tell which of {', '.join(clients)} it is",
    )


def _nothing(name: str, files: FileParams, ways: list[Params]) -> Unavailable:
    trees = ", ".join(map(str, files.trees))
    lctl = "lctl tells none either" if len(ways) > 1 else "lctl is not on this node"
    reason = f"no client of the filesystem {name} is in {trees}, and {lctl}"
    return Unavailable(source="lustre.osc", reason=reason, remedy=_REMEDY)


def _forbidden(client: str, ways: list[Params]) -> Unavailable:
    lctl = "nor does lctl show them" if len(ways) > 1 else "and lctl is not on this node"
    reason = f"the statistics of {client} and its OSTs may not be read by this user, {lctl}"
    return Unavailable(source="lustre.osc", reason=reason, remedy=_REMEDY)


def _osts(params: Params, name: str, client: str) -> list[str]:
    """The connections to OSTs that belong to the same mount: they bear its hexadecimal number."""
    number = client.removeprefix(f"{name}-")
    own = re.compile(f"{re.escape(name)}-OST[0-9a-f]{{4,8}}-osc-{number}")
    return [found for found in params.names("osc") if own.fullmatch(found)]


def _osc(ost: str, file: str = "stats") -> str:
    return f"osc.{ost}.{file}"


def _sources(params: Params, mount: Mount, *, client: str, osts: list[str]) -> list[Found]:
    place = mount.path
    main = [
        Part(param=f"llite.{client}.stats", instance=place, make=_of_llite),
        *(Part(param=_osc(o), instance=_at(place, o), make=_of_osc) for o in osts),
    ]
    rpcs = partial(_of_rpcs, page_bytes=os.sysconf("SC_PAGE_SIZE"))
    detail = [
        Part(param=f"llite.{client}.read_ahead_stats", instance=place, make=_of_readahead),
        Part(param=f"llite.{client}.max_cached_mb", instance=place, make=_of_cache),
        *(Part(param=_osc(o, "rpc_stats"), instance=_at(place, o), make=rpcs) for o in osts),
    ]
    if isinstance(params, LctlParams):
        # One that lctl does not know would cost the answer to all.
        known = [part for part in detail if params.readable(part.param)]
        return [Aside(LustreSource("lustre", params, [*main, *known]), period_s=_PERIOD_S)]
    # Each file is a sum over all CPUs: of many OSTs not every tick is worth its cost.
    every_ticks = 1 + len(osts) // _OSTS_PER_TICK
    return [
        LustreSource("lustre", params, main, every_ticks=every_ticks),
        LustreSource("lustre.detail", params, detail, every_ticks=_DETAIL_EVERY_TICKS),
    ]


def _at(mount_path: str, ost: str) -> str:
    """Instance of one OST: "/mnt/train OST0004"."""
    return f"{mount_path} {ost.rpartition('-osc-')[0].rpartition('-')[2]}"


def _of_llite(text: bytes, instance: str) -> Iterable[Reading]:
    found = stats.parse_stats(text)
    yield _reading("lustre.llite", instance, Layer.APP, stats.app_counters(found), found)
    counters = stats.metadata_counters(found)
    yield _reading("lustre.metadata", instance, Layer.CLIENT, counters, found)
    fast = stats.fast_read_counters(found)
    if fast is not None:
        yield Reading(
            source="lustre.fastread",
            instance=instance,
            layer=Layer.CACHE,
            scope=Scope.MOUNT,
            counters=fast,
        )


def _of_osc(text: bytes, instance: str) -> Iterable[Reading]:
    found = stats.parse_stats(text)
    yield _reading("lustre.osc", instance, Layer.WIRE, stats.wire_counters(found), found)


def _of_rpcs(text: bytes, instance: str, *, page_bytes: int) -> Iterable[Reading]:
    counters = stats.parse_rpc_sizes(text, page_bytes=page_bytes)
    yield _reading("lustre.rpcs", instance, Layer.WIRE, counters, stats.parse_stats(text))


def _of_readahead(text: bytes, instance: str) -> Iterable[Reading]:
    found = stats.parse_stats(text)
    counters = stats.readahead_counters(found)
    yield _reading("lustre.readahead", instance, Layer.CACHE, counters, found)


def _of_cache(text: bytes, instance: str) -> Iterable[Reading]:
    yield Reading(
        source="lustre.cache",
        instance=instance,
        layer=Layer.CACHE,
        scope=Scope.MOUNT,
        gauges=stats.parse_cache(text),
    )


def _reading(
    source: str,
    instance: str,
    layer: Layer,
    counters: dict[str, Number | None],
    found: stats.Stats,
) -> Reading:
    return Reading(
        source=source,
        instance=instance,
        layer=layer,
        scope=Scope.MOUNT,
        counters=counters,
        gauges={"age_seconds": found.age_s},
    )


class LustreSource:
    """Readings of one mount: those of all the parameters that it is given."""

    def __init__(
        self, name: str, params: Params, parts: Iterable[Part], *, every_ticks: int = 1
    ) -> None:
        self.name = name
        self.every_ticks = every_ticks
        self._params = params
        self._parts = tuple(parts)

    def read(self) -> Iterable[Reading]:
        """One look; what is gone with the mount, or this version does not have, is left out."""
        texts = self._params.read(part.param for part in self._parts)
        for part in self._parts:
            text = texts.get(part.param)
            if text is not None:
                yield from part.make(text, part.instance)

    def close(self) -> None:
        """Nothing is kept open."""
