"""Block devices: `/proc/diskstats`, only those under the data path.

Columns after the name (kernel documentation, admin-guide/iostats): 1 reads completed, 2 merged,
3 sectors read, 4 ms reading, 5 writes, 6 merged, 7 sectors written, 8 ms writing, 9 in flight,
10 ms busy, 11 weighted ms; discards from Linux 4.18 and flushes from 5.5 follow. Lines of 14, 18,
20 or more columns all occur. The ms columns are 32 bits and wrap after 49.7 days of request time.
"""

from __future__ import annotations

from collections.abc import Iterable

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.procfile import ProcFile
from ioprof.sources.source import BlockDevice, BlockStack, Found, Roots, Target

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
        return [Unavailable(source="block.diskstats", reason=f"{path}: {error.strerror}")]
    found: list[Found] = []
    for device in stack.devices:
        silent = _why_silent(device, rows, roots)
        if silent is not None:
            found.append(Unavailable(source=f"block.diskstats {device.name}", reason=silent))
    if any(device.name in rows or device.paths for device in stack.devices):
        found.append(BlockSource(stack, roots=roots))
    return found


def parse_diskstats(text: bytes) -> dict[str, list[int]]:
    """Numbers after the name, by name. Short or torn lines are passed over; of two rows of one
    name the later counts."""
    rows: dict[str, list[int]] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 7 and all(field.isdigit() for field in fields[3:]):
            rows[fields[2].decode(errors="replace")] = [int(field) for field in fields[3:]]
    return rows


class BlockSource:
    """One reading per device of the stack at each tick, in the order top to leaf."""

    name = "block.diskstats"
    every_ticks = 1

    def __init__(self, stack: BlockStack, *, roots: Roots = Roots()) -> None:
        self._devices = stack.devices
        self._wanted = {n.encode(): n for d in stack.devices for n in (d.name, *d.paths)}
        self._file = ProcFile(roots.proc / "diskstats")

    def read(self) -> Iterable[Reading]:
        """Cumulative counters of each device; one that is unplugged is left out."""
        rows = self._rows()
        for device in self._devices:
            row = self._row(device, rows)
            if row is not None:
                yield _reading(device, row, by_paths=row is not rows.get(device.name))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rows(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for line in self._file.read().splitlines():
            # Name first: most lines of a large machine are other devices.
            fields = line.split(None, 3)
            name = self._wanted.get(fields[2]) if len(fields) == 4 else None
            if name is not None:
                rows[name] = [int(field) for field in fields[3].split()]
        return rows

    def _row(self, device: BlockDevice, rows: dict[str, list[int]]) -> list[int] | None:
        """The device's row; of a multipath head at rest, its paths' rows added up.

        Kernels before about 6.2 count multipath I/O on the hidden paths alone, newer ones on the
        head too: the head as soon as it moves, else the paths, never both.
        """
        head = rows.get(device.name)
        paths = [rows[name] for name in device.paths if name in rows]
        if not paths:
            return head
        # A head that has ever counted is one whose kernel keeps head statistics.
        if head is not None and any(head):
            return head
        return [sum(column) for column in zip(*paths, strict=False)]


def _reading(device: BlockDevice, row: list[int], *, by_paths: bool) -> Reading:
    return Reading(
        source="block.diskstats",
        instance=device.name,
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters={name: _column(row, at, scale) for name, at, scale in _COUNTERS},
        gauges={"in_flight": _column(row, _IN_FLIGHT, 1)},
        role=device.role,
        note=f"sum of the paths {', '.join(device.paths)}: the head keeps no counters here"
        if by_paths
        else None,
    )


def _column(row: list[int], at: int, scale: float) -> Number | None:
    return row[at] * scale if at < len(row) else None


def _why_silent(device: BlockDevice, rows: dict[str, list[int]], roots: Roots) -> str | None:
    if device.name not in rows and not any(path in rows for path in device.paths):
        return f"{device.name} has no row in diskstats: this container or kernel hides it"
    flag = roots.sys / "block" / device.name / "queue" / "iostats"
    try:
        off = flag.read_text().strip() == "0"
    except OSError:
        return None
    return (
        f"{device.name} counts nothing: its statistics are switched off; "
        f"echo 1 > /sys/block/{device.name}/queue/iostats"
        if off
        else None
    )
