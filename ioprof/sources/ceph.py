"""CephFS through the kernel's client: its metrics in debugfs, one folder per client, root only.

`/sys/kernel/debug/ceph/<fsid>.client<id>/metrics` is one file up to Linux 5.15 and a folder of four
files after. Both hold the same tables: a line that begins with "item" names the columns, and an
item's own name may hold blanks, so rows are split from the right.
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.numeral import whole
from ioprof.sources.procfile import read_once, why
from ioprof.sources.program import ProgramError, ask
from ioprof.sources.source import Fact, Found, Roots, Target

_US = 1e-6
_TOTAL, _MEAN_US, _BYTES = b"total", b"avg_lat(us)", b"total_sz(bytes)"
_COUNTERS: dict[str, tuple[bytes, bytes]] = {
    "read_bytes_total": (b"read", _BYTES),
    "read_operations_total": (b"read", _TOTAL),
    "write_bytes_total": (b"write", _BYTES),
    "write_operations_total": (b"write", _TOTAL),
    "metadata_operations_total": (b"metadata", _TOTAL),
}
_MEANS: dict[str, bytes] = {
    "read_mean_seconds": b"read",
    "write_mean_seconds": b"write",
    "metadata_mean_seconds": b"metadata",
}
_CAPS: dict[str, tuple[bytes, bytes]] = {
    "caps_hits_total": (b"caps", b"hit"),
    "caps_misses_total": (b"caps", b"miss"),
    "lease_hits_total": (b"d_lease", b"hit"),
    "lease_misses_total": (b"d_lease", b"miss"),
}
_FILES = ("latency", "size", "caps")
_GONE = (errno.ENOENT, errno.ENODEV)
_CLIENT = re.compile(r"([0-9a-f-]{36})\.client([0-9]+)")
_NEW_SOURCE = re.compile(r"@([0-9a-f-]{36})\.")
_NO_FSID = "00000000-0000-0000-0000-000000000000"
_ROOT = "run ioprof as root, with debugfs mounted at /sys/kernel/debug"
_ASK_CLIENT = "import os, sys; print(os.getxattr(sys.argv[1], 'ceph.client_id').decode())"

_FOLDER = "/sys/kernel/debug/ceph/<fsid>.client<id>"
_CHECK = (
    "cat /sys/kernel/debug/ceph/*/metrics/{0} 2>/dev/null || cat /sys/kernel/debug/ceph/*/metrics"
)

FACTS: tuple[Fact, ...] = (
    Fact(
        source="ceph.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("read_bytes_total", "write_bytes_total"),
        file=f"{_FOLDER}/metrics/size, or the one file metrics",
        field="rows read and write, column total_sz(bytes)",
        unit="bytes",
        since="Linux 5.14; root; the metrics of 5.8 have none",
        caveat="what object servers answered, read-ahead too; mounts sharing a client share it",
        check=_CHECK.format("size"),
    ),
    Fact(
        source="ceph.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("read_operations_total", "write_operations_total", "metadata_operations_total"),
        file=f"{_FOLDER}/metrics/latency, or the one file metrics",
        field="rows read, write and metadata, column total",
        unit="requests to object servers; of metadata, to metadata servers",
        since="Linux 5.8; root",
        caveat="what capabilities let the client answer by itself is no request",
        check=_CHECK.format("latency"),
    ),
    Fact(
        source="ceph.wire",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("read_mean_seconds", "write_mean_seconds", "metadata_mean_seconds"),
        file=f"{_FOLDER}/metrics/latency, or the one file metrics",
        field="rows read, write and metadata, column avg_lat(us)",
        unit="microseconds",
        since="Linux 5.8; root",
        caveat="the mean since the mount: it hides what happens now, and no sum is made of it",
        check=_CHECK.format("latency"),
    ),
    Fact(
        source="ceph.caps",
        layer=Layer.CACHE,
        scope=Scope.MOUNT,
        counters=tuple(_CAPS),
        file=f"{_FOLDER}/metrics/caps, or the one file metrics",
        field="rows caps and d_lease, columns hit and miss",
        unit="look-ups of a capability or of a name's lease",
        since="Linux 5.8; root",
        caveat="rights to use what is cached, not bytes: a hit saves asking a metadata server",
        check=_CHECK.format("caps"),
    ),
)  # fmt: skip


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """The tables by our names; None for what this kernel does not print."""

    counters: dict[str, Number | None]
    means: dict[str, Number | None]
    caps: dict[str, Number | None]


def parse(text: bytes) -> Metrics:
    """The tables of the one file, or of the folder's files after one another."""
    cells: dict[tuple[bytes, bytes], int | None] = {}
    columns: list[bytes] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == [b"item"]:
            columns = words[1:]
        elif columns and len(words) > len(columns):
            item = b" ".join(words[: -len(columns)])
            numbers = words[-len(columns) :]
            for column, word in zip(columns, numbers, strict=True):
                cells[item, column] = whole(word)
    return Metrics(
        counters={name: cells.get(at) for name, at in _COUNTERS.items()},
        means={name: _mean_seconds(cells, item) for name, item in _MEANS.items()},
        caps={name: cells.get(at) for name, at in _CAPS.items()},
    )


def _mean_seconds(cells: dict[tuple[bytes, bytes], int | None], item: bytes) -> float | None:
    """None as long as there was nothing to take the mean of."""
    mean_us = cells.get((item, _MEAN_US))
    return mean_us * _US if mean_us is not None and cells.get((item, _TOTAL)) else None


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source of the target's mount, or why it cannot be read; nothing when not ceph."""
    mount = target.mount
    if mount is None or mount.filesystem != "ceph":
        return []
    folder = roots.sys / "kernel" / "debug" / "ceph"
    try:
        clients = sorted(path for path in folder.iterdir() if _CLIENT.fullmatch(path.name))
        # Clients of block images (rbd) are listed too; they have no metrics.
        counting = [path for path in clients if (path / "metrics").exists()]
    except OSError as error:
        reason = f"{folder} cannot be read: {why(error)}"
        return [Unavailable(source="ceph.wire", reason=reason, remedy=_ROOT)]
    if not counting:
        reason = f"no client under {folder} keeps metrics"
        remedy = "they are kept from Linux 5.8 on, with bytes from 5.14 on"
        return [Unavailable(source="ceph.wire", reason=reason, remedy=remedy)]
    client = _client(mount, counting)
    if isinstance(client, Unavailable):
        return [client]
    return [CephSource(client, mount_path=mount.path)]


def _client(mount: Mount, clients: list[Path]) -> Path | Unavailable:
    """The mount's own client, by cluster, and where that leaves several by its number."""
    cluster = _fsid(mount)
    matching = [p for p in clients if cluster is None or p.name.startswith(f"{cluster}.")]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        reason = f"none of {len(clients)} ceph clients is of the cluster {cluster} of {mount.path}"
        return Unavailable(source="ceph.wire", reason=reason)
    number = _client_number(mount.path)
    for path in matching:
        if number is not None and path.name.endswith(f".client{number}"):
            return path
    return Unavailable(
        source="ceph.wire",
        reason=f"{len(matching)} ceph clients may be the one of {mount.path}",
        remedy="its number is told by `getfattr -n ceph.client_id` from Linux 5.11 on",
    )


def _fsid(mount: Mount) -> str | None:
    """The cluster, where the mount's source (Linux 5.17 on) or options name it."""
    found = _NEW_SOURCE.search(mount.source)
    named = [option[5:] for option in mount.options if option.startswith("fsid=")]
    cluster = found[1] if found else (named or [_NO_FSID])[-1]
    return None if cluster == _NO_FSID else cluster


def _client_number(path: str) -> str | None:
    """The client's number as the mount itself tells it; None where it does not."""
    try:
        answer = ask([sys.executable, "-I", "-S", "-c", _ASK_CLIENT, path])
    except ProgramError:
        return None
    number = answer.decode(errors="replace").strip().removeprefix("client")
    return number if number.isdigit() else None


class CephSource:
    """Readings "ceph.wire" and "ceph.caps" of one client."""

    name = "ceph"
    every_ticks = 1

    def __init__(self, folder: Path, *, mount_path: str) -> None:
        self._metrics = folder / "metrics"
        self._mount_path = mount_path

    def read(self) -> Iterable[Reading]:
        """One look; none when the client is gone with its mount."""
        text = self._text()
        if text is None:
            return
        metrics = parse(text)
        yield Reading(
            source="ceph.wire",
            instance=self._mount_path,
            layer=Layer.WIRE,
            scope=Scope.MOUNT,
            counters=metrics.counters,
            gauges=metrics.means,
        )
        yield Reading(
            source="ceph.caps",
            instance=self._mount_path,
            layer=Layer.CACHE,
            scope=Scope.MOUNT,
            counters=metrics.caps,
        )

    def _text(self) -> bytes | None:
        try:
            if not self._metrics.is_dir():
                return read_once(str(self._metrics))
            return b"\n".join(read_once(str(self._metrics / name)) for name in _FILES)
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise

    def close(self) -> None:
        """Nothing is kept open."""
