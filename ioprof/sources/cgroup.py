"""The cgroup of the recorded tree: its block I/O by device, and its share of the page cache.

A cgroup's own counters tell one job from the others on a node. Version 2 has `io.stat` and
`memory.stat`; version 1 has files of other names in one hierarchy for each controller. Of the
version 1 files the throttling ones count under every I/O scheduler; those of CFQ and BFQ stay 0
under all others and are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.procfile import ProcFile, read_once, why
from ioprof.sources.source import Fact, Found, Roots, Target
from ioprof.sources.sysblock import SysBlock

_Names = Mapping[str, tuple[bytes, ...]]

_IO = {
    "read_bytes_total": b"rbytes",
    "read_operations_total": b"rios",
    "write_bytes_total": b"wbytes",
    "write_operations_total": b"wios",
}
_MEMORY_COUNTERS = {
    # "workingset_refault" before Linux 5.9: it counted files alone.
    "refault_file_pages_total": (b"workingset_refault_file", b"workingset_refault"),
    "page_faults_major_total": (b"pgmajfault",),
}
_MEMORY_GAUGES = {"page_cache_bytes": (b"file",)}
# Version 1 writes the group alone first; with "total_", it and those below it, as version 2 does.
_MEMORY_COUNTERS_V1 = {
    "refault_file_pages_total": (b"total_workingset_refault_file", b"total_workingset_refault"),
    "page_faults_major_total": (b"total_pgmajfault",),
}
_MEMORY_GAUGES_V1 = {"page_cache_bytes": (b"total_cache",)}
_V1_BYTES, _V1_OPERATIONS = "blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"

Rows = dict[str, dict[str, Number | None]]
"""Counters by the device's number, "259:0"."""

FACTS: tuple[Fact, ...] = (
    Fact(
        source="cgroup.io",
        layer=Layer.CLIENT,
        scope=Scope.DEVICE,
        counters=tuple(_IO),
        file="io.stat of the tree's cgroup; in v1 blkio.throttle.io_service_bytes and io_serviced",
        field="line of the device's number: rbytes, rios, wbytes, wios; in v1 Read and Write",
        unit="bytes and operations",
        since="cgroup v2 with the io controller on; v1 with blkio",
        caveat="this cgroup alone, all its processes; no line before its first I/O, nor, in v1 of "
        "Linux 6.18, of a device on which no group has a limit; nothing of NFS, FUSE, Lustre",
        check="cat /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/io.stat",
    ),
    Fact(
        source="cgroup.memory",
        layer=Layer.CACHE,
        scope=Scope.HOST,
        counters=(*_MEMORY_COUNTERS, *_MEMORY_GAUGES),
        file="memory.stat of the tree's cgroup",
        field="rows workingset_refault_file, pgmajfault, file; in v1 total_* and total_cache",
        unit="pages, faults; file in bytes",
        since="cgroup v2 with the memory controller on; v1 with memory",
        caveat="this cgroup alone; a page counts for the group that read it first, whoever uses it",
        check="cat /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.stat",
    ),
)  # fmt: skip


class Group(NamedTuple):
    """Where a cgroup's files of one controller are."""

    name: str
    """Its path below the mounted hierarchy: "/system.slice/job", or "/"."""
    folder: Path


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The tree's cgroup, or why it tells nothing; its I/O only where there are block devices."""
    table_path = roots.proc / str(target.root_pid) / "cgroup"
    try:
        table = read_once(str(table_path)).decode(errors="surrogateescape")
    except OSError as error:
        reason = f"the recorded tree is in no cgroup: {table_path}: {why(error)}"
        return [Unavailable(source="cgroup", reason=reason)]
    stack = target.stack
    io = [_find_io(stack.top, table, roots)] if stack is not None and stack.devices else []
    return [*io, _find_memory(table, roots)]


def _find_io(top: tuple[str, ...], table: str, roots: Roots) -> Found:
    numbers = _numbers(top, roots)
    if not numbers:
        reason = f"sysfs does not tell the numbers of {', '.join(top)}, by which cgroups count"
        return Unavailable(source="cgroup.io", reason=reason)
    for group in _groups(table, "", roots):
        if (group.folder / "io.stat").exists():
            return _opened("cgroup.io", group, ("io.stat",), _io_reader(parse_io_stat, numbers))
    for group in _groups(table, "blkio", roots):
        if (group.folder / _V1_BYTES).exists():
            names = (_V1_BYTES, _V1_OPERATIONS)
            return _opened("cgroup.io", group, names, _io_reader(parse_throttle, numbers))
    return _not_enabled("cgroup.io", "io", table)


def _find_memory(table: str, roots: Roots) -> Found:
    for controller, counters, gauges in (
        ("", _MEMORY_COUNTERS, _MEMORY_GAUGES),
        ("memory", _MEMORY_COUNTERS_V1, _MEMORY_GAUGES_V1),
    ):
        for group in _groups(table, controller, roots):
            if (group.folder / "memory.stat").exists():
                reader = _memory_reader(counters, gauges)
                return _opened("cgroup.memory", group, ("memory.stat",), reader)
    return _not_enabled("cgroup.memory", "memory", table)


def _opened(source: str, group: Group, names: tuple[str, ...], reader: Reader) -> Found:
    files: list[ProcFile] = []
    try:
        for name in names:
            files.append(ProcFile(group.folder / name))
        for file in files:
            file.read()
    except OSError as error:
        for file in files:
            file.close()
        reason = f"{group.folder / names[0]} cannot be read: {why(error)}"
        return Unavailable(source=source, reason=reason)
    return CgroupSource(source, group, files, reader)


def _not_enabled(source: str, controller: str, table: str) -> Unavailable:
    groups = " and ".join(sorted({path for _, path in _memberships(table)})) or "none"
    return Unavailable(
        source=source,
        reason=f"the {controller} controller is not switched on for the tree's cgroup ({groups})",
        remedy=f"echo +{controller} > cgroup.subtree_control of the cgroup above it, as root",
    )


def _memberships(table: str) -> list[tuple[tuple[str, ...], str]]:
    """(controllers, path) of each hierarchy; version 2 has the controller ""."""
    rows = [line.split(":", 2) for line in table.splitlines()]
    return [(tuple(row[1].split(",")), row[2]) for row in rows if len(row) == 3]


def _groups(table: str, controller: str, roots: Roots) -> list[Group]:
    """Where the group of a controller may be: "" is version 2.

    In a container its path may be one that only the host sees; then the top of what is mounted is
    the container's own group.
    """
    base = roots.sys / "fs" / "cgroup"
    tops = (base / controller,) if controller else (base, base / "unified")
    for controllers, path in _memberships(table):
        if controller in controllers and ".." not in path.split("/"):
            own = [Group(path, top / path.lstrip("/")) for top in tops]
            return [g for g in (*own, *(Group("/", top) for top in tops)) if g.folder.is_dir()]
    return []


def _numbers(top: tuple[str, ...], roots: Roots) -> dict[str, str]:
    """Device name by number. A cgroup counts at the whole disk, never at its partitions."""
    block = SysBlock(roots)
    found: dict[str, str] = {}
    for name in top:
        disk = block.disk(name)
        number = block.attribute(disk, "dev")
        if number is not None:
            found[number] = disk
    return found


def parse_io_stat(text: bytes, _: bytes = b"") -> Rows:
    """Counters by device number. A device without a value has no row, and is not at 0."""
    rows: Rows = {}
    for line in text.splitlines():
        number, *pairs = line.split() or [b""]
        if not _is_number(number):
            continue  # "(unknown)": a device that is hidden or gone
        values = dict(pair.partition(b"=")[::2] for pair in pairs)
        row: dict[str, Number | None] = {
            name: _number(values.get(key)) for name, key in _IO.items()
        }
        if any(value is not None for value in row.values()):
            rows[number.decode()] = row
    return rows


def parse_throttle(service_bytes: bytes, serviced: bytes) -> Rows:
    """Counters by device number of the version 1 pair of files. Totals are passed over."""
    rows: Rows = {}
    for text, read_name, write_name in (
        (service_bytes, "read_bytes_total", "write_bytes_total"),
        (serviced, "read_operations_total", "write_operations_total"),
    ):
        names = {b"Read": read_name, b"Write": write_name}
        for line in text.splitlines():
            fields = line.split()
            name = names.get(fields[1]) if len(fields) == 3 and _is_number(fields[0]) else None
            if name is not None and fields[2].isdigit():
                row = rows.setdefault(fields[0].decode(), dict.fromkeys(_IO))
                row[name] = int(fields[2])
    return rows


def parse_memory(text: bytes, names: _Names) -> dict[str, Number | None]:
    """Values of memory.stat by our names, each under the first of its keys that is there."""
    rows = dict(line.split(b" ", 1) for line in text.splitlines() if b" " in line)
    return {
        name: next((_number(rows[key]) for key in keys if key in rows), None)
        for name, keys in names.items()
    }


def _is_number(word: bytes) -> bool:
    major, colon, minor = word.partition(b":")
    return bool(colon) and major.isdigit() and minor.isdigit()


def _number(word: bytes | None) -> int | None:
    return int(word) if word is not None and word.isdigit() else None


Reader = Callable[[Group, list[bytes]], Iterable[Reading]]


def _io_reader(parse: Callable[[bytes, bytes], Rows], numbers: dict[str, str]) -> Reader:
    def readings(group: Group, texts: list[bytes]) -> Iterable[Reading]:
        rows = parse(texts[0], texts[-1])
        for number, device in numbers.items():
            if number in rows:
                yield Reading(
                    source="cgroup.io",
                    instance=f"{group.name} {number}",
                    layer=Layer.CLIENT,
                    scope=Scope.DEVICE,
                    counters=rows[number],
                    note=f"{device}: the I/O of the cgroup {group.name} alone, other jobs' not",
                )

    return readings


def _memory_reader(counters: _Names, gauges: _Names) -> Reader:
    def readings(group: Group, texts: list[bytes]) -> Iterable[Reading]:
        yield Reading(
            source="cgroup.memory",
            instance=group.name,
            layer=Layer.CACHE,
            scope=Scope.HOST,
            counters=parse_memory(texts[0], counters),
            gauges=parse_memory(texts[0], gauges),
            note=f"of the cgroup {group.name} and those below it",
        )

    return readings


class CgroupSource:
    """Readings "cgroup.io", one for each device of the mount, or the one "cgroup.memory"."""

    every_ticks = 5
    """The kernel adds up what every CPU has for each look: dear on large nodes."""

    def __init__(self, name: str, group: Group, files: list[ProcFile], reader: Reader) -> None:
        self.name = name
        self._group = group
        self._files = files
        self._readings = reader

    def read(self) -> Iterable[Reading]:
        """One look; a device whose line is torn or not there yet is left out."""
        return self._readings(self._group, [file.read() for file in self._files])

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
