"""Evict, warm and observe files that the test made itself; nothing else may move."""

import os

import numpy as np
import pytest

from ioprof import cachestate
from ioprof.record.filelist import FileList, list_of
from ioprof.sources.mount import find_mount
from ioprof.sources.residency import Pages

FILES = 40
FILE_BYTES = 3 * 4096 + 7  # four pages
LONG_AGO_NS = 10**18


@pytest.fixture
def files(tmp_path):
    """Forty files of four pages each, in a folder whose pages can be dropped."""
    if find_mount(tmp_path).filesystem in ("tmpfs", "ramfs"):
        pytest.skip("the temporary folder is in memory: nothing can be dropped from the cache")
    names = [f"{number:03d}.bin" for number in range(FILES)]
    for name in names:
        (tmp_path / name).write_bytes(os.urandom(FILE_BYTES))
    return list_of(tmp_path, names)


@pytest.fixture
def opened(monkeypatch):
    """Every (path, flags) that is opened meanwhile."""
    seen = []
    real = os.open

    def spy(path, flags, *arguments, **named):
        seen.append((path, flags))
        return real(path, flags, *arguments, **named)

    monkeypatch.setattr(os, "open", spy)
    return seen


class Watched(FileList):
    """A list that remembers which of its files were asked for."""

    asked: list[int]

    def path(self, index):
        self.asked.append(index)
        return super().path(index)


def watched(root, count):
    listing = Watched.of(
        root,
        paths=[b"%04d" % number for number in range(count)],
        stored_bytes=[5] * count,
        labels=[0] * count,
        classes=(b".",),
    )
    listing.asked = []
    return listing


def test_evicted_files_are_observed_cold_even_when_they_were_dirty(files):
    cachestate.evict(files)
    seen = cachestate.observe(files)
    assert seen.resident_fraction == 0
    assert (seen.pages_checked, seen.files_checked, seen.files_total) == (160, 40, 40)
    assert seen.reason is None
    assert seen.method in ("cachestat", "mincore")


def test_warmed_files_are_observed_warm(files):
    cachestate.evict(files)
    cachestate.warm(files)
    assert cachestate.observe(files).resident_fraction == 1


def test_half_of_the_files_is_half_of_the_pages(files):
    cachestate.evict(files)
    cachestate.warm(files.subset(np.arange(0, FILES, 2)))
    assert cachestate.observe(files).resident_fraction == 0.5


def test_files_that_are_not_on_the_list_keep_their_pages(files, tmp_path):
    neighbour = tmp_path / "neighbour"
    neighbour.write_bytes(b"x" * FILE_BYTES)
    os.sync()
    cachestate.evict(files)
    assert cachestate.observe(list_of(tmp_path, ["neighbour"])).resident_fraction == 1


def test_a_page_that_is_mapped_and_locked_in_use_is_seen_and_not_denied(files):
    """What cannot be dropped shows in the residency: here a mapping that holds its pages."""
    import mmap

    with files.path(0).open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as held:
        assert len(held[:]) == FILE_BYTES
        cachestate.evict(files)
        assert cachestate.observe(files).resident_fraction == pytest.approx(4 / 160)


def test_at_most_so_many_files_are_looked_at_spread_evenly(tmp_path):
    listing = watched(tmp_path, 101)
    for number in range(101):
        (tmp_path / f"{number:04d}").write_bytes(b"12345")
    seen = cachestate.observe(listing, max_files=5)
    assert sorted(listing.asked) == [0, 25, 50, 75, 100]
    assert (seen.files_checked, seen.files_total, seen.pages_checked) == (5, 101, 5)


@pytest.mark.parametrize("max_files", [1, 2, 7, 100, 101, 2000])
def test_no_file_is_looked_at_twice(tmp_path, max_files):
    listing = watched(tmp_path, 100)
    cachestate.observe(listing, max_files=max_files)
    assert len(listing.asked) == len(set(listing.asked)) == min(100, max_files)


def test_a_file_that_is_gone_is_not_counted_and_stops_nothing(files):
    files.path(3).unlink()
    cachestate.evict(files)
    cachestate.warm(files)
    seen = cachestate.observe(files)
    assert (seen.resident_fraction, seen.files_checked, seen.files_total) == (1, 39, 40)


def test_without_any_file_that_opens_nothing_is_claimed(tmp_path):
    seen = cachestate.observe(watched(tmp_path, 3))
    assert (seen.resident_fraction, seen.reason) == (None, "no file could be opened")


def test_of_empty_files_nothing_is_claimed(tmp_path):
    (tmp_path / "0000").touch()
    seen = cachestate.observe(watched(tmp_path, 1))
    assert (seen.resident_fraction, seen.reason) == (None, "all files are empty")


def test_of_an_empty_list_nothing_is_claimed(tmp_path):
    seen = cachestate.observe(watched(tmp_path, 0))
    assert (seen.resident_fraction, seen.files_total) == (None, 0)


def test_one_refusal_makes_the_whole_unknown_and_never_zero(files, monkeypatch):
    answers = iter([Pages(resident=None, total=4, method="cachestat", reason="not yours")])
    known = Pages(resident=0, total=4, method="cachestat")
    monkeypatch.setattr(cachestate, "resident_pages", lambda *_: next(answers, known))
    seen = cachestate.observe(files)
    assert (seen.resident_fraction, seen.reason) == (None, "not yours")


@pytest.mark.parametrize("act", [cachestate.evict, cachestate.warm, cachestate.observe])
def test_files_are_opened_for_reading_alone(files, opened, act):
    act(files)
    assert len(opened) == FILES
    for _, flags in opened:
        assert flags & os.O_ACCMODE == os.O_RDONLY
        assert not flags & (os.O_CREAT | os.O_TRUNC)


@pytest.mark.parametrize("act", [cachestate.evict, cachestate.warm, cachestate.observe])
def test_the_times_of_the_files_stay_as_they_were(files, act):
    os.utime(files.path(0), ns=(LONG_AGO_NS, LONG_AGO_NS))
    before = files.path(0).stat()
    act(files)
    after = files.path(0).stat()
    assert after.st_atime_ns == LONG_AGO_NS
    assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)


def test_where_the_access_time_may_not_be_spared_the_file_is_read_all_the_same(files, monkeypatch):
    real = os.open

    def not_the_owner(path, flags, *arguments, **named):
        if flags & os.O_NOATIME:
            raise PermissionError(1, "Operation not permitted")
        return real(path, flags, *arguments, **named)

    monkeypatch.setattr(os, "open", not_the_owner)
    cachestate.evict(files)
    cachestate.warm(files)
    assert cachestate.observe(files).resident_fraction == 1


@pytest.mark.parametrize("act", [cachestate.evict, cachestate.warm])
def test_progress_grows_to_the_number_of_files(tmp_path, act):
    seen: list[int] = []
    act(watched(tmp_path, 600), progress=seen.append)
    assert seen == [256, 512, 600]


def test_an_interrupt_does_not_wait_for_the_rest(tmp_path):
    listing = watched(tmp_path, 200_000)

    def interrupt(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cachestate.warm(listing, progress=interrupt)
    assert len(listing.asked) < 200_000


def test_no_descriptor_is_left_open(files):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    cachestate.evict(files)
    cachestate.warm(files)
    cachestate.observe(files)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
