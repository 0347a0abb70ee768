"""A dataset with one per cent of bad files, which must not be touched."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from ioprof.record.store import read_rank
from tests.integration.profiles import Profiled, checksums, needs_dali, needs_trainer, profile

pytestmark = [pytest.mark.train, pytest.mark.dali, pytest.mark.slow, needs_trainer, needs_dali]

HTML = b"<!DOCTYPE html><html><body>404 Not Found</body></html>"


@pytest.fixture(scope="module")
def damaged(dataset: Path, checkout_data: Path) -> Iterator[tuple[Path, list[str]]]:
    """A copy of the set in which four of 400 files are odd; returns the names of the bad ones."""
    folder = checkout_data / f"damaged-{os.getpid()}"
    shutil.copytree(dataset, folder)
    truncated, empty, html, png = sorted(folder.rglob("*.JPEG"))[10::100][:4]
    truncated.write_bytes(truncated.read_bytes()[: int(truncated.stat().st_size * 0.7)])
    empty.write_bytes(b"")
    html.write_bytes(HTML)
    Image.new("RGB", (300, 200), "teal").save(png, format="PNG")
    os.sync()
    try:
        with _immutable(folder):
            yield folder, [str(p.relative_to(folder)) for p in (truncated, empty, html)]
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def _immutable(folder: Path) -> Iterator[None]:
    """`chattr +i` where we may, else read-only modes: either way nothing can be written."""
    immutable = subprocess.run(["chattr", "-R", "+i", str(folder)], capture_output=True)
    if immutable.returncode != 0:
        subprocess.run(["chmod", "-R", "a-w", str(folder)], check=True)
    try:
        yield
    finally:
        if immutable.returncode == 0:
            subprocess.run(["chattr", "-R", "-i", str(folder)], check=True)
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)


@pytest.fixture(scope="module")
def found(
    damaged: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Profiled, dict[str, str], dict[str, str]]:
    """The run, and the dataset's checksums before and after it."""
    folder, _ = damaged
    before = checksums(folder)
    profiled = profile(
        folder,
        tmp_path_factory.mktemp("damaged") / "run",
        "--accelerator=emulated:h100",
        "--loader=torch-files,dali-files",
        "--topology=1x1",
        "--cache=cold",
        "--image-size=64",
        "--batch=32",
        "--duration=4s",
    )
    return profiled, before, checksums(folder)


def test_nothing_under_the_dataset_is_changed(
    found: tuple[Profiled, dict[str, str], dict[str, str]],
) -> None:
    _, before, after = found
    assert before == after


def test_bad_files_are_named_and_counted(
    found: tuple[Profiled, dict[str, str], dict[str, str]], damaged: tuple[Path, list[str]]
) -> None:
    profiled, _, _ = found
    dataset = profiled.summary.dataset
    assert sorted(entry.file for entry in dataset.quarantined) == sorted(damaged[1])
    assert dataset.quarantined_count == 3
    assert dataset.samples == 397


@pytest.mark.parametrize("loader", ["torch-files", "dali-files"])
def test_good_samples_are_not_lost(
    found: tuple[Profiled, dict[str, str], dict[str, str]], loader: str
) -> None:
    profiled, _, _ = found
    cell = profiled.cell(f"1x1-{loader}-cold")
    assert cell.partial is None
    rank = read_rank(profiled.run.rank_files(cell.id)[0])
    first_epoch = [step for step in rank.steps if step.epoch == 0 and step.phase == "steady"]
    ended = {event.fields["epoch"] for event in rank.events if event.name == "epoch_end"}
    assert ended, "the cell was too short to finish an epoch"
    assert sum(step.samples for step in first_epoch) == 397
