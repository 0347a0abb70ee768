"""Processes that must end with another one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

_PATIENCE_S = 10.0


def child_of_killed(code: str) -> int:
    """The pid that Python code printed before its process was killed."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    return pid


def ends(pid: int) -> bool:
    """Whether a process ends within ten seconds; a zombie has: who adopts it may not wait."""
    until_s = time.monotonic() + _PATIENCE_S
    while is_running(pid):
        if time.monotonic() > until_s:
            return False
        time.sleep(0.02)
    return True


def is_running(pid: int) -> bool:
    """Whether it is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
