import math
from pathlib import Path

import numpy as np
import pytest

from ioprof.record.filelist import FileList
from ioprof.study.workingset import working_set

GB = 1_000_000_000


def files(count: int, *, stored_bytes: int = 100_000) -> FileList:
    return FileList.of(
        Path("/data"),
        paths=[f"c{i % 2}/{i:04}.jpg".encode() for i in range(count)],
        stored_bytes=[stored_bytes] * count,
        labels=[i % 2 for i in range(count)],
        classes=(b"c0", b"c1"),
    )


def of(listed: FileList, *, memory_bytes=1000 * GB, samples_needed=math.inf, seed=1) -> FileList:
    return working_set(listed, memory_bytes=memory_bytes, samples_needed=samples_needed, seed=seed)


def names(listed: FileList) -> list[bytes]:
    return [listed.relative(i) for i in range(len(listed))]


def test_a_dataset_that_fits_is_taken_whole():
    listed = files(100)
    assert of(listed) is listed


def test_a_real_accelerator_whose_need_is_unknown_takes_as_much_as_fits():
    # 40 % of 10 MB hold 40 samples of 100 kB.
    assert len(of(files(100), memory_bytes=10_000_000, samples_needed=math.inf)) == 40


def test_no_more_is_taken_than_a_cell_can_consume_and_a_quarter():
    assert len(of(files(100), samples_needed=40)) == 50
    assert len(of(files(100), samples_needed=44)) == 55


def test_the_tighter_of_memory_and_need_decides():
    assert len(of(files(100), memory_bytes=10_000_000, samples_needed=20)) == 25
    assert len(of(files(100), memory_bytes=5_000_000, samples_needed=40)) == 20


@pytest.mark.parametrize(("memory_bytes", "samples_needed"), [(1, 100.0), (GB, 0.0)])
def test_one_sample_at_least_is_taken(memory_bytes, samples_needed):
    found = of(files(10), memory_bytes=memory_bytes, samples_needed=samples_needed)
    assert len(found) == 1


def test_a_part_is_in_the_order_of_the_list_and_names_no_sample_twice():
    listed = files(1000)
    found = names(of(listed, samples_needed=200))
    drawn = set(found)
    assert len(drawn) == 250
    assert found == [name for name in names(listed) if name in drawn]


def test_a_part_is_drawn_from_the_whole_list():
    # Of 250 out of 1,000 drawn evenly, 125 ± 3 × 9.7 come from either half.
    found = names(of(files(1000), samples_needed=200))
    first_half = sum(name[3:] < b"0500" for name in found)
    assert 95 < first_half < 155


def test_the_same_seed_draws_the_same_part_and_another_one_does_not():
    listed = files(1000)
    again = [names(of(listed, samples_needed=200, seed=seed)) for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


def test_a_sample_keeps_its_size_and_its_class():
    listed = FileList.of(
        Path("/data"),
        paths=[f"c{i % 2}/{i:04}.jpg".encode() for i in range(100)],
        stored_bytes=[1000 + i for i in range(100)],
        labels=[i % 2 for i in range(100)],
        classes=(b"c0", b"c1"),
    )
    found = of(listed, samples_needed=8)
    numbers = np.array([int(name[3:7]) for name in names(found)])
    assert found.stored_bytes.tolist() == (1000 + numbers).tolist()
    assert found.labels.tolist() == (numbers % 2).tolist()
    assert found.classes == (b"c0", b"c1")
