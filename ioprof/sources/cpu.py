"""Processor time of the CPUs that the recorded command may use."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.procfile import ProcFile, why
from ioprof.sources.source import Fact, Found, Roots, Target

_Ticks = tuple[int, int, int]

FACTS: tuple[Fact, ...] = (
    Fact(
        source="cpu",
        layer=Layer.HOST,
        scope=Scope.HOST,
        counters=("busy_seconds_total", "iowait_seconds_total", "total_seconds_total"),
        file="/proc/stat",
        field="lines cpuN: user+nice+system+irq+softirq+steal; iowait; both with idle",
        unit="clock ticks, 100 a second",
        since="Linux 2.6; steal from 2.6.11",
        caveat="only the CPUs that the command may use, with everything that runs on them; iowait "
        "is idle time and no measure of storage",
        check="awk -v t=$(getconf CLK_TCK) "
        "'/^cpu[0-9]/ {b+=$2+$3+$4+$7+$8+$9; w+=$6} END {print b/t, w/t}' /proc/stat",
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source, or why /proc/stat cannot be read."""
    path = roots.proc / "stat"
    try:
        file = ProcFile(path)
        rows = parse(file.read())
    except OSError as error:
        return [Unavailable(source="cpu", reason=f"{path} cannot be read: {why(error)}")]
    cpus = target.cpus or tuple(sorted(rows))
    if not rows:
        file.close()
        return [Unavailable(source="cpu", reason=f"{path} has no line for any single CPU")]
    return [CpuSource(file, cpus=cpus)]


def parse(text: bytes) -> dict[int, _Ticks]:
    """(busy, I/O wait, idle) in clock ticks by CPU number.

    Busy is user + nice + system + irq + softirq + steal; guest time is inside user time already.
    """
    rows: dict[int, _Ticks] = {}
    for line in text.splitlines():
        if not line.startswith(b"cpu"):
            break  # the CPU lines come first
        name, *words = line.split()
        number = name[3:]
        if not number.isdigit() or not all(map(bytes.isdigit, words)):
            continue  # the sum of all CPUs, or a torn line
        user, nice, system, idle, iowait, irq, softirq, steal = (
            int(w) for w in (*words, *[b"0"] * 8)[:8]
        )
        rows[int(number)] = (user + nice + system + irq + softirq + steal, iowait, idle)
    return rows


class CpuSource:
    """Reading "cpu": seconds summed over the target's CPUs. None while one of them is offline."""

    name = "cpu"
    every_ticks = (
        5  # /proc/stat also lists every interrupt: on a large host that takes a millisecond
    )

    def __init__(self, file: ProcFile, *, cpus: tuple[int, ...]) -> None:
        self._file = file
        self._cpus = cpus
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._highest: dict[int, _Ticks] = {}
        self._note = (
            f"CPUs {','.join(map(str, cpus))} alone; everything that runs on them, "
            f"in steps of {1000 // self._ticks_per_s} ms"
        )

    def read(self) -> Iterable[Reading]:
        """One look at the CPUs."""
        yield Reading(
            source="cpu",
            instance="cpus",
            layer=Layer.HOST,
            scope=Scope.HOST,
            counters=self._counters(parse(self._file.read())),
            note=self._note,
        )

    def _counters(self, rows: dict[int, _Ticks]) -> dict[str, Number | None]:
        if not all(cpu in rows for cpu in self._cpus):
            return dict.fromkeys(
                ("busy_seconds_total", "iowait_seconds_total", "total_seconds_total")
            )
        busy = iowait = idle = 0
        for cpu in self._cpus:
            # Idle and I/O wait may step back (proc(5)); a counter that falls would read as reset.
            old = self._highest.get(cpu, (0, 0, 0))
            new = rows[cpu]
            high = (max(old[0], new[0]), max(old[1], new[1]), max(old[2], new[2]))
            self._highest[cpu] = high
            busy, iowait, idle = busy + high[0], iowait + high[1], idle + high[2]
        per_s = self._ticks_per_s
        return {
            "busy_seconds_total": busy / per_s,
            "iowait_seconds_total": iowait / per_s,
            "total_seconds_total": (busy + iowait + idle) / per_s,
        }

    def close(self) -> None:
        """Close /proc/stat."""
        self._file.close()
