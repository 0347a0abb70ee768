"""`ioprof run -- CMD`: the command is as if alone, and what it read is right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

IOPROF = (sys.executable, "-P", "-m", "ioprof")
FILES, FILE_BYTES = 12, 1_048_583


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("data")
    for number in range(FILES):
        (folder / f"{number}.bin").write_bytes(os.urandom(FILE_BYTES))
    os.sync()
    return folder


def evict(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ioprof_run(out: Path, *command: str, options: tuple[str, ...] = (), **named):
    return subprocess.run(
        [*IOPROF, "run", "--out", str(out), *options, "--", *command],
        capture_output=True,
        text=True,
        timeout=120,
        **named,
    )


def totals(out: Path) -> Any:
    return json.loads((out / "summary.json").read_text())


def test_the_status_of_the_command_passes_through(tmp_path):
    done = ioprof_run(tmp_path / "run", "sh", "-c", "exit 7")
    assert done.returncode == 7
    assert totals(tmp_path / "run")["exit_status"] == 7


def test_a_command_that_was_killed_gives_128_and_the_signal(tmp_path):
    assert ioprof_run(tmp_path / "run", "sh", "-c", "kill -9 $$").returncode == 137


def test_standard_input_and_output_are_the_commands_own(tmp_path):
    done = ioprof_run(tmp_path / "run", "cat", input="through\n")
    assert done.stdout == "through\n"
    assert "command   cat" in done.stderr


def test_a_command_that_is_not_there_is_a_sentence(tmp_path):
    done = ioprof_run(tmp_path / "run", "no-such-command")
    assert done.returncode == 3
    assert "no-such-command could not be started: No such file" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_it_read_cold_and_warm_is_told(tmp_path, data):
    """Read through dd, which asks for what it reads and nothing else of size."""
    script = "for f in *.bin; do dd if=$f of=/dev/null bs=64k status=none; done"
    known = FILES * FILE_BYTES
    for state in ("cold", "warm"):
        if state == "cold":
            evict(data)
        out = tmp_path / state
        # A command that reads the folder; counters are tried before, which leaves it as found.
        done = ioprof_run(out, "sh", "-c", script, options=("--data", str(data)), cwd=data)
        assert done.returncode == 0, done.stderr
        found = totals(out)
        assert found["requested_bytes"] == pytest.approx(known, rel=0.02)
        if found["storage_read_source"] is None:
            pytest.skip(f"no counter here: {found['reasons']['storage_read_bytes']}")
        if state == "cold":
            assert found["storage_read_bytes"] > 0.99 * known
        else:
            assert found["cache_served"] > 0.95
            assert found["why"].startswith("cache-served")


def test_the_report_says_it_again(tmp_path):
    ioprof_run(tmp_path / "run", "true")
    again = subprocess.run(
        [*IOPROF, "report", str(tmp_path / "run"), "--json"], capture_output=True, text=True
    )
    assert again.returncode == 0
    assert json.loads(again.stdout) == totals(tmp_path / "run")


@pytest.mark.parametrize(("number", "why"), [(2, "interrupted"), (15, "terminated")])
def test_a_signal_reaches_the_command_and_a_partial_report_is_left(tmp_path, number, why):
    out = tmp_path / "run"
    started = tmp_path / "started"
    process = subprocess.Popen(
        [*IOPROF, "run", "--out", str(out), "--", "sh", "-c", f"touch {started}; exec sleep 60"],
        stderr=subprocess.PIPE,
        text=True,
        # No terminal: what is sent to ioprof alone must be handed on.
        start_new_session=True,
    )
    deadline_s = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline_s:
        time.sleep(0.02)
    process.send_signal(number)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"partial: {why}" in " ".join(words.split())
    assert totals(out)["partial"] == why


def test_three_lines_in_a_loop_give_steps_waits_and_au(tmp_path):
    """A loop whose loader takes 20 ms a batch and whose step takes 30 ms more: AU 60 %."""
    script = tmp_path / "train.py"
    script.write_text(
        "import time\n"
        "from ioprof import mark\n"
        "def loader():\n"
        "    for _ in range(40):\n"
        "        time.sleep(0.02)\n"
        "        yield [0] * 8\n"
        "for batch in mark.batches(loader()):\n"
        "    time.sleep(0.03)\n"
        "    mark.step(samples=len(batch))\n"
    )
    done = ioprof_run(tmp_path / "run", sys.executable, str(script))
    assert done.returncode == 0, done.stderr
    found = totals(tmp_path / "run")["marks"]
    assert found["window"]["steps"] > 20
    assert found["wait_s"]["median"] == pytest.approx(0.02, rel=0.15)
    assert found["step_s"]["median"] == pytest.approx(0.05, rel=0.15)
    assert found["samples_per_s"]["median"] == pytest.approx(160, rel=0.15)
    assert found["au"] == pytest.approx(0.6, abs=0.06)
    assert "AU 6" in done.stderr or "AU 5" in done.stderr


def test_a_command_without_marks_is_told_how_to_mark(tmp_path):
    done = ioprof_run(tmp_path / "run", "true")
    assert totals(tmp_path / "run")["marks"] is None
    assert "the command marked no steps; docs/marks.md" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exec sleep 60", 128 + signal.SIGTERM),
        # One that takes SIGTERM as its own affair, and ends by itself.
        ("trap 'exit 5' TERM; while :; do sleep 0.05; done", 5),
    ],
)
def test_after_its_duration_the_command_is_asked_to_end(tmp_path, script, status):
    out = tmp_path / "run"
    began_s = time.monotonic()
    done = ioprof_run(out, "sh", "-c", script, options=("--duration", "1s"))
    assert time.monotonic() - began_s < 30
    assert done.returncode == status
    assert totals(out)["partial"] == "deadline"
    assert 1.0 <= totals(out)["seconds"] < 5.0


def test_a_command_that_ends_before_its_duration_is_not_partial(tmp_path):
    done = ioprof_run(tmp_path / "run", "true", options=("--duration", "50s"))
    assert done.returncode == 0
    assert totals(tmp_path / "run")["partial"] is None


def test_a_command_that_ignores_the_first_interrupt_decides_for_itself(tmp_path):
    script = "trap 'echo once; trap - INT' INT; touch started; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        [*IOPROF, "run", "--out", str(tmp_path / "run"), "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    deadline_s = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline_s:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "once\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert totals(tmp_path / "run")["partial"] == "interrupted"


def test_ranks_that_are_each_recorded_write_runs_of_their_own(tmp_path):
    """sgl-project/sglang 15326: every rank wrote the same output file."""
    out = tmp_path / "run"
    ranks = [
        subprocess.Popen(
            [*IOPROF, "run", "--out", str(out), "--", "sh", "-c", "exit $RANK"],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"},
            stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    for rank, process in enumerate(ranks):
        _, words = process.communicate(timeout=60)
        assert process.returncode == rank, words
    found = sorted(out.iterdir())
    assert [path.name.rpartition("-rank-")[2] for path in found] == ["0", "1"]
    assert [totals(path)["exit_status"] for path in found] == [0, 1]


def test_an_interrupt_twice_still_leaves_a_report(tmp_path):
    """sysstat 215, renaissance 119: Ctrl-C left no result."""
    out = tmp_path / "run"
    started = tmp_path / "started"
    script = f"trap : INT; touch {started}; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        [*IOPROF, "run", "--out", str(out), "--", "sh", "-c", script], start_new_session=True
    )
    deadline_s = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline_s:
        time.sleep(0.02)
    # The command takes both as its own affair; only what then ends it ends the recording.
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
        time.sleep(0.2)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert totals(out)["partial"] == "interrupted"


def test_nothing_is_written_under_the_data(data):
    before = sorted(data.rglob("*"))
    done = ioprof_run(data / "run", "true", options=("--data", str(data)))
    assert done.returncode == 2
    assert "never writes there" in done.stderr
    assert sorted(data.rglob("*")) == before
