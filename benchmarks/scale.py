"""Whether a long record is read in bounded time and memory: a day at ten looks a second.

    python benchmarks/scale.py [--hours 24]

Writes a synthetic record of a command with the series that a node with one disk, four interfaces
and 200 processes has, then runs `ioprof report` on it as a user would.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from ioprof._version import VERSION
from ioprof.hostinfo import host
from ioprof.record.header import ClockAnchor, NodeHeader
from ioprof.record.nodefile import Recording
from ioprof.record.reading import Layer, Number, Reading, Role, SamplerEnd, Scope
from ioprof.record.recorded import CELL, Recorded
from ioprof.record.store import FORMAT_VERSION, RunDirectory, write_json

INTERVAL_S = 0.1
START_S = 1000.0
DISK = (
    "read_bytes_total", "read_operations_total", "read_time_seconds_total", "read_merges_total",
    "write_bytes_total", "write_operations_total", "write_time_seconds_total",
    "busy_seconds_total",
)  # fmt: skip
TREE = ("requested_bytes_total", "read_calls_total", "written_bytes_total")
HOST = {
    "vmstat": ("host", 3),
    "cpu": ("cpus", 3),
    "pressure.io": ("host", 2),
    "pressure.cpu": ("host", 2),
    "pressure.memory": ("host", 2),
    "xfs": ("/data", 7),
    "cgroup.io": ("/job", 4),
    "cgroup.memory": ("/job", 2),
}


def readings(tick: int) -> list[Reading]:
    """One look: everything grows, as in training; the disk by 10 MB."""
    grown = tick * 10_000_000
    made = [
        Reading(
            source="block.diskstats",
            instance="vda",
            layer=Layer.WIRE,
            scope=Scope.DEVICE,
            counters=dict.fromkeys(DISK, grown),
            gauges={"in_flight": tick % 7},
            role=Role.TOP,
        ),
        Reading(
            source="process.io",
            instance="tree",
            layer=Layer.APP,
            scope=Scope.PROCESS,
            counters=dict.fromkeys(TREE, grown + tick),
            gauges={"processes": 200, "unreadable_processes": 0},
        ),
        Reading(
            source="process.block",
            instance="tree",
            layer=Layer.CLIENT,
            scope=Scope.PROCESS,
            counters=dict.fromkeys(("read_bytes_total", "written_bytes_total"), grown),
        ),
    ]
    for source, (instance, width) in HOST.items():
        names = [f"counter{number}_total" for number in range(width)]
        if source == "cpu":
            names = ["busy_seconds_total", "iowait_seconds_total", "total_seconds_total"]
        counters: dict[str, Number | None] = dict.fromkeys(names, round(tick * 0.137, 3))
        made.append(
            Reading(
                source=source,
                instance=instance,
                layer=Layer.HOST,
                scope=Scope.HOST,
                counters=counters,
            )
        )
    for number in range(4):
        made.append(
            Reading(
                source="net",
                instance=f"eth{number}",
                layer=Layer.LINK,
                scope=Scope.HOST,
                counters={"receive_bytes_total": grown + number, "transmit_bytes_total": tick},
            )
        )
    return made


def write(root: Path, *, ticks: int) -> Path:
    """A run directory of a recorded command of so many ticks; the file of its node."""
    run = RunDirectory.create(root, overwrite=False)
    end_s = START_S + ticks * INTERVAL_S
    write_json(
        run.recorded,
        Recorded(
            format_version=FORMAT_VERSION,
            ioprof_version=VERSION,
            created="2026-01-01T00:00:00Z",
            command=("train",),
            data=None,
            interval_s=INTERVAL_S,
            host=host(),
            mount=None,
            top_devices=("vda",),
            calibration=None,
            started_s=START_S,
            ended_s=end_s,
            exit_status=0,
        ),
    )
    folder = run.cell(CELL)
    folder.mkdir(parents=True)
    header = NodeHeader(
        format_version=FORMAT_VERSION,
        node=0,
        hostname="synthetic",
        boot_id="",
        pid=1,
        clock=ClockAnchor(monotonic_s=START_S, wall_s=1.7e9),
        interval_s=INTERVAL_S,
        data_path=None,
        cpus=(0, 1),
    )
    path = folder / "node-0.jsonl"
    with path.open("wb") as file:
        recording = Recording(file, header=header)
        for tick in range(ticks + 1):
            recording.tick(START_S + tick * INTERVAL_S, readings(tick))
        recording.write(SamplerEnd(t_s=end_s, ticks=ticks + 1, missed_ticks=0, cpu_s=1.0))
    return path


def main() -> int:
    """Print size, time, memory and whether the total is exact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0)
    hours = parser.parse_args().hours
    ticks = round(hours * 3600 / INTERVAL_S)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "run"
        size = write(root, ticks=ticks).stat().st_size
        print(f"{ticks:,} ticks, {size / 1e6:.0f} MB, {size / 1e6 / hours:.1f} MB an hour")
        began_s = time.monotonic()
        ran = subprocess.run(
            [sys.executable, "-m", "ioprof", "report", str(root), "--json"],
            check=True,
            capture_output=True,
        )
        took_s = time.monotonic() - began_s
        peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        found = msgspec.json.decode(ran.stdout)
        exact = found["storage_read_bytes"] == ticks * 10_000_000
        print(f"report: {took_s:.1f} s, {peak_bytes / 1e9:.2f} GB at most")
        print(f"storage bytes {'exact' if exact else 'WRONG'}: {found['storage_read_bytes']:,.0f}")
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
