"""A program that stands in for bpftrace, and a /sys with the tracepoints of a test."""

from __future__ import annotations

import sys
from pathlib import Path

_PROGRAM = f"""#!{sys.executable} -IS
import sys, time
print('{{"type": "attached_probes", "data": {{"probes": 3}}}}', flush=True)
while True:
    for line in LINES:
        print(line, flush=True)
    nsecs = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    print('{{"type": "printf", "data": "%d\\\\n"}}' % nsecs, flush=True)
    time.sleep(0.02)
"""


def program(folder: Path, *lines: str) -> Path:
    """One that prints `lines`, which are JSON, and the time of each print, for ever."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "bpftrace"
    path.write_text(_PROGRAM.replace("LINES", repr(lines)))
    path.chmod(0o755)
    return path


def failing(folder: Path, words: str) -> Path:
    """One that says `words` and ends."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "bpftrace"
    path.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit 1\n")
    path.chmod(0o755)
    return path


def tracepoints(sys_folder: Path, *names: str) -> None:
    """Tracing files that have these tracepoints: "fuse/fuse_request_end"."""
    for name in names:
        (sys_folder / "kernel/tracing/events" / name).mkdir(parents=True)
