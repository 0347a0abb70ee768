"""MooseFS: how often the kernel asked its client, from `.stats` at the root of the mount.

Lines are `name: number`. Names form a tree (`fuse_ops.lookup.master`), whose parents hold the sum
of what is below them. A number in brackets is a state, not a counter. Bytes are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.numeral import total, whole
from ioprof.sources.samefs import whole_at
from ioprof.sources.source import Fact, Found, Roots, Target
from ioprof.sources.statsfile import StatsFile

_FILESYSTEMS = ("fuse.mfs", "fuse.mfsmount", "fuse.moosefs")
_SOURCE = "mfs#"
_PERIOD_S = 1.0
_OPS = b"fuse_ops."
_LOOKUP, _GETATTR, _OPEN = (b"lookup",), (b"getattr", b"getattr-cached"), (b"open",)
_READDIR = (b"opendir", b"readdir", b"readdirplus")
_COUNTERS: dict[str, tuple[bytes, ...]] = {
    "read_operations_total": (b"read",),
    "write_operations_total": (b"write",),
    "open_operations_total": _OPEN,
    "lookup_operations_total": _LOOKUP,
    "getattr_operations_total": _GETATTR,
    "readdir_operations_total": _READDIR,
}
_METADATA = (*_LOOKUP, *_GETATTR, *_OPEN, *_READDIR)

_SINCE = "MooseFS 3 read; any user that may enter the mount"
_FILE = "<mount>/.stats, only ever read: writing to it clears it"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="moosefs.client",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("read_operations_total", "write_operations_total"),
        file=_FILE,
        field="fuse_ops.read and fuse_ops.write",
        unit="requests of the kernel to the client",
        since=_SINCE,
        caveat="no bytes; what the page cache served is not in it; each look at the file adds one",
        check="grep -E '^fuse_ops.(read|write):' MOUNT/.stats",
    ),
    Fact(
        source="moosefs.client",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=(
            "open_operations_total", "lookup_operations_total", "getattr_operations_total",
            "readdir_operations_total", "metadata_operations_total",
        ),
        file=_FILE,
        field="fuse_ops: open, lookup, getattr + -cached, opendir + readdir(plus); and their sum",
        unit="requests of the kernel to the client",
        since=_SINCE,
        caveat="what the kernel's name cache served is not in it; each look at the file adds one",
        check="grep -E '^fuse_ops.(open|lookup|getattr|readdir)' MOUNT/.stats",
    ),
)  # fmt: skip


def parse(text: bytes) -> dict[str, Number | None]:
    """The counters by our names; None for what this version does not print."""
    asked: dict[bytes, int | None] = {}
    for line in text.splitlines():
        name, colon, number = line.partition(b":")
        if colon and name.startswith(_OPS):
            asked[name.removeprefix(_OPS)] = whole(number.strip())
    counters: dict[str, Number | None] = {
        name: _sum(asked, parts) for name, parts in _COUNTERS.items()
    }
    # Without one of these three it is not this table.
    known = all(asked.get(part) is not None for part in (b"lookup", b"getattr", b"open"))
    counters["metadata_operations_total"] = _sum(asked, _METADATA) if known else None
    return counters


def _sum(asked: dict[bytes, int | None], parts: tuple[bytes, ...]) -> Number | None:
    """The sum of those parts that this version prints."""
    return total(asked[part] for part in parts if part in asked)


def is_moosefs(mount: Mount) -> bool:
    """Whether a mount is one: its client names itself in the source alone, `mfs#HOST:PORT`."""
    fuse = mount.filesystem == "fuse" or mount.filesystem.startswith("fuse.")
    return mount.filesystem in _FILESYSTEMS or (fuse and mount.source.startswith(_SOURCE))


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source of the target's mount; nothing when not MooseFS. The mount is not touched."""
    mount = target.mount
    if mount is None or not is_moosefs(mount):
        return []
    tops = whole_at(mount, roots=roots)
    if not tops:
        reason = f"the root of the filesystem of {mount.path}, where .stats is, is not mounted here"
        return [Unavailable(source="moosefs.client", reason=reason)]
    places = [Path(top) / ".stats" for top in tops]
    return [Aside(MooseFsSource(places, mount_path=mount.path), period_s=_PERIOD_S)]


class MooseFsSource:
    """Reading "moosefs.client" of one mount."""

    name = "moosefs.client"
    every_ticks = 1

    def __init__(self, places: Iterable[Path], *, mount_path: str) -> None:
        self._file = StatsFile(places, belongs=lambda text: b"fuse_ops" in text)
        self._mount_path = mount_path

    def read(self) -> Iterable[Reading]:
        """One look; none when the mount is gone."""
        text = self._file.read()
        if text is not None:
            yield Reading(
                source="moosefs.client",
                instance=self._mount_path,
                layer=Layer.CLIENT,
                scope=Scope.MOUNT,
                counters=parse(text),
            )

    def close(self) -> None:
        """Nothing is kept open."""
