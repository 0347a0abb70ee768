"""One contract for all loaders. A new loader is one line in READERS."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torchvision", reason="needs the train extra: pip install 'ioprof[train]'")

import torch
from PIL import Image

from ioprof.dataset.survey import survey
from ioprof_pipelines.config import TrainConfig
from ioprof_pipelines.filelist import FileList
from ioprof_pipelines.loaders import LOADERS, open_loader
from ioprof_pipelines.loaders.loader import Batch, Loader, Part
from tests.integration.profiles import needs_dali

pytestmark = pytest.mark.train

SAMPLES = 23
SIDE = 32
READERS = [
    "reads",
    "torch-files",
    pytest.param("dali-files", marks=[pytest.mark.dali, needs_dali]),
]
DECODING = READERS[1:]


@pytest.fixture
def filelist(tmp_path: Path) -> Path:
    """23 images in three classes, each with a size of its own."""
    for number in range(SAMPLES):
        folder = tmp_path / "set" / f"class-{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        size = (40 + number, 30 + 2 * number)
        Image.new("RGB", size, (number * 10, 90, 160)).save(folder / f"{number:02d}.JPEG")
    _, files = survey(tmp_path / "set")
    files.write(tmp_path / "filelist.npz")
    return tmp_path / "filelist.npz"


def part(filelist: Path, name: str, *, rank: int = 0, world: int = 1, **options: int) -> Part:
    config = TrainConfig(
        filelist=filelist,
        loader=name,
        accelerator="none",
        image_size=SIDE,
        **{"batch": 4, "workers": 2, **options},  # type: ignore[arg-type]
    )
    return Part(
        config=config,
        files=FileList(filelist),
        rank=rank,
        world=world,
        device=torch.device("cpu"),
    )


@pytest.fixture
def opened(filelist: Path) -> Iterator[object]:
    """Opens loaders and closes them; no worker may be left."""
    loaders: list[Loader] = []

    def open_one(name: str, **options: int) -> Loader:
        loaders.append(open_loader(part(filelist, name, **options)))
        return loaders[-1]

    yield open_one
    for loader in loaders:
        loader.close()
    assert multiprocessing.active_children() == []


def order_of(batches: list[Batch], filelist: Path) -> list[int]:
    """Stored bytes of each batch stand for its samples: every file's size is its own."""
    return [batch.stored_bytes for batch in batches]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("world", [1, 2, 3])
def test_every_sample_comes_once_and_ranks_step_together(name, world, opened, filelist):
    epochs = [list(opened(name, rank=rank, world=world).epoch(0)) for rank in range(world)]
    assert len({len(batches) for batches in epochs}) == 1
    batches = [batch for epoch in epochs for batch in epoch]
    assert sum(batch.samples for batch in batches) == SAMPLES
    assert sum(batch.stored_bytes for batch in batches) == FileList(filelist).stored_bytes.sum()
    assert all(batch.bad == [] for batch in batches)


@pytest.mark.parametrize("name", READERS)
def test_the_next_epoch_is_shuffled_anew_and_a_seed_repeats_itself(name, opened, filelist):
    loader = opened(name)
    first, second = list(loader.epoch(0)), list(loader.epoch(1))
    again = list(opened(name).epoch(0))
    assert order_of(first, filelist) != order_of(second, filelist)
    assert order_of(first, filelist) == order_of(again, filelist)


@pytest.mark.parametrize("name", DECODING)
def test_images_are_normalised_floats_with_their_own_labels(name, opened, filelist):
    files = FileList(filelist)
    batches = list(opened(name).epoch(0))
    for batch in batches:
        assert batch.images is not None
        assert batch.labels is not None
        assert batch.images.shape == (batch.samples, 3, SIDE, SIDE)
        assert batch.images.dtype == torch.float32
        assert batch.images.is_contiguous()
        assert batch.labels.dtype == torch.int64
    labels = torch.cat([batch.labels for batch in batches if batch.labels is not None])
    assert sorted(labels.tolist()) == sorted(files.labels.tolist())


@pytest.mark.parametrize("name", DECODING)
def test_a_plain_image_has_the_same_pixels_in_every_loader(name, tmp_path, opened):
    folder = tmp_path / "plain"
    folder.mkdir()
    # PNG, so that no JPEG decoder rounds; one colour, so that no crop matters.
    Image.new("RGB", (50, 40), (124, 116, 104)).save(folder / "a.png")
    _, files = survey(folder)
    files.write(tmp_path / "plain.npz")
    loader = open_loader(part(tmp_path / "plain.npz", name))
    (batch,) = loader.epoch(0)
    loader.close()
    assert batch.images is not None
    # (124/255 − 0.485) / 0.229 and so on, worked out by hand.
    expected = np.array([0.0055, -0.0049, 0.0082]).reshape(1, 3, 1, 1)
    assert np.abs(batch.images.numpy() - expected).max() < 0.03


@pytest.mark.parametrize("name", READERS)
def test_after_stop_what_is_under_way_still_comes_and_nothing_else(name, opened):
    loader = opened(name, batch=1)
    batches = loader.epoch(0)
    next(batches)
    loader.stop()
    rest = list(batches)
    # What was asked for ahead, and at most one more that was being asked for.
    assert len(rest) <= loader.prefetch_batches + 1
    assert sum(batch.samples for batch in rest) == len(rest)


@pytest.mark.parametrize("name", ["synthetic", "cached"])
def test_endless_loaders_read_nothing_and_stop(name, opened):
    loader = opened(name)
    batches = loader.epoch(0)
    taken = [next(batches) for _ in range(20)]
    assert all(batch.stored_bytes == 0 and batch.samples > 0 for batch in taken)
    loader.stop()
    assert list(batches) == []


def test_an_unknown_loader_is_named_with_those_there_are(filelist):
    with pytest.raises(ValueError, match=r"no loader 'tape'.*torch-files"):
        open_loader(part(filelist, "tape"))


def test_the_contract_covers_every_loader():
    tested = {"synthetic", "cached", "reads", "torch-files", "dali-files"}
    assert tested == set(LOADERS)


@pytest.mark.parametrize("name", DECODING)
def test_files_that_break_after_the_survey_are_named_and_the_rest_is_not_lost(
    name, opened, filelist
):
    files = FileList(filelist)
    paths = [Path(files.path(i).decode()) for i in (3, 9, 15)]
    paths[0].write_bytes(paths[0].read_bytes()[:200])
    paths[1].write_bytes(b"")
    paths[2].write_bytes(b"<html>not an image</html>")
    loader = opened(name)
    batches = list(loader.epoch(0))
    named = {file for batch in batches for file, _ in batch.bad}
    assert named == {files.name(i) for i in (3, 9, 15)}
    assert sum(batch.samples for batch in batches) == SAMPLES - 3
    # The next epoch goes on without them too.
    assert sum(batch.samples for batch in loader.epoch(1)) == SAMPLES - 3


@pytest.mark.parametrize("name", DECODING)
def test_a_step_without_a_good_sample_is_still_a_step(name, opened, filelist):
    files = FileList(filelist)
    broken = Path(files.path(5).decode())
    broken.write_bytes(b"<html>not an image</html>")
    batches = list(opened(name, batch=1).epoch(0))
    # The other ranks make all 23 steps, so this one must too.
    assert len(batches) == SAMPLES
    assert [batch.samples for batch in batches].count(0) == 1
