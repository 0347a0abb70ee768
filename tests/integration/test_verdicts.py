"""The verdict on storage that is known to be slow, and on a client that is known to be slow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ioprof.dataset.make import make
from tests.integration.profiles import Profiled, needs_trainer, profile
from tests.integration.throttle import device_of, inside, throttled_group, unavailable

pytestmark = [pytest.mark.train, pytest.mark.slow, needs_trainer]

THROTTLE_BYTES_PER_S = 20_000_000


@pytest.fixture(scope="module")
def large(checkout_data: Path) -> Iterator[Path]:
    """1,500 images, 170 MB: more than eight seconds at 20 MB/s."""
    folder = checkout_data / f"large-{os.getpid()}"
    make(folder, samples=1500, seed=3)
    os.sync()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def throttled(large: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profiled]:
    """A run on storage that delivers 20 MB/s, with enough workers that one of them always reads,
    and enough samples that no epoch ends within the clock's time."""
    if reason := unavailable():
        pytest.skip(reason)
    out = tmp_path_factory.mktemp("throttled") / "run"
    with throttled_group(device_of(large), read_bytes_per_s=THROTTLE_BYTES_PER_S) as group:
        yield profile(
            large,
            out,
            "--accelerator=emulated:h100",
            "--loader=torch-files",
            "--topology=1x1",
            "--cache=cold,warm",
            "--image-size=32",
            "--batch=16",
            "--workers=6",
            "--duration=8s",
            prefix=tuple(inside(group, [])),
        )


@pytest.mark.root
def test_throttled_storage_is_named_the_bottleneck(throttled: Profiled) -> None:
    assert throttled.cell("1x1-torch-files-cold").verdict == "fetch", throttled.stderr
    assert throttled.summary.headroom.first_limit == "storage"


@pytest.mark.root
def test_throttled_bandwidth_is_measured_as_throttled(throttled: Profiled) -> None:
    cell = throttled.cell("1x1-torch-files-cold")
    assert cell.storage_read_bytes_per_s == pytest.approx(THROTTLE_BYTES_PER_S, rel=0.05)
    available = throttled.summary.headroom.available_read_bytes_per_s
    assert available == pytest.approx(THROTTLE_BYTES_PER_S, rel=0.05)


def test_a_client_with_one_cpu_is_named_and_no_storage_ceiling_is_claimed(
    dataset: Path, tmp_path: Path
) -> None:
    found = profile(
        dataset,
        tmp_path / "run",
        "--accelerator=emulated:h100",
        "--loader=torch-files",
        "--topology=1x1",
        "--cache=cold,warm",
        "--duration=4s",
        prefix=("taskset", "-c", "0"),
    )
    assert found.cell("1x1-torch-files-cold").verdict in ("client-limited", "prep"), found.stderr
    assert found.summary.headroom.first_limit == "client"
    for ceilings in found.summary.ceilings:
        assert ceilings.storage is None
        assert ceilings.storage_read_bytes_per_s is None
        assert ceilings.reasons["storage"]
