"""Block devices: `/proc/diskstats`, only those under the data path.

Columns after the name (kernel documentation, admin-guide/iostats): 1 reads completed, 2 merged,
3 sectors read, 4 ms reading, 5 writes, 6 merged, 7 sectors written, 8 ms writing, 9 in flight,
10 ms busy, 11 weighted ms; discards from Linux 4.18 and flushes from 5.5 follow. Lines of 14, 18,
20 or more columns all occur. The ms columns are 32 bits and wrap after 49.7 days of request time:
they are handed on as they are, and a fall is a gap for whoever takes differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.procfile import ProcFile, why
from ioprof.sources.source import BlockDevice, Fact, Found, Roots, Target
from ioprof.sources.sysblock import SysBlock

SECTOR_BYTES = 512  # whatever the device's own block size
_MS = 1e-3
_COUNTERS: tuple[tuple[str, int, float], ...] = (
    ("read_bytes_total", 2, SECTOR_BYTES),
    ("read_operations_total", 0, 1),
    ("read_time_seconds_total", 3, _MS),
    ("read_merges_total", 1, 1),
    ("write_bytes_total", 6, SECTOR_BYTES),
    ("write_operations_total", 4, 1),
    ("busy_seconds_total", 9, _MS),
    ("weighted_time_seconds_total", 10, _MS),
)
_IN_FLIGHT = 8
_OLD_PARTITION_COLUMNS = 4
_NO_QUEUE_IS_SO_LONG = 2**31

_FILE = "/proc/diskstats"
_SINCE = "Linux 2.6; for partitions Linux 2.6.25"
FACTS: tuple[Fact, ...] = (
    Fact(
        source="block.diskstats",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("read_bytes_total", "write_bytes_total"),
        file=_FILE,
        field="columns 6 (read) and 10 (written) of the device's line",
        unit="sectors of 512 bytes, whatever the device's own block size",
        since=_SINCE,
        caveat="whole device, other readers too; what a device is stacked on counts the same bytes "
        "again; nothing of user-space NVMe",
        check="awk '{printf \"%s %.0f %.0f\\n\", $3, $6*512, $10*512}' /proc/diskstats",
    ),
    Fact(
        source="block.diskstats",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("read_operations_total", "write_operations_total", "read_merges_total"),
        file=_FILE,
        field="columns 4 (reads), 8 (writes) and 5 (reads merged into others)",
        unit="requests",
        since=_SINCE,
        caveat="requests completed after merging: not the calls that asked for them",
        check="awk '{print $3, $4, $8, $5}' /proc/diskstats",
    ),
    Fact(
        source="block.diskstats",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("read_time_seconds_total", "weighted_time_seconds_total"),
        file=_FILE,
        field="columns 7 (reads) and 14 (all requests), summed over requests",
        unit="milliseconds, 32 bits",
        since=_SINCE,
        caveat="wraps after 49.7 days of request time; read time over reads is a mean, queueing "
        "included",
        check="awk '{print $3, $7/1000, $14/1000}' /proc/diskstats",
    ),
    Fact(
        source="block.diskstats",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("busy_seconds_total",),
        file=_FILE,
        field="column 13",
        unit="milliseconds, 32 bits",
        since="Linux 2.6; from Linux 5.0 counted by the timer tick",
        caveat="time with any request under way: no saturation on devices that serve many at once",
        check="awk '{print $3, $13/1000}' /proc/diskstats",
    ),
    Fact(
        source="block.diskstats",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("in_flight",),
        file=_FILE,
        field="column 12",
        unit="requests under way at that instant",
        since=_SINCE,
        caveat="some drivers leave negative values: those are left out",
        check="awk '{print $3, $12}' /proc/diskstats",
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source for the devices under the target's mount, or why there is none."""
    stack = target.stack
    if stack is None or not stack.devices:
        reason = (stack.reason if stack else None) or "the mount of the data path is not known"
        return [Unavailable(source="block.diskstats", reason=reason)]
    path = roots.proc / "diskstats"
    try:
        rows = parse_diskstats(path.read_bytes())
    except OSError as error:
        return [Unavailable(source="block.diskstats", reason=f"{path}: {why(error)}")]
    silent = [_silence(device, rows, roots) for device in stack.devices]
    # A device that counts nothing is not read: its standing still would look like a measured 0.
    heard = tuple(d for d, cause in zip(stack.devices, silent, strict=True) if cause is None)
    found: list[Found] = [cause for cause in silent if cause is not None]
    if heard:
        notes = {d.name: text for d in heard if (text := _blind_spot(d, roots)) is not None}
        found.append(BlockSource(heard, notes=notes, roots=roots))
    return found


def parse_diskstats(text: bytes) -> dict[str, list[int]]:
    """Numbers after the name, by name: of two rows of one name the later counts.

    Passed over: torn rows, and the partition rows of Linux before 2.6.25, whose four numbers are
    other columns.
    """
    rows: dict[str, list[int]] = {}
    for line in text.splitlines():
        fields = line.split(None, 3)
        numbers = _numbers(fields[3]) if len(fields) == 4 else None
        if numbers is not None:
            rows[fields[2].decode(errors="replace")] = numbers
    return rows


def _numbers(text: bytes) -> list[int] | None:
    try:
        numbers = [int(field) for field in text.split()]
    except ValueError:
        return None
    return numbers if len(numbers) > _OLD_PARTITION_COLUMNS else None


class BlockSource:
    """One reading per device of the stack at each tick, in the order top to leaf."""

    name = "block.diskstats"
    every_ticks = 1

    def __init__(
        self,
        devices: tuple[BlockDevice, ...],
        *,
        notes: Mapping[str, str] | None = None,
        roots: Roots = Roots(),
    ) -> None:
        self._devices = devices
        self._notes = notes or {}
        self._wanted = {n.encode(): n for d in devices for n in (d.name, *d.paths)}
        self._file = ProcFile(roots.proc / "diskstats")

    def read(self) -> Iterable[Reading]:
        """Cumulative counters of each device; one that is unplugged is left out."""
        rows = self._rows()
        for device in self._devices:
            row = self._row(device, rows)
            if row is not None:
                by_paths = row is not rows.get(device.name)
                yield _reading(device, row, note=self._note(device, by_paths=by_paths))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rows(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for line in self._file.read().splitlines():
            # Name first: most lines of a large machine are other devices.
            fields = line.split(None, 3)
            name = self._wanted.get(fields[2]) if len(fields) == 4 else None
            numbers = _numbers(fields[3]) if name is not None else None
            if name is not None and numbers is not None:
                rows[name] = numbers
        return rows

    def _row(self, device: BlockDevice, rows: dict[str, list[int]]) -> list[int] | None:
        """The device's row; of a multipath head at rest, its paths' rows added up.

        Linux before 6.2 counts multipath I/O on the hidden paths alone, later on the head too, and
        on a partition of the head never: the device as soon as it moves, else the paths, never
        both. The counters grow from boot on, so a device that has moved stays chosen.
        """
        head = rows.get(device.name)
        paths = [rows[name] for name in device.paths if name in rows]
        if not paths or (head is not None and any(head)):
            return head
        return [sum(column) for column in zip(*paths, strict=False)]

    def _note(self, device: BlockDevice, *, by_paths: bool) -> str | None:
        if by_paths:
            paths = ", ".join(device.paths)
            return f"sum of the paths {paths}: {device.name} itself has counted nothing since boot"
        return self._notes.get(device.name)


def _reading(device: BlockDevice, row: list[int], *, note: str | None) -> Reading:
    return Reading(
        source="block.diskstats",
        instance=device.name,
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters={name: _column(row, at, scale) for name, at, scale in _COUNTERS},
        gauges={"in_flight": _in_flight(row)},
        role=device.role,
        note=note,
    )


def _column(row: list[int], at: int, scale: float) -> Number | None:
    return row[at] * scale if at < len(row) else None


def _in_flight(row: list[int]) -> int | None:
    """Requests under way; None for the wrapped or negative values that some drivers leave."""
    value = row[_IN_FLIGHT] if len(row) > _IN_FLIGHT else None
    return value if value is not None and 0 <= value < _NO_QUEUE_IS_SO_LONG else None


def _silence(device: BlockDevice, rows: dict[str, list[int]], roots: Roots) -> Unavailable | None:
    """Why a device's counters cannot be read; None when they can."""
    source = f"block.diskstats {device.name}"
    block = SysBlock(roots)
    if not any(name in rows for name in (device.name, *device.paths)):
        return Unavailable(
            source=source,
            reason=f"{device.name} has no row in diskstats: this container or kernel hides it",
            remedy="run where the device is seen; until then the process counters stand in",
        )
    if not block.counts(device.name):
        disk = block.disk(device.name)
        return Unavailable(
            source=source,
            reason=f"{device.name} counts nothing: the statistics of {disk} are switched off",
            remedy=f"echo 1 > /sys/block/{disk}/queue/iostats",
        )
    return None


def _blind_spot(device: BlockDevice, roots: Roots) -> str | None:
    """What a loop device's numbers leave out; None for other devices."""
    dio = SysBlock(roots).attribute(device.name, "loop/dio")
    if dio is None:
        return None
    if dio == "0":
        return (
            "a buffered loop device: it counts what it delivers, but the page cache of its file "
            "may have served that, and then the disk below rests"
        )
    return "a loop device with direct I/O: host-wide page-in counts its bytes twice, this does not"
