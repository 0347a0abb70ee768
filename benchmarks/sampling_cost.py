"""What one tick of the sampler costs: CPU microseconds for trees of 1, 64 and 512 processes.

    python benchmarks/sampling_cost.py [--ticks 100] [--interval 0.1] [--data DIR]

Every process of the tree reads a little all the time. Ticks are spaced as in use, so caches are
as cold as in use. Beside it, in the same run and on the same tree, psutil reads the same things
(block devices, process tree I/O, CPU times, network; it has no pressure, nor the paging counters).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from ioprof.clock import Clock, MonotonicClock, anchor, ticks
from ioprof.record.header import NodeHeader
from ioprof.record.nodefile import Recording
from ioprof.sampler import Sampler, SamplerSpec, find_sources

READER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
while os.getppid() == int(sys.argv[2]):
    os.pread(fd, 4096, 0)
    time.sleep(0.05)
"""


@contextlib.contextmanager
def tree(processes: int) -> Iterator[None]:
    """`processes` children of this process that read until it is left."""
    command = [sys.executable, "-S", "-E", "-c", READER, sys.executable, str(os.getpid())]
    children = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()


class Costs(MonotonicClock):
    """A clock that notes the CPU time spent between its sleeps."""

    def __init__(self) -> None:
        self.spent_us: list[float] = []
        self._awake_s = time.thread_time()

    def sleep_until(self, deadline_s: float) -> None:
        """Sleep, and begin to count anew."""
        self.spent_us.append((time.thread_time() - self._awake_s) * 1e6)
        super().sleep_until(deadline_s)
        self._awake_s = time.thread_time()


def ours_us(data: Path, *, interval_s: float, count: int) -> list[float]:
    """CPU microseconds of each tick, everything included: read, encode, write."""
    clock = Costs()
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "node.jsonl").open("wb") as file:
        spec = SamplerSpec(
            node=0,
            interval_s=interval_s,
            path=Path(folder),
            data_path=data,
            root_pid=os.getpid(),
            cpus=tuple(sorted(os.sched_getaffinity(0))),
        )
        header = NodeHeader(
            format_version=1,
            node=0,
            hostname="",
            boot_id="",
            pid=os.getpid(),
            clock=anchor(),
            interval_s=interval_s,
            data_path=None,
            cpus=spec.cpus,
        )
        # This process is the root here, not only the sampler, so it may not be left out.
        found = find_sources(spec, sampler_pid=0)
        sampler = Sampler(Recording(file, header=header), found, interval_s=interval_s, clock=clock)
        sampler.run(stopped=lambda: len(clock.spent_us) > count, ready=lambda: None)
        sampler.close()
    return clock.spent_us[3:]  # the first ticks list /proc and open the files


def psutil_us(*, interval_s: float, count: int) -> list[float]:
    """CPU microseconds of each round of the same reads through psutil."""
    root = psutil.Process()

    def read() -> None:
        for process in (root, *root.children(recursive=True)):
            process.io_counters()
        psutil.disk_io_counters(perdisk=True)
        psutil.cpu_times(percpu=True)
        psutil.net_io_counters(pernic=True)

    return timed(read, interval_s=interval_s, count=count, clock=MonotonicClock())


def timed(read: Callable[[], None], *, interval_s: float, count: int, clock: Clock) -> list[float]:
    """CPU microseconds of each of `count` calls, spaced by the interval."""
    spent_us = []
    for index, _ in ticks(clock, interval_s=interval_s, start_s=clock.now_s()):
        start_s = time.thread_time()
        read()
        spent_us.append((time.thread_time() - start_s) * 1e6)
        if index >= count:
            return spent_us[3:]
    return spent_us


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ticks", type=int, default=100)
    parser.add_argument("--interval", type=float, default=0.1)
    parser.add_argument("--data", type=Path, default=Path.cwd())
    asked = parser.parse_args()
    print("processes  ioprof µs/tick  of one core  psutil µs/round  psutil ÷ ioprof")
    for processes in (1, 64, 512):
        with tree(processes):
            MonotonicClock().sleep_until(time.monotonic() + 2)
            ours = statistics.mean(
                ours_us(asked.data, interval_s=asked.interval, count=asked.ticks)
            )
            theirs = statistics.mean(psutil_us(interval_s=asked.interval, count=asked.ticks))
        share = ours / 1e6 / asked.interval
        print(f"{processes:9}  {ours:14.0f}  {share:11.2%}  {theirs:15.0f}  {theirs / ours:15.1f}")


if __name__ == "__main__":
    main()
