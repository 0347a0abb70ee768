"""ZFS: what one dataset was asked for, and how often the ARC had it, from `/proc/spl/kstat/zfs`.

The bytes that came from the pool's disks are in neither: the ARC counts misses, not their bytes,
and the pool's own I/O statistics left /proc with OpenZFS 0.8.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.procfile import ProcFile, read_once, why
from ioprof.sources.source import Fact, Found, Roots, Target

_KSTATS = "/proc/spl/kstat/zfs"
_HEADER_LINES = 2
_DATASET = {
    "requested_bytes_total": b"nread",
    "read_calls_total": b"reads",
    "write_bytes_total": b"nwritten",
    "write_calls_total": b"writes",
}
_ARC = {
    "cache_hits_total": b"hits",
    "cache_misses_total": b"misses",
    "demand_data_hits_total": b"demand_data_hits",
    "demand_data_misses_total": b"demand_data_misses",
    "prefetch_data_hits_total": b"prefetch_data_hits",
    "prefetch_data_misses_total": b"prefetch_data_misses",
    "l2_hits_total": b"l2_hits",
    "l2_misses_total": b"l2_misses",
    "l2_read_bytes_total": b"l2_read_bytes",
}
_ARC_GAUGES = {"arc_size_bytes": b"size", "arc_limit_bytes": b"c_max"}
_GONE = (errno.ENOENT, errno.ENODEV)

FACTS: tuple[Fact, ...] = (
    Fact(
        source="zfs.dataset",
        layer=Layer.APP,
        scope=Scope.MOUNT,
        counters=tuple(_DATASET),
        file=f"{_KSTATS}/<pool>/objset-0x* whose dataset_name is the mount's source",
        field="rows nread, reads, nwritten, writes: third column",
        unit="bytes and calls, 64 bits",
        since="OpenZFS 0.8",
        caveat="read() and write() calls, whether the ARC served them or not; not mmap",
        check=f"grep -l ' DATASET$' {_KSTATS}/*/objset-0x* | xargs grep nread",
    ),
    Fact(
        source="zfs.arc",
        layer=Layer.CACHE,
        scope=Scope.HOST,
        counters=(*_ARC, *_ARC_GAUGES),
        file=f"{_KSTATS}/arcstats",
        field="rows hits, misses, demand_data_*, prefetch_data_*, l2_*, size, c_max: third column",
        unit="look-ups of blocks (not bytes), 64 bits; size, c_max and l2_read_bytes in bytes",
        since="every OpenZFS; it has no bytes of misses, so none are given",
        caveat="all pools of the node; blocks differ in size: a share of hits is not one of bytes",
        check=f"grep -E 'hits|misses|^size' {_KSTATS}/arcstats",
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The target's dataset and the ARC, or why they cannot be read; nothing when not ZFS."""
    mount = target.mount
    if mount is None or mount.filesystem != "zfs":
        return []
    folder = roots.proc / "spl" / "kstat" / "zfs"
    return [_find_dataset(folder, mount.source, mount.path), _find_arc(folder)]


def _find_dataset(folder: Path, dataset: str, mount_path: str) -> Found:
    if _objset(folder, dataset) is None:
        return Unavailable(
            source="zfs.dataset",
            reason=f"no file {folder}/*/objset-* is that of the dataset {dataset}",
            remedy="OpenZFS 0.8 and newer have one for each mounted dataset; inside a container "
            "it may be hidden",
        )
    return DatasetSource(folder, dataset=dataset, mount_path=mount_path)


def _find_arc(folder: Path) -> Found:
    path = folder / "arcstats"
    try:
        return ArcSource(ProcFile(path))
    except OSError as error:
        return Unavailable(source="zfs.arc", reason=f"{path} cannot be read: {why(error)}")


def parse(text: bytes) -> dict[bytes, bytes]:
    """Values by name: rows of name, type and value after the two lines of the header."""
    rows: dict[bytes, bytes] = {}
    for line in text.splitlines()[_HEADER_LINES:]:
        # A dataset's name may have blanks in it, so the third column is the rest of the line.
        fields = line.split(None, 2)
        if len(fields) == 3:
            rows.setdefault(fields[0], fields[2].strip())
    return rows


def parse_dataset(text: bytes) -> dict[str, Number | None]:
    """Counters of one `objset-*` file."""
    return _named(parse(text), _DATASET)


def parse_arc(text: bytes) -> tuple[dict[str, Number | None], dict[str, Number | None]]:
    """Counters and gauges of `arcstats`; None for a row that this version does not have."""
    rows = parse(text)
    return _named(rows, _ARC), _named(rows, _ARC_GAUGES)


def _named(rows: dict[bytes, bytes], names: dict[str, bytes]) -> dict[str, Number | None]:
    return {name: _number(rows.get(row)) for name, row in names.items()}


def _number(word: bytes | None) -> int | None:
    return int(word) if word is not None and word.isdigit() else None


def _objset(folder: Path, dataset: str) -> Path | None:
    """The file of a dataset by its name; None when there is none."""
    pool, wanted = dataset.partition("/")[0], dataset.encode(errors="surrogateescape")
    try:
        paths = sorted(path for path in (folder / pool).iterdir() if "objset-" in path.name)
    except OSError:
        return None
    for path in paths:
        try:
            if parse(read_once(str(path))).get(b"dataset_name") == wanted:
                return path
        except OSError:
            continue  # unmounted since the folder was listed, or not ours to read
    return None


class DatasetSource:
    """Reading "zfs.dataset"."""

    name = "zfs.dataset"
    every_ticks = 1

    def __init__(self, folder: Path, *, dataset: str, mount_path: str) -> None:
        self._folder = folder
        self._dataset = dataset
        self._mount_path = mount_path
        self._path: Path | None = None

    def read(self) -> Iterable[Reading]:
        """One look; none while the dataset is not mounted."""
        text = self._text()
        if text is not None:
            yield Reading(
                source="zfs.dataset",
                instance=self._mount_path,
                layer=Layer.APP,
                scope=Scope.MOUNT,
                counters=parse_dataset(text),
            )

    def _text(self) -> bytes | None:
        # Opened anew: a dataset that is mounted again has a new file of the same name.
        if self._path is None:
            self._path = _objset(self._folder, self._dataset)
        if self._path is None:
            return None
        try:
            return read_once(str(self._path))
        except OSError as error:
            if error.errno not in _GONE:
                raise
            self._path = None
            return None

    def close(self) -> None:
        """Nothing is kept open."""


class ArcSource:
    """Reading "zfs.arc" of the node."""

    name = "zfs.arc"
    every_ticks = 5
    """A view of the host: half the looks of the headline are enough."""

    def __init__(self, file: ProcFile) -> None:
        self._file = file

    def read(self) -> Iterable[Reading]:
        """One look at the cache that all pools share."""
        counters, gauges = parse_arc(self._file.read())
        yield Reading(
            source="zfs.arc",
            instance="host",
            layer=Layer.CACHE,
            scope=Scope.HOST,
            counters=counters,
            gauges=gauges,
        )

    def close(self) -> None:
        """Close arcstats."""
        self._file.close()
