"""The synthetic set: its sizes, its images, and that it can be made again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ioprof.dataset.make import make, sizes
from ioprof.errors import DatasetError, UsageError

PUBLISHED_MEAN_BYTES = 113_044.3
"""1,448,283,629,516 bytes in 12,811,670 images."""


def checksums(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "set"
    make(folder, samples=400, seed=7)
    return folder


def test_files_are_as_large_as_those_of_imagenet(made):
    stored = np.array([path.stat().st_size for path in made.rglob("*.JPEG")])
    assert len(stored) == 400
    assert stored.mean() == pytest.approx(PUBLISHED_MEAN_BYTES, rel=0.03)
    assert 100_000 <= stored.std() <= 135_000
    assert np.median(stored) < 0.8 * stored.mean()  # skewed, as the real sizes are


@pytest.mark.parametrize("samples", [400, 4000, 100_000])
def test_the_sizes_aimed_at_keep_mean_and_spread_at_any_count(samples):
    aims = sizes(samples, random=np.random.default_rng(1))
    assert aims.mean() == pytest.approx(PUBLISHED_MEAN_BYTES, rel=0.001)
    assert 100_000 <= aims.std() <= 135_000


def test_large_and_small_files_come_in_no_order():
    aims = sizes(4000, random=np.random.default_rng(1))
    assert abs(np.corrcoef(aims, np.arange(4000))[0, 1]) < 0.1  # sorted, it is 0.75
    assert aims.tolist() != sizes(4000, random=np.random.default_rng(2)).tolist()


def test_every_file_is_a_jpeg_that_decodes_with_the_pixels_of_a_photograph(made):
    pixels = stored = 0
    for path in sorted(made.rglob("*.JPEG"))[::10]:
        with Image.open(path) as image:
            assert image.format == "JPEG"
            assert image.mode == "RGB"
            image.load()
            pixels += image.width * image.height
        stored += path.stat().st_size
    assert 0.5 <= stored / pixels <= 0.9  # bytes per pixel; 500 x 375 at 110 kB is 0.59


def test_class_folders_are_named_like_synsets_and_filled_evenly(made):
    counts = {folder.name: len(list(folder.iterdir())) for folder in made.iterdir()}
    assert sorted(counts) == [f"n{number:08d}" for number in range(1, 41)]
    assert set(counts.values()) == {10}


def test_a_small_set_has_two_classes(tmp_path):
    make(tmp_path / "set", samples=3)
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == ["n00000001", "n00000002"]


def test_the_same_seed_makes_the_same_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("one", 5), ("two", 5), ("three", 6)):
        make(tmp_path / name, samples=8, seed=seed)
    assert checksums(tmp_path / "one") == checksums(tmp_path / "two")
    assert checksums(tmp_path / "one") != checksums(tmp_path / "three")


def test_images_of_one_set_differ(made):
    assert len(set(checksums(made).values())) == 400


def test_progress_counts_the_files_done(tmp_path):
    seen: list[int] = []
    make(tmp_path / "set", samples=5, progress=seen.append)
    assert seen == [1, 2, 3, 4, 5]


def test_a_folder_that_holds_something_is_left_as_it_is(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="already holds files"):
        make(tmp_path, samples=5)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_folder_is_filled(tmp_path):
    make(tmp_path, samples=2)
    assert len(list(tmp_path.rglob("*.JPEG"))) == 2


def test_a_file_in_place_of_the_folder_is_a_usage_error(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="Name a folder"):
            make(path, samples=2)


def test_another_layout_names_the_ones_there_are(tmp_path):
    with pytest.raises(UsageError, match=r"no layout 'tfrecord'. Choose from: files"):
        make(tmp_path / "set", samples=2, layout="tfrecord")
    assert not (tmp_path / "set").exists()


def test_no_samples_make_no_dataset(tmp_path):
    with pytest.raises(UsageError, match="at least one"):
        make(tmp_path / "set", samples=0)


def test_a_full_disk_says_how_much_room_is_needed(tmp_path, monkeypatch):
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DatasetError, match=r"No space left on device.*452,176 bytes"):
        make(tmp_path / "set", samples=4)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_an_error_of_ours(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(DatasetError, match="Permission denied"):
        make(tmp_path / "set", samples=2)
