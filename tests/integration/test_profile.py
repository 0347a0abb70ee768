"""`ioprof profile`, end to end, with real training."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

from ioprof.record.store import read_json, read_rank
from ioprof.record.summary import Summary
from tests.integration.profiles import Profiled, command, needs_dali, needs_trainer, profile

pytestmark = [pytest.mark.train, pytest.mark.slow, needs_trainer]

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "summary.schema.json"


@pytest.fixture(scope="module")
def trained(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    """Both loaders, one and two ranks, real ResNet training on the CPU."""
    return profile(
        dataset,
        tmp_path_factory.mktemp("trained") / "run",
        "--accelerator=cpu",
        "--loader=torch-files,dali-files",
        "--topology=1x1,1x2",
        "--image-size=64",
        "--model=resnet18",
        "--batch=8",
        "--duration=3s",
        "--no-fio",
    )


@needs_dali
def test_stdout_is_the_summary_and_keeps_its_schema(trained: Profiled) -> None:
    assert trained.status in (0, 1), trained.stderr
    jsonschema.validate(json.loads(trained.stdout), json.loads(SCHEMA.read_text()))
    assert json.loads(trained.stdout) == json.loads(trained.run.summary.read_bytes())


@needs_dali
@pytest.mark.parametrize("topology", ["1x1", "1x2"])
@pytest.mark.parametrize("loader", ["torch-files", "dali-files"])
@pytest.mark.parametrize("role", ["cold", "warm"])
def test_training_is_real(trained: Profiled, topology: str, loader: str, role: str) -> None:
    cell = trained.cell(f"{topology}-{loader}-{role}")
    assert cell.training is not None
    assert cell.training.loss_last is not None
    assert math.isfinite(cell.training.loss_last)
    assert cell.training.weights_changed
    assert cell.training.ranks_agree
    assert cell.samples_per_s is not None
    assert cell.samples_per_s.median > 0


@needs_dali
@pytest.mark.parametrize("loader", ["torch-files", "dali-files"])
def test_bytes_of_a_cold_cell_agree_three_ways(trained: Profiled, loader: str) -> None:
    cell = trained.cell(f"1x1-{loader}-cold")
    bytes_ = cell.reconciliation
    assert bytes_ is not None
    # Counted outside: the sizes of the samples in the rank's own marks.
    rank = read_rank(trained.run.rank_files(cell.id)[0])
    assert bytes_.consumed_bytes == sum(step.stored_bytes or 0 for step in rank.steps)
    assert bytes_.requested_over_consumed == pytest.approx(1.0, abs=0.05), bytes_.why
    # The device is shared: when other programs read from it too, the processes' own reads count.
    assert bytes_.own_storage_bytes == pytest.approx(bytes_.consumed_bytes, rel=0.05), bytes_.why
    assert bytes_.agrees or bytes_.others_read


@needs_dali
def test_cache_states_are_observed(trained: Profiled) -> None:
    for cell in trained.summary.cells:
        if cell.role in ("cold", "fetch"):
            assert cell.cache.observed_resident_fraction is not None
            assert cell.cache.observed_resident_fraction < 0.01
            assert cell.cache.state == "cold"
        if cell.role in ("warm", "prep"):
            assert cell.cache.observed_resident_fraction is not None
            assert cell.cache.observed_resident_fraction > 0.99
            assert cell.cache.state == "warm"


@needs_dali
def test_the_report_is_complete(trained: Profiled) -> None:
    page = trained.run.page.read_text()
    assert "<script" not in page
    names = {path.name for path in trained.run.figures.iterdir()}
    for stem in ("bandwidth_vs_accelerators", "demand_by_topology", "step_breakdown", "ceilings"):
        assert {f"{stem}.png", f"{stem}.svg"} <= names
    assert any(name.startswith("timeline-") for name in names)


def test_an_interrupt_leaves_a_partial_report(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    child = subprocess.Popen(
        command(
            f"--data={dataset}",
            f"--out={out}",
            "--loader=torch-files",
            "--topology=1x1",
            "--accelerator=emulated:h100",
            "--cache=cold",
            "--duration=5s",
            "--image-size=64",
            "--no-fio",
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    cold = out / "cells" / "1x1-torch-files-cold" / "rank-0.jsonl"
    deadline = time.monotonic() + 120
    while not (cold.exists() and '"step"' in cold.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    os.kill(child.pid, signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 130, stderr
    summary = read_json(out / "summary.json", Summary)
    assert summary.partial is not None
    assert "interrupted" in summary.partial
    assert "partial" in stdout.lower()
    assert any(cell.role == "synthetic" and cell.samples_per_s for cell in summary.cells)
    assert _left_behind(out) == []


def _left_behind(out: Path) -> list[str]:
    """Command lines of processes that speak of this run, whatever session they are in."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(out) in line:
            found.append(line)
    return found
