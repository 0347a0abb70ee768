"""Cached pages of files whose pages the test itself brought in or dropped."""

import ctypes
import errno
import mmap
import os
import subprocess
import sys

import pytest

from ioprof.sources import residency
from ioprof.sources.mount import find_mount
from ioprof.sources.residency import PAGE_BYTES, resident_pages

PAGES = 11
LENGTH = 10 * PAGE_BYTES + 1
WORD = "the kernel tells page residency only to the owner of a file or who may write it"


class Refusing:
    """A C library whose cachestat fails with a chosen number; its mincore is the real one."""

    def __init__(self, number, real=residency._libc):
        self._number = number
        self.mincore = real.mincore

    def syscall(self, *arguments):
        ctypes.set_errno(self._number)
        return -1


@pytest.fixture(params=["cachestat", "mincore"])
def method(request, monkeypatch):
    """Each way in turn: the second on a kernel that has no cachestat, as before Linux 6.5."""
    if request.param == "mincore":
        monkeypatch.setattr(residency, "_libc", Refusing(errno.ENOSYS))
    elif not has_cachestat():
        pytest.skip("this kernel has no cachestat(2): before Linux 6.5")
    return request.param


def has_cachestat():
    with open(__file__, "rb") as file:  # noqa: PTH123 - its descriptor is what is asked
        return resident_pages(file.fileno(), 1).method == "cachestat"


@pytest.fixture
def descriptor(tmp_path):
    """A file of ten pages and a byte, on disk and in the page cache."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(LENGTH))
    opened = os.open(path, os.O_RDONLY)
    os.fsync(opened)
    yield opened
    os.close(opened)


@pytest.fixture
def droppable(descriptor, tmp_path):
    """The same where its pages can be dropped."""
    if find_mount(tmp_path).filesystem in ("tmpfs", "ramfs"):
        pytest.skip("the temporary folder is in memory: nothing can be dropped from the cache")
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    return descriptor


def test_a_file_just_written_is_wholly_resident(descriptor, method):
    pages = resident_pages(descriptor, LENGTH)
    assert (pages.resident, pages.total, pages.method) == (PAGES, PAGES, method)
    assert pages.reason is None


def test_a_dropped_file_has_no_page_resident(droppable, method):
    pages = resident_pages(droppable, LENGTH)
    assert (pages.resident, pages.total) == (0, PAGES)


def test_one_page_read_without_readahead_is_one_page(droppable, method):
    os.posix_fadvise(droppable, 0, 0, os.POSIX_FADV_RANDOM)
    os.pread(droppable, 1, 4 * PAGE_BYTES)
    assert resident_pages(droppable, LENGTH).resident == 1


def test_looking_reads_nothing_in(droppable, method):
    for _ in range(3):
        assert resident_pages(droppable, LENGTH).resident == 0


def test_an_empty_file_has_no_pages(tmp_path, method):
    path = tmp_path / "empty"
    path.touch()
    with path.open("rb") as file:
        pages = resident_pages(file.fileno(), 0)
    assert (pages.resident, pages.total, pages.reason) == (0, 0, None)


def test_a_file_that_shrank_is_never_more_than_resident(descriptor, method):
    pages = resident_pages(descriptor, 5 * PAGE_BYTES)
    assert (pages.resident, pages.total) == (5, 5)


def test_looking_leaves_no_descriptor_and_no_mapping_behind(descriptor, method):
    resident_pages(descriptor, LENGTH)
    before = (len(os.listdir("/proc/self/fd")), maps())  # noqa: PTH208
    for _ in range(5):
        resident_pages(descriptor, LENGTH)
    assert (len(os.listdir("/proc/self/fd")), maps()) == before  # noqa: PTH208


def maps():
    with open("/proc/self/maps") as file:  # noqa: PTH123
        return sum("/file" in line for line in file)


def test_a_container_that_refuses_the_call_itself_still_gets_mincore(descriptor, monkeypatch):
    monkeypatch.setattr(residency, "_libc", Refusing(errno.EPERM))
    pages = resident_pages(descriptor, LENGTH)
    assert (pages.resident, pages.method) == (PAGES, "mincore")


def test_a_file_of_another_user_is_none_with_the_reason_and_not_zero(descriptor, monkeypatch):
    monkeypatch.setattr(residency, "_libc", Refusing(errno.EPERM))
    monkeypatch.setattr(residency, "_may_know", lambda descriptor: False)
    pages = resident_pages(descriptor, LENGTH)
    assert (pages.resident, pages.total, pages.reason) == (None, PAGES, WORD)


def test_mincore_is_not_believed_about_a_file_of_another_user(descriptor, monkeypatch):
    # It would answer "all resident".
    monkeypatch.setattr(residency, "_libc", Refusing(errno.ENOSYS))
    monkeypatch.setattr(residency, "_may_know", lambda descriptor: False)
    pages = resident_pages(descriptor, LENGTH)
    assert (pages.resident, pages.method, pages.reason) == (None, "mincore", WORD)


def test_another_error_is_named(descriptor, monkeypatch):
    monkeypatch.setattr(residency, "_libc", Refusing(errno.EINVAL))
    pages = resident_pages(descriptor, LENGTH)
    assert (pages.resident, pages.reason) == (None, "cachestat failed: Invalid argument")


def test_a_file_that_cannot_be_mapped_is_none_with_the_reason(descriptor, monkeypatch):
    monkeypatch.setattr(residency, "_libc", Refusing(errno.ENOSYS))

    def refuse(*arguments, **named):
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(mmap, "mmap", refuse)
    pages = resident_pages(descriptor, LENGTH)
    assert (pages.resident, pages.reason) == (None, "mincore failed: [Errno 19] No such device")


STRANGER = """
import os, sys
from ioprof.sources import residency
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
descriptor, length, pages = map(int, sys.argv[1:])
print(residency.resident_pages(descriptor, length).resident)
print(residency._by_mincore(descriptor, length, pages).resident)
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: becomes another user")
def test_a_stranger_is_told_nothing_or_the_truth(descriptor):
    """This kernel's own answer to a reader who neither owns the file nor may write it."""
    os.fchmod(descriptor, 0o444)
    numbers = [str(number) for number in (descriptor, LENGTH, PAGES)]
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, *numbers],
        capture_output=True,
        text=True,
        check=True,
        pass_fds=(descriptor,),
    )
    by_cachestat, by_mincore = done.stdout.split()
    # The first kernels with cachestat told anybody; later ones refuse, as mincore always did.
    assert by_cachestat in ("None", str(PAGES))
    assert by_mincore == "None"
