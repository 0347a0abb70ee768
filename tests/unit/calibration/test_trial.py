"""What the reading child takes of which files."""

import os
from pathlib import Path

from ioprof.calibration.trial import Trials, parts_of

MIB = 1 << 20


def files(folder, *sizes):
    made = []
    for number, size in enumerate(sizes):
        path = folder / f"{number}.bin"
        path.write_bytes(os.urandom(size))
        made.append(str(path))
    return made


def test_small_files_are_read_whole_until_the_limit(tmp_path):
    paths = files(tmp_path, 600_000, 600_000, 600_000, 600_000)
    parts = parts_of(paths, limit_bytes=1_500_000)
    assert parts == [(p, 0, 600_000) for p in paths[:3]]


def test_of_large_files_the_end_is_read_so_that_nothing_is_read_ahead(tmp_path):
    (path,) = files(tmp_path, 5 * MIB + 7)
    # 4 MiB of the one file; rounded up to a whole MiB from its beginning: the last 3 MiB and 7.
    assert parts_of([path], limit_bytes=4 * MIB) == [(path, 2 * MIB, 3 * MIB + 7)]


def test_files_that_are_gone_or_empty_are_passed_over(tmp_path):
    (path,) = files(tmp_path, 0)
    assert parts_of([path, str(tmp_path / "gone")], limit_bytes=MIB) == []


def test_each_access_takes_every_byte(tmp_path):
    trials = Trials(files(tmp_path, 100_003, 5 * MIB + 7), limit_bytes=32 * MIB)
    assert trials.describe() == {
        "files": 2,
        "bytes": 100_003 + 5 * MIB + 7,
        "page_bytes": 25 * 4096 + 5 * MIB + 4096,
    }
    for access in ("read", "warm", "mmap", "direct"):
        answer = trials.read(access, limit_s=5.0)
        if access == "direct" and answer["reason"]:
            assert answer["reason"] == "direct: Invalid argument"  # tmpfs of old kernels
            continue
        assert answer["read_bytes"] == 100_003 + 5 * MIB + 7, access


def test_a_file_that_cannot_be_read_is_left_out_of_every_trial(tmp_path):
    paths = files(tmp_path, 100_003, 200_000, 300_000)
    trials = Trials(paths, limit_bytes=32 * MIB)
    Path(paths[0]).unlink()
    trials.evict()
    for access in ("read", "warm", "mmap"):
        answer = trials.read(access, limit_s=5.0)
        assert answer["read_bytes"] == 500_000, access
        assert answer["page_bytes"] == (49 + 74) * 4096, access
    trials.restore()


def test_where_no_file_can_be_read_the_first_reason_is_told(tmp_path):
    paths = files(tmp_path, 100_003, 200_000)
    trials = Trials(paths, limit_bytes=32 * MIB)
    for path in paths:
        Path(path).unlink()
    answers = [trials.read(access, limit_s=5.0) for access in ("read", "warm", "mmap")]
    assert [a["read_bytes"] for a in answers] == [0, 0, 0]
    assert answers[0]["reason"] == "read: No such file or directory"
    assert answers[1]["reason"] == "no file could be read"


def test_a_file_that_became_shorter_is_no_crash(tmp_path):
    paths = files(tmp_path, 200_000, 100_000)
    trials = Trials(paths, limit_bytes=32 * MIB)
    os.truncate(paths[0], 50_000)
    assert trials.read("read", limit_s=5.0)["read_bytes"] == 150_000
    assert trials.read("mmap", limit_s=5.0)["read_bytes"] == 100_000


def test_what_was_cached_is_cached_again_and_the_rest_is_not(tmp_path):
    paths = files(tmp_path, 400_000, 400_000)
    os.sync()
    cold = Trials(paths[:1], limit_bytes=MIB)
    cold.evict()
    trials = Trials(paths, limit_bytes=MIB)
    trials.evict()
    trials.read("read", limit_s=5.0)
    trials.evict()
    trials.restore()
    after = Trials(paths, limit_bytes=MIB)
    if None not in after.found_resident:
        assert after.found_resident == [0.0, 1.0]
