"""Time lost waiting for I/O, CPU and memory, as the kernel's pressure stall information says."""

from __future__ import annotations

import errno
from collections.abc import Iterable

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.procfile import ProcFile, why
from ioprof.sources.source import Fact, Found, Roots, Target

_RESOURCES = ("io", "cpu", "memory")
_REMEDY = "boot with psi=1, on a kernel built with CONFIG_PSI (Linux 4.20 or newer)"
_ABSENT = (errno.ENOENT, errno.EOPNOTSUPP)

FACTS: tuple[Fact, ...] = tuple(
    Fact(
        source=f"pressure.{resource}",
        layer=Layer.STALL,
        scope=Scope.HOST,
        counters=("stall_some_seconds_total", "stall_full_seconds_total"),
        file=f"/proc/pressure/{resource}",
        field="total= of the lines some and full",
        unit="microseconds",
        since="Linux 4.20 with CONFIG_PSI" + "; full from 5.13" * (resource == "cpu"),
        caveat="every task of the host; absent when the kernel was started without psi=1",
        check=f"cat /proc/pressure/{resource}",
    )
    for resource in _RESOURCES
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """One source each for I/O, CPU and memory, or why it cannot be read."""
    return [_find_one(resource, roots) for resource in _RESOURCES]


def _find_one(resource: str, roots: Roots) -> Found:
    name = f"pressure.{resource}"
    path = roots.proc / "pressure" / resource
    try:
        file = ProcFile(path)
        file.read()
    except OSError as error:
        if error.errno in _ABSENT:
            reason = f"this kernel keeps no pressure stall information ({path}: {why(error)})"
            return Unavailable(source=name, reason=reason, remedy=_REMEDY)
        return Unavailable(source=name, reason=f"{path} cannot be read: {why(error)}")
    return PressureSource(name, file)


def parse(text: bytes) -> dict[str, Number | None]:
    """Seconds since boot in which some, and all, tasks waited. None for a line that is not there:
    `full` of the CPU came with Linux 5.13.
    """
    return {
        "stall_some_seconds_total": _total_s(text, b"some "),
        "stall_full_seconds_total": _total_s(text, b"full "),
    }


def _total_s(text: bytes, kind: bytes) -> float | None:
    for line in text.splitlines():
        if line.startswith(kind):
            total_us = line.rpartition(b"total=")[2].strip()
            return int(total_us) / 1e6 if total_us.isdigit() else None
    return None


class PressureSource:
    """Reading "pressure.io", "pressure.cpu" or "pressure.memory" of the whole host."""

    every_ticks = 5
    """A view of the host: half the looks of the headline are enough, and halve its cost."""

    def __init__(self, name: str, file: ProcFile) -> None:
        self.name = name
        self._file = file

    def read(self) -> Iterable[Reading]:
        """One look at the stall totals."""
        yield Reading(
            source=self.name,
            instance="host",
            layer=Layer.STALL,
            scope=Scope.HOST,
            counters=parse(self._file.read()),
            note="every task of the host, not the recorded ones alone",
        )

    def close(self) -> None:
        """Close the pressure file."""
        self._file.close()
