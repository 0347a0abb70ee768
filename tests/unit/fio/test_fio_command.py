"""What fio is asked to do."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ioprof.fio.command import ReadJob, argv, probe_argv
from ioprof.record.filelist import FileList
from ioprof.record.fiofiles import MAX_FILES, block_bytes_for, choose_files, escape, share_out


def listed(root: Path, sizes: dict[str, int]) -> FileList:
    return FileList.of(
        root,
        paths=[os.fsencode(name) for name in sizes],
        stored_bytes=sizes.values(),
        labels=[0] * len(sizes),
        classes=(b"all",),
    )


def made(root: Path, sizes: dict[str, int]) -> FileList:
    """A list of files that are there."""
    for name in sizes:
        (root / name).touch()
    return listed(root, sizes)


@pytest.mark.parametrize(
    ("sizes", "block_bytes"),
    [
        # mean 113,000 = 27.6 x 4,096
        ([113_000, 226_000, 56_000, 57_000], 27 * 4096),
        # mean 1,257,500, but three quarters are no larger than 10,000
        ([10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 9_990_000], 2 * 4096),
        ([5_000_000, 3_000_000], 1 << 20),
        ([4_096, 4_096], 4_096),
        ([4_095], None),
        ([], None),
    ],
)
def test_a_request_is_the_mean_file_if_a_quarter_of_the_files_hold_it(sizes, block_bytes):
    assert block_bytes_for(np.array(sizes, dtype=np.int64)) == block_bytes


def test_files_smaller_than_one_request_are_left_out(tmp_path):
    files = made(tmp_path, {"small": 4_095, "large": 4_096})
    assert choose_files(files, block_bytes=4_096) == (tmp_path / "large",)


def test_names_that_a_job_file_cannot_hold_are_left_out(tmp_path):
    odd = [
        "a\nb",
        "a$HOME",
        "back\\slash",
        'quo"te',
        "ends with a blank ",
        "tab\t",
        "\udcff",
        "a#1",
        "b;2",
    ]
    files = made(tmp_path, dict.fromkeys([*odd, "a b:c,d=é.JPEG"], 5000))
    assert choose_files(files, block_bytes=4_096) == (tmp_path / "a b:c,d=é.JPEG",)


def test_a_file_that_has_vanished_is_not_given_to_fio(tmp_path):
    files = listed(tmp_path, {"gone": 5000})
    assert choose_files(files, block_bytes=4_096) == ()


def test_no_more_than_two_thousand_files_are_chosen_in_random_order(tmp_path):
    files = made(tmp_path, {f"{n:04d}": 5000 for n in range(MAX_FILES + 5)})
    chosen = choose_files(files, block_bytes=4_096)
    assert len(set(chosen)) == MAX_FILES
    assert list(chosen) != sorted(chosen)
    assert chosen == choose_files(files, block_bytes=4_096)


def test_each_reader_gets_files_of_its_own():
    files = tuple(Path(name) for name in "abcde")
    assert share_out(files, readers=2) == (
        (Path("a"), Path("c"), Path("e")),
        (Path("b"), Path("d")),
    )


def test_more_readers_than_files_share_them():
    assert share_out((Path("a"), Path("b")), readers=3) == (
        (Path("a"),),
        (Path("b"),),
        (Path("a"),),
    )


def test_a_colon_in_a_name_does_not_make_two_names_of_it():
    assert escape(Path("/data/a:b")) == "/data/a\\:b"


def test_the_job_file_reads_whole_files_and_creates_none():
    job = ReadJob(
        readers=((Path("/d/a:1"), Path("/d/b")), (Path("/d/c"),)),
        block_bytes=65536,
        engine="io_uring",
        direct=True,
        duration_s=5.0,
    )
    assert job.text() == (
        "[global]\nrw=read\nallow_file_create=0\nioengine=io_uring\niodepth=1\ndirect=1\n"
        "invalidate=0\nbs=65536\nfile_service_type=sequential\nopenfiles=1\ntime_based=1\n"
        "runtime=5000ms\nthread=1\ngroup_reporting=1\n"
        "[reader0]\nfilename=/d/a\\:1\nfilename=/d/b\n[reader1]\nfilename=/d/c\n"
    )


def test_buffered_reads_empty_the_page_cache_of_each_file_first():
    job = ReadJob(
        readers=((Path("/d/a"),),), block_bytes=4096, engine="psync", direct=False, duration_s=1.0
    )
    assert "direct=0\ninvalidate=1\n" in job.text()


def test_fio_is_always_told_not_to_write():
    run = argv("/usr/bin/fio", job=Path("/o/read.fio"), output=Path("/o/read.json"))
    probe = probe_argv("/usr/bin/fio", file=Path("/d/a"), engine="psync", direct=True)
    assert "--readonly" in run
    assert {"--readonly", "--rw=read", "--allow_file_create=0"} <= set(probe)
