"""Texts of GPUDirect Storage: the driver's `/proc/driver/nvidia-fs/stats`, and `gds_stats -l 3`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ioprof.record.reading import Number

_MIB = 2**20
_DRIVER_COUNTERS: dict[str, tuple[bytes, bytes, int]] = {
    "read_bytes_total": (b"Reads", b"readMiB", _MIB),
    "read_operations_total": (b"Reads", b"ok", 1),
    "read_errors_operations_total": (b"Reads", b"err", 1),
    "write_bytes_total": (b"Writes", b"writeMiB", _MIB),
    "write_operations_total": (b"Writes", b"ok", 1),
}
_DRIVER_GAUGES: dict[str, tuple[bytes, bytes, float]] = {
    "read_bytes_per_second": (b"Reads", b"Bandwidth(MiB/s)", _MIB),
    "read_latency_mean_seconds": (b"Reads", b"Avg-Latency(usec)", 1e-6),
}
_CUFILE_COUNTERS: dict[str, tuple[str, bytes, int]] = {
    "read_bytes_total": ("Read", b"MiB", _MIB),
    "read_operations_total": ("Read", b"n", 1),
    "compat_read_operations_total": ("Read", b"posix", 1),
    "read_errors_operations_total": ("Read", b"err", 1),
    "write_bytes_total": ("Write", b"MiB", _MIB),
    "write_operations_total": ("Write", b"n", 1),
}
DRIVER_COUNTERS, DRIVER_GAUGES = tuple(_DRIVER_COUNTERS), tuple(_DRIVER_GAUGES)
CUFILE_COUNTERS = tuple(_CUFILE_COUNTERS)
_GPU = re.compile(rb"GPU (\d+) Read:(.*?)(?: Write:(.*?))?(?: BufRegister:.*)?")


class DriverStats(NamedTuple):
    """What the driver says. With `counting` False it keeps errors alone: the rest is None."""

    counting: bool
    counters: dict[str, Number | None]
    gauges: dict[str, Number | None]


def parse_driver(text: bytes) -> DriverStats:
    """Counters and gauges of the driver's text; None for what this version does not have."""
    rows: dict[bytes, dict[bytes, bytes]] = {}
    counting = False
    for line in text.splitlines():
        key, colon, rest = line.partition(b":")
        if key.strip() == b"IO stats":
            counting = rest.split(b",")[0].strip() == b"Enabled"
        elif colon:
            # Two lines have the key "Reads": the first counts, the second is of a window of time.
            row = rows.setdefault(key.strip(), {})
            for name, value in _pairs(rest).items():
                row.setdefault(name, value)
    return DriverStats(
        counting=counting,
        counters={
            name: _scaled(rows.get(row, {}).get(key), scale)
            for name, (row, key, scale) in _DRIVER_COUNTERS.items()
        },
        gauges={
            name: _scaled(rows.get(row, {}).get(key), scale)
            for name, (row, key, scale) in _DRIVER_GAUGES.items()
        },
    )


def parse_cufile(text: bytes) -> dict[int, dict[str, Number | None]]:
    """Counters by GPU of one process, from what `gds_stats -p PID -l 3` prints."""
    found: dict[int, dict[str, Number | None]] = {}
    for line in text.splitlines():
        # The lines of PCI addresses ("GPU 0000:43:00.0 : ...") have another meaning.
        gpu = _GPU.fullmatch(line.strip())
        if gpu is not None:
            pairs = {"Read": _pairs(gpu[2]), "Write": _pairs(gpu[3] or b"")}
            found[int(gpu[1])] = {
                name: _scaled(pairs[way].get(key), scale)
                for name, (way, key, scale) in _CUFILE_COUNTERS.items()
            }
    return found


def _pairs(text: bytes) -> Mapping[bytes, bytes]:
    return dict(word.partition(b"=")[::2] for word in text.split())


def _scaled(word: bytes | None, scale: float) -> Number | None:
    return int(word) * scale if word is not None and word.isdigit() else None
