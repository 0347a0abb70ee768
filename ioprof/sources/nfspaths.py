"""The network paths of one NFS mount that has several, where its client tells them (VAST).

Such a client lists every connection with its two addresses in debugfs. It is detail below the
mount's own counters: which path carries how much, and which is down.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.nfsstats import Counters, add, parse_xprt
from ioprof.sources.procfile import ProcFile, read_once, why
from ioprof.sources.source import Fact, Found, Roots

_ADDRESSES = re.compile(rb"(\S+) -> (\S+), state:(.*)")
_FILE = "/sys/kernel/debug/sunrpc/rpc_clnt/<n>/stats whose first address is the server's"
_CHECK = "cat /sys/kernel/debug/sunrpc/rpc_clnt/*/stats"
_COUNTERS = ("send_requests_total", "receive_requests_total", "rdma_reply_bytes_total")
_EVERY_TICKS = 10

PATH_FACTS: tuple[Fact, ...] = (
    Fact(
        source="nfs.path",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=_COUNTERS,
        file=_FILE,
        field="lines xprt: numbers 6, 7 and, of rdma, 15; summed over the same two addresses",
        unit="requests; bytes that came by RDMA",
        since="VAST's NFS client; root alone may read it",
        caveat="parts of what the mount's own counters hold: never add the two",
        check=_CHECK,
    ),
    Fact(
        source="nfs.path",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("connections", "connected"),
        file=_FILE,
        field="the line of addresses below each xprt: how many, and how many are CONNECTED",
        unit="connections",
        since="VAST's NFS client; root alone may read it",
        caveat="one that rests is not connected, and that is no fault",
        check=_CHECK,
    ),
)


class NetworkPath(msgspec.Struct, frozen=True, kw_only=True):
    """One connection."""

    local: str
    remote: str
    connected: bool
    counters: Counters


def find_paths(mount: Mount, *, roots: Roots = Roots()) -> list[Found]:
    """The source of a mount's paths; nothing for a client that has one path, or tells none."""
    folder = roots.sys / "kernel" / "debug" / "sunrpc" / "rpc_clnt"
    several = any(option.startswith("remoteports=") for option in mount.options)
    try:
        clients = sorted(folder.iterdir())
    except OSError as error:
        reason = f"{folder} cannot be read: {why(error)}"
        remedy = "run as root, with debugfs mounted; the mount's own counters need neither"
        silent = Unavailable(source="nfs.path", reason=reason, remedy=remedy)
        return [silent] if several else []
    files = [path for path in (client / "stats" for client in clients) if _is_of(path, mount)]
    if len(files) > 1:
        reason = f"{len(files)} clients of {_server(mount)} are told, and not which is {mount.path}"
        return [Unavailable(source="nfs.path", reason=reason)]
    return [PathSource(ProcFile(path), mount_path=mount.path) for path in files]


def _is_of(path: Path, mount: Mount) -> bool:
    try:
        paths = parse_paths(read_once(str(path)))
    except OSError:
        return False
    return bool(paths) and paths[0].remote in (_server(mount), _address(mount))


def _server(mount: Mount) -> str:
    return mount.source.rpartition(":")[0].strip("[]")


def _address(mount: Mount) -> str | None:
    named = (option.partition("=") for option in mount.options)
    return next((value for key, _, value in named if key == "addr"), None)


def parse_paths(text: bytes) -> list[NetworkPath]:
    """Connections of an NFS client in their order; those without addresses are passed over."""
    found: list[NetworkPath] = []
    counters: Counters | None = None
    is_nfs = False
    for line in text.split(b"\n"):
        key, _, rest = line.strip().partition(b":")
        if key == b"RPC iostats version":
            is_nfs = b"100003/" in rest
        elif key == b"xprt":
            counters = parse_xprt(rest)
        elif counters is not None and (match := _ADDRESSES.search(line)):
            if is_nfs:
                found.append(
                    NetworkPath(
                        local=match[1].decode(errors="replace"),
                        remote=match[2].decode(errors="replace"),
                        connected=b"CONNECTED" in match[3].split(),
                        counters={name: counters.get(name) for name in _COUNTERS},
                    )
                )
            counters = None
    return found


class PathSource:
    """Reading "nfs.path", one for each pair of addresses."""

    name = "nfs.path"
    every_ticks = _EVERY_TICKS

    def __init__(self, file: ProcFile, *, mount_path: str) -> None:
        self._file = file
        self._mount_path = mount_path

    def read(self) -> Iterable[Reading]:
        """One look at every path."""
        pairs: dict[str, list[NetworkPath]] = {}
        for one in parse_paths(self._file.read_to_end()):
            pairs.setdefault(f"{self._mount_path} {one.local}->{one.remote}", []).append(one)
        for instance, paths in pairs.items():
            gauges: dict[str, Number | None] = {
                "connections": len(paths),
                "connected": sum(one.connected for one in paths),
            }
            yield Reading(
                source="nfs.path",
                instance=instance,
                layer=Layer.WIRE,
                scope=Scope.DEVICE,
                counters={n: add([one.counters[n] for one in paths]) for n in _COUNTERS},
                gauges=gauges,
            )

    def close(self) -> None:
        """Close the client's file."""
        self._file.close()
