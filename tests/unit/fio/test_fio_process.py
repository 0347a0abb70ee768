"""A program that ioprof drives never outlives it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ioprof.errors import ToolError
from ioprof.fio import process

SH = "/bin/sh"


def test_what_it_said_and_how_it_ended_come_back():
    done = process.run([SH, "-c", "echo out; echo err >&2; exit 3"], deadline_s=10)
    assert (done.exit_status, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_a_signal_is_128_plus_its_number():
    assert process.run([SH, "-c", "kill -TERM $$"], deadline_s=10).exit_status == 128 + 15


def test_bytes_that_are_no_text_do_not_break_it():
    assert (
        process.run([SH, "-c", "printf '\\377'"], deadline_s=10).stdout
        == "\N{REPLACEMENT CHARACTER}"
    )


def test_at_the_deadline_it_is_ended_with_all_that_it_started(tmp_path):
    pid_file = tmp_path / "pid"
    script = f"sleep 300 & echo $! > {pid_file}; wait"
    with pytest.raises(ToolError, match="not done after 1 s and was killed"):
        process.run([SH, "-c", script], deadline_s=1)
    assert_ends(int(pid_file.read_text()))


def test_one_that_ignores_interrupts_is_killed(tmp_path):
    pid_file = tmp_path / "pid"
    script = f"trap '' INT; echo $$ > {pid_file}; while :; do sleep 0.1; done"
    with pytest.raises(ToolError):
        process.run([SH, "-c", script], deadline_s=0.5)
    assert_ends(int(pid_file.read_text()))


def test_it_ends_when_ioprof_is_killed(tmp_path):
    pid_file = tmp_path / "pid"
    script = f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 300"
    code = f"from ioprof.fio import process; process.run(['{SH}', '-c', {script!r}], deadline_s=99)"
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        pid = wait_for_pid(pid_file)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert_ends(pid)


def test_an_interrupt_ends_it_and_goes_on(tmp_path):
    pid_file = tmp_path / "pid"
    script = f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 300"
    code = (
        "from ioprof.fio import process\n"
        "try:\n"
        f"    process.run(['{SH}', '-c', {script!r}], deadline_s=99)\n"
        "except KeyboardInterrupt:\n"
        "    raise SystemExit(130)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    pid = wait_for_pid(pid_file)
    parent.send_signal(signal.SIGINT)
    assert parent.wait(timeout=20) == 130
    assert_ends(pid)


def wait_for_pid(path: Path) -> int:
    for _ in range(400):
        with contextlib.suppress(FileNotFoundError):
            return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError(f"{path} was never written")


def assert_ends(pid: int) -> None:
    """Fail when `pid` is still running after five seconds; a zombie has ended."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state in "ZX":
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError(f"{pid} outlived its parent")
