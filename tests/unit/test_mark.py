"""Step marks, as a training script makes them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ioprof import mark
from ioprof.record.step import Step
from ioprof.record.store import read_rank


class Timer:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return 1.0e9 + self.now_s


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> Timer:
    """A fresh mark under a clock that stands at 100 s."""
    timer = Timer()
    monkeypatch.setattr(mark, "time", timer)
    monkeypatch.setattr(mark, "_marker", mark._Marker())
    for name in (*mark._RANK, *mark._LOCAL, *mark._WORLD):
        monkeypatch.delenv(name, raising=False)
    return timer


@pytest.fixture
def folder(tmp_path: Path, timer: Timer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IOPROF_EVENTS", str(tmp_path))
    yield tmp_path
    if mark._marker.file is not None:
        mark._marker.file.close()


def test_without_a_profiler_nothing_is_written(tmp_path, timer, monkeypatch):
    monkeypatch.delenv("IOPROF_EVENTS", raising=False)
    monkeypatch.chdir(tmp_path)
    mark.event("loader", workers=2)
    assert list(mark.batches([1, 2])) == [1, 2]
    mark.step(samples=64)
    assert not mark.enabled()
    assert list(tmp_path.iterdir()) == []


def test_a_step_goes_from_the_end_of_the_last_to_its_own(folder, timer):
    mark.epoch_start(0)
    timer.now_s = 100.25
    mark.step(samples=64, stored_bytes=7_000_000, wait_s=0.125)
    timer.now_s = 100.75
    mark.step(samples=32, phase="drain")
    record = read_rank(folder / "rank-0.jsonl")
    assert record.steps == (
        Step(
            index=0,
            epoch=0,
            start_s=100.0,
            end_s=100.25,
            samples=64,
            stored_bytes=7_000_000,
            wait_s=0.125,
        ),
        Step(index=1, epoch=0, start_s=100.25, end_s=100.75, samples=32, phase="drain"),
    )
    assert [step.step_s for step in record.steps] == [0.25, 0.5]


def test_the_wait_for_each_batch_is_timed(folder, timer):
    def loader():
        for size in (4, 2):
            timer.now_s += 0.5
            yield [0] * size

    for batch in mark.batches(loader()):
        timer.now_s += 0.25
        mark.step(samples=len(batch))
    record = read_rank(folder / "rank-0.jsonl")
    assert [(step.samples, step.wait_s, step.step_s) for step in record.steps] == [
        (4, 0.5, 0.75),
        (2, 0.5, 0.75),
    ]
    assert [event.name for event in record.events] == ["epoch_start", "epoch_end"]


def test_each_pass_over_the_loader_is_an_epoch(folder):
    for _ in range(2):
        for _ in mark.batches([1]):
            mark.step(samples=1)
    record = read_rank(folder / "rank-0.jsonl")
    assert [step.epoch for step in record.steps] == [0, 1]
    assert [event.fields["epoch"] for event in record.events] == [0, 0, 1, 1]


def test_a_loop_that_is_left_early_ends_its_epoch(folder):
    for _ in mark.batches([1, 2, 3]):
        break
    names = [event.name for event in read_rank(folder / "rank-0.jsonl").events]
    assert names == ["epoch_start", "epoch_end"]


def test_the_pause_between_epochs_belongs_to_no_step(folder, timer):
    mark.epoch_start(0)
    timer.now_s = 101.0
    mark.step(samples=1)
    mark.epoch_end(0)
    timer.now_s = 150.0
    mark.epoch_start(1)
    timer.now_s = 151.0
    mark.step(samples=1)
    assert [s.step_s for s in read_rank(folder / "rank-0.jsonl").steps] == [1.0, 1.0]


@pytest.mark.parametrize(
    "names",
    [
        ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE"),
        ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS"),
    ],
)
def test_the_rank_is_found_in_the_engines_environment(folder, monkeypatch, names):
    for name, value in zip(names, ("5", "1", "8"), strict=True):
        monkeypatch.setenv(name, value)
    mark.event("hello")
    header = read_rank(folder / "rank-5.jsonl").header
    assert (header.rank, header.local_rank, header.world_size) == (5, 1, 8)
    assert (header.monotonic_s, header.wall_s) == (100.0, 1.0e9 + 100.0)


def test_a_batch_script_is_no_rank_of_its_job(monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert (mark.rank(), mark.world_size()) == (0, 1)


def test_a_loss_that_is_not_a_number_does_not_end_the_training(folder):
    mark.event("trained", loss_last=float("nan"), loss_first=2.5)
    assert read_rank(folder / "rank-0.jsonl").events[0].fields == {
        "loss_last": None,
        "loss_first": 2.5,
    }


def test_a_scalar_of_an_array_library_counts_as_its_number(folder):
    class Scalar:
        def item(self) -> int:
            return 64

    samples: Any = Scalar()
    mark.step(samples=samples)
    assert read_rank(folder / "rank-0.jsonl").steps[0].samples == 64


def test_a_forked_worker_does_not_write_into_its_parents_file(folder):
    mark.event("before")
    pid = os.fork()
    if pid == 0:
        mark.event("from the worker")
        os._exit(0)
    os.waitpid(pid, 0)
    mark.event("after")
    names = [event.name for event in read_rank(folder / "rank-0.jsonl").events]
    assert names == ["before", "after"]


def test_what_a_killed_script_marked_is_read(tmp_path):
    code = (
        "import os, signal\n"
        "from ioprof import mark\n"
        "mark.epoch_start(0)\n"
        "mark.step(samples=3)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "IOPROF_EVENTS": str(tmp_path), "RANK": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment)
    assert done.returncode == -signal.SIGKILL
    path = tmp_path / "rank-0.jsonl"
    with path.open("a") as file:
        file.write('{"type":"step","index":1,"ep')
    assert [step.samples for step in read_rank(path).steps] == [3]


def test_every_line_is_one_json_object(folder):
    mark.event("a name with\na newline", text="é \u2028")
    lines = (folder / "rank-0.jsonl").read_text().split("\n")
    assert [json.loads(line)["type"] for line in lines if line] == ["rank", "event"]
