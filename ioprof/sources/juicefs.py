"""JuiceFS: what its client asked for, cached and fetched, from `.stats` at the root of the mount.

Lines are `name value`. Of the labels only the method stays, at the end of the name; others vanish,
so a name may come several times and all its lines are added up. Names come in alphabetical order.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.numeral import real
from ioprof.sources.samefs import whole_at
from ioprof.sources.source import Fact, Found, Roots, Target
from ioprof.sources.statsfile import StatsFile

FILESYSTEM = "fuse.juicefs"
_NAMES = (".stats", ".jfs.stats")
_PERIOD_S = 1.0
_READ, _WRITTEN = b"juicefs_fuse_read_size_bytes", b"juicefs_fuse_written_size_bytes"
_META = b"juicefs_meta_ops_durations_histogram_seconds"
_OBJECT = b"juicefs_object_request_"
_CLIENT: dict[str, bytes] = {
    "read_bytes_total": _READ + b"_sum",
    "read_operations_total": _READ + b"_total",
    "write_bytes_total": _WRITTEN + b"_sum",
    "write_operations_total": _WRITTEN + b"_total",
    "metadata_operations_total": _META + b"_total",
    "metadata_time_seconds_total": _META + b"_sum",
}
_CACHE: dict[str, bytes] = {
    "cache_hits_total": b"juicefs_blockcache_hits",
    "cache_misses_total": b"juicefs_blockcache_miss",
    "cache_hit_bytes_total": b"juicefs_blockcache_hit_bytes",
    "cache_miss_bytes_total": b"juicefs_blockcache_miss_bytes",
}
_STORE: dict[str, bytes] = {
    "read_bytes_total": _OBJECT + b"data_bytes_GET",
    "read_operations_total": _OBJECT + b"durations_histogram_seconds_GET_total",
    "read_time_seconds_total": _OBJECT + b"durations_histogram_seconds_GET_sum",
    "write_bytes_total": _OBJECT + b"data_bytes_PUT",
    "write_operations_total": _OBJECT + b"durations_histogram_seconds_PUT_total",
    "write_time_seconds_total": _OBJECT + b"durations_histogram_seconds_PUT_sum",
}
_UPTIME = b"juicefs_uptime"
_ERRORS = _OBJECT + b"errors"

_FILE = "<mount>/.stats, or <mount>/.jfs.stats where that is hidden"
_SINCE = "JuiceFS 1.0; any user that may enter the mount"
_CHECK = "grep -E '{}' MOUNT/.stats"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="juicefs.client",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=(
            "read_bytes_total", "read_operations_total",
            "write_bytes_total", "write_operations_total",
        ),
        file=_FILE,
        field="juicefs_fuse_read_size_bytes and …written_size_bytes: _sum and _total",
        unit="bytes; requests of the kernel to the client",
        since=_SINCE,
        caveat="what the page cache served is not in it; what the client's own cache served is",
        check=_CHECK.format("fuse_(read|written)_size"),
    ),
    Fact(
        source="juicefs.client",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("metadata_operations_total", "metadata_time_seconds_total"),
        file=_FILE,
        field="juicefs_meta_ops_durations_histogram_seconds: _total and _sum",
        unit="operations on metadata, of every kind; seconds",
        since=_SINCE,
        caveat="kinds are not told apart; the background work of the client is in it",
        check=_CHECK.format("meta_ops_durations"),
    ),
    Fact(
        source="juicefs.cache",
        layer=Layer.CACHE,
        scope=Scope.MOUNT,
        counters=tuple(_CACHE),
        file=_FILE,
        field="juicefs_blockcache_hits, _miss, _hit_bytes and _miss_bytes",
        unit="blocks, or parts of them; bytes",
        since=_SINCE,
        caveat="the client's cache on local disk or in memory; its read buffer counts as neither",
        check=_CHECK.format("blockcache_(hit|miss)"),
    ),
    Fact(
        source="juicefs.object",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=(
            "read_bytes_total", "read_operations_total", "read_time_seconds_total",
            "write_bytes_total", "write_operations_total", "write_time_seconds_total",
        ),
        file=_FILE,
        field="juicefs_object_request_data_bytes_GET/_PUT, …durations_histogram_seconds_GET/_PUT",
        unit="bytes; requests to the object store; seconds",
        since=_SINCE,
        caveat="compressed bytes where the volume compresses; prefetch and warm-up are in it",
        check=_CHECK.format("object_request_.*(GET|PUT)"),
    ),
    *(
        Fact(
            source=source,
            layer=layer,
            scope=Scope.MOUNT,
            counters=("age_seconds",),
            file=_FILE,
            field="juicefs_uptime",
            unit="seconds",
            since=_SINCE,
            caveat="since the client was started: when it falls, all counters began again",
            check=_CHECK.format("uptime"),
        )
        for source, layer in (
            ("juicefs.client", Layer.CLIENT),
            ("juicefs.cache", Layer.CACHE),
            ("juicefs.object", Layer.WIRE),
        )
    ),
)  # fmt: skip


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """The lines by our names; None for what this version does not print."""

    client: dict[str, Number | None]
    cache: dict[str, Number | None]
    store: dict[str, Number | None]
    age_s: Number | None


def parse(text: bytes) -> Stats:
    """All lines of one text, those of one name added up."""
    sums: dict[bytes, Number | None] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) != 2:
            continue
        name, value = fields[0], real(fields[1])
        sum_before = sums.get(name, 0)
        # One torn line of several would make the sum fall.
        sums[name] = None if value is None or sum_before is None else sum_before + value
    store: dict[str, Number | None] = {name: _store(sums, field) for name, field in _STORE.items()}
    return Stats(
        client={name: sums.get(field) for name, field in _CLIENT.items()},
        cache={name: sums.get(field) for name, field in _CACHE.items()},
        store=store,
        age_s=sums.get(_UPTIME),
    )


def _store(sums: dict[bytes, Number | None], field: bytes) -> Number | None:
    """A method's line comes with its first request: before it, a text that has the line of errors
    and goes on to the last of the names says that there was none."""
    if field in sums:
        return sums[field]
    return 0 if _ERRORS in sums and _UPTIME in sums else None


def _belongs(text: bytes) -> bool:
    return text.startswith(b"juicefs_") or b"\njuicefs_" in text


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source of the target's mount; nothing when not JuiceFS. The mount is not touched."""
    mount = target.mount
    if mount is None or mount.filesystem != FILESYSTEM:
        return []
    tops = whole_at(mount, roots=roots)
    if not tops:
        reason = f"the root of the filesystem of {mount.path}, where .stats is, is not mounted here"
        return [Unavailable(source="juicefs.client", reason=reason)]
    places = [Path(top) / name for top in tops for name in _NAMES]
    return [Aside(JuiceFsSource(places, mount_path=mount.path), period_s=_PERIOD_S)]


class JuiceFsSource:
    """Readings "juicefs.client", "juicefs.cache" and "juicefs.object" of one mount."""

    name = "juicefs"
    every_ticks = 1

    def __init__(self, places: Iterable[Path], *, mount_path: str) -> None:
        self._file = StatsFile(places, belongs=_belongs)
        self._mount_path = mount_path

    def read(self) -> Iterable[Reading]:
        """One look; none when the mount is gone."""
        text = self._file.read()
        if text is None:
            return
        stats = parse(text)
        for source, layer, counters in (
            ("juicefs.client", Layer.CLIENT, stats.client),
            ("juicefs.cache", Layer.CACHE, stats.cache),
            ("juicefs.object", Layer.WIRE, stats.store),
        ):
            yield Reading(
                source=source,
                instance=self._mount_path,
                layer=layer,
                scope=Scope.MOUNT,
                counters=counters,
                gauges={"age_seconds": stats.age_s},
            )

    def close(self) -> None:
        """Nothing is kept open."""
