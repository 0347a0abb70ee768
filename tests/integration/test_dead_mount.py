"""A mount that does not answer ends every command with a sentence, soon, and hangs none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

SCRIPT = Path(__file__).with_name("deadmount.py")
IOPROF = (sys.executable, "-P", "-m", "ioprof")
SOON_S = 20.0
"""The commands' own deadline is 10 s at most; the rest is for starting on a busy machine."""

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts"),
    pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="this kernel has no FUSE"),
]


class Ended(NamedTuple):
    """How a command ended beside the dead mount."""

    status: int
    stdout: str
    stderr: str
    took_s: float


@pytest.fixture
def mountpoint(tmp_path: Path) -> Path:
    """An empty folder to mount on."""
    folder = tmp_path / "dead"
    folder.mkdir()
    return folder


def beside(state: str, mountpoint: Path, *command: str) -> Ended:
    """Run `command` where `mountpoint` is dead; whatever hangs is an error of the test."""
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(SCRIPT), state, str(mountpoint), *command],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - began_s)


def left_behind(mountpoint: Path) -> list[str]:
    """Command lines of processes that still name the mount."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(mountpoint) in line:
            found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_the_mount_of_these_tests_is_dead(mountpoint):
    """`ls` hangs on it until it is killed."""
    ended = beside("hung", mountpoint, "timeout", "--signal=KILL", "1", "ls", str(mountpoint))
    assert ended.status == 247, "killed: minus nine, as an exit status"
    assert 1 <= ended.took_s < SOON_S


def test_probe_says_so_within_its_deadline(mountpoint):
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from ioprof.sources.probe import probe\n"
        "began = time.monotonic()\n"
        "print(probe(Path(sys.argv[1]), deadline_s=0.5), time.monotonic() - began)\n"
    )
    ended = beside("hung", mountpoint, sys.executable, "-P", "-c", program, str(mountpoint))
    *answer, took_s = ended.stdout.split()
    assert answer == ["not", "responding"]
    assert 0.5 <= float(took_s) < 3


@pytest.mark.parametrize(
    "command",
    [("profile", "--data"), ("dataset", "survey")],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("state", "says"),
    [("hung", "the mount is not responding"), ("gone", "the mount is stale")],
)
def test_commands_that_need_the_data_end_with_a_sentence(mountpoint, command, state, says):
    """prometheus/node_exporter#868, #1353, #475, GuillaumeGomez/sysinfo#842,
    NagiosEnterprises/ncpa#997, #757, python-diamond/Diamond#626, weka/csi-wekafs#484: it hung."""
    ended = beside(state, mountpoint, *IOPROF, *command, str(mountpoint))
    assert ended.status == 3
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ioprof: {mountpoint} ")
    assert says in last
    assert "Traceback" not in ended.stderr
    assert ended.took_s < SOON_S
    assert left_behind(mountpoint) == []


@pytest.mark.parametrize(
    ("state", "says"),
    [("hung", "not responding"), ("gone", "Transport endpoint is not connected")],
)
def test_doctor_names_the_mount_and_goes_on_with_the_rest(mountpoint, state, says):
    ended = beside(state, mountpoint, *IOPROF, "doctor", "--data", str(mountpoint), "--json")
    assert ended.status == 3
    checks = json.loads(ended.stdout)["checks"]
    data = [check for check in checks if check["area"] == "data"]
    assert [check["state"] for check in data] == ["no"]
    assert says in data[0]["says"]
    assert data[0]["remedy"]
    assert {check["area"] for check in checks} > {"data", "host", "counters", "limits"}
    assert ended.took_s < SOON_S
    assert left_behind(mountpoint) == []


@pytest.mark.parametrize("command", ["run", "watch"])
@pytest.mark.parametrize(
    ("state", "says"),
    [("hung", "not responding"), ("gone", "Transport endpoint is not connected")],
)
def test_run_and_watch_end_with_a_sentence_and_start_nothing(
    mountpoint, tmp_path, command, state, says
):
    started = tmp_path / "started"
    rest = ("--out", str(tmp_path / "run"), "--", "touch", str(started))
    ended = beside(
        state,
        mountpoint,
        *IOPROF,
        command,
        "--data",
        str(mountpoint),
        *(rest if command == "run" else ("--once", "--json")),
    )
    assert ended.status == 3, ended.stderr
    last = " ".join(ended.stderr.split())
    assert says in last
    assert str(mountpoint) in last
    assert "Traceback" not in ended.stderr
    assert not started.exists()
    assert ended.took_s < SOON_S
    assert left_behind(mountpoint) == []


@pytest.mark.parametrize("command", [("doctor", "--data"), ("dataset", "make", "--samples=2")])
def test_a_dead_mount_that_was_not_asked_for_holds_nobody_up(mountpoint, tmp_path, command):
    """prometheus/node_exporter#868: every mount was touched, also those that nobody asked for."""
    good = tmp_path / "good"
    good.mkdir(exist_ok=True)
    ended = beside("hung", mountpoint, *IOPROF, *command, str(good))
    assert ended.status == 0, ended.stderr
    assert ended.took_s < SOON_S


def test_nothing_of_the_mount_is_left(mountpoint):
    beside("hung", mountpoint, "true")
    assert not mountpoint.is_mount()
    assert list(mountpoint.iterdir()) == []
