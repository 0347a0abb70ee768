"""What a file is, by its bytes."""

from __future__ import annotations

import errno
import os
import warnings
from pathlib import Path

import pytest
from PIL import Image

from ioprof.dataset.sniff import Sniffed, kind_of, kind_of_name, sniff
from ioprof.sources.residency import resident_pages
from tests.unit.dataset.images import HTML, encoded, put


def looked_at(path: Path) -> Sniffed:
    return sniff(os.fsencode(path))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "WEBP", "TIFF", "PPM"])
def test_a_whole_image_is_a_sample_of_its_kind(tmp_path, kind):
    data = encoded(kind)
    found = looked_at(put(tmp_path / "x.img", data))
    assert (found.kind or "").upper() == kind
    assert found.problem is None
    assert found.stored_bytes == len(data)


def test_kinds_are_told_by_their_first_bytes():
    assert kind_of(b"\xff\xd8\xff\xe1") == "JPEG"
    assert kind_of(b"\x89PNG\r\n\x1a\n") == "PNG"
    assert kind_of(b"RIFF\x00\x00\x00\x00WEBPVP8 ") == "WebP"
    assert kind_of(b"RIFF\x00\x00\x00\x00WAVEfmt ") is None
    assert kind_of(b"\xff\xd8") is None
    assert kind_of(b"") is None


def pages(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return resident_pages(descriptor, path.stat().st_size).resident
    finally:
        os.close(descriptor)


def evict(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def test_a_file_that_was_not_cached_is_not_afterwards(tmp_path):
    whole = put(tmp_path / "x.JPEG", encoded(side=500))
    cut = put(tmp_path / "y.JPEG", encoded(side=500)[:-300])
    for path in (whole, cut):
        evict(path)
        if pages(path):
            pytest.skip(f"the filesystem of {tmp_path} keeps its files in memory")
        # The kernel may still hold a page just read in another CPU's batch; not five times over.
        assert any(left_after_a_look(path) == 0 for _ in range(5))


def left_after_a_look(path: Path) -> int | None:
    evict(path)
    looked_at(path)
    return pages(path)


def test_a_file_that_was_cached_still_is_afterwards(tmp_path):
    path = put(tmp_path / "x.JPEG", encoded(side=500))
    evict(path)
    path.read_bytes()
    before = pages(path)
    looked_at(path)
    assert pages(path) == before == -(-path.stat().st_size // os.sysconf("SC_PAGESIZE"))


@pytest.mark.parametrize("name", ["x.JPEG", "x.jpg", "x.Jpg", "x.jfif", "x.JFIF", "x.jpe"])
def test_every_spelling_of_jpeg_names_one(name):
    assert kind_of_name(name.encode()) == "JPEG"


@pytest.mark.parametrize("name", ["x.txt", "x", "JPEG", "x.jpeg.part", "x.JPEG ", "x.xml"])
def test_other_names_stand_for_no_image(name):
    assert kind_of_name(name.encode()) is None


def test_an_empty_file_says_so(tmp_path):
    assert looked_at(put(tmp_path / "x.JPEG", b"")).problem == "it is empty"


def test_a_web_page_says_so(tmp_path):
    assert "web page" in (looked_at(put(tmp_path / "x.JPEG", b"\n " + HTML)).problem or "")


def test_other_bytes_are_shown(tmp_path):
    found = looked_at(put(tmp_path / "x.JPEG", b"\x00\x01\x02"))
    assert found.problem == "it is no image: it begins with 00 01 02"


def test_a_gif_is_left_out_because_not_every_loader_can_decode_it(tmp_path):
    assert "GIF" in (looked_at(put(tmp_path / "x.JPEG", encoded("GIF"))).problem or "")


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_file_without_its_end_is_truncated(tmp_path, kind, share):
    data = encoded(kind, side=300)
    found = looked_at(put(tmp_path / "x.JPEG", data[: int(len(data) * share)]))
    assert found.kind == kind
    assert "truncated" in (found.problem or "")


def test_a_whole_image_is_not_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "open", lambda _: pytest.fail("decoded"))
    assert looked_at(put(tmp_path / "x.JPEG")).problem is None


def test_bytes_after_the_end_marker_do_no_harm(tmp_path):
    assert looked_at(put(tmp_path / "x.JPEG", encoded() + b"\x00" * 500)).problem is None


def test_an_image_that_decodes_without_an_end_marker_near_its_end_is_kept(tmp_path):
    assert looked_at(put(tmp_path / "x.JPEG", encoded() + b"\x00" * 5000)).problem is None


def test_a_huge_image_without_end_is_a_problem_not_a_crash(tmp_path):
    data = bytearray(encoded())
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = b"\xff\xff\xff\xff"  # 65,535 x 65,535 pixels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = looked_at(put(tmp_path / "x.JPEG", bytes(data[:-2])))
    assert "pixels" in (found.problem or "")


def test_the_access_time_stays_where_that_is_allowed(tmp_path):
    path = put(tmp_path / "x.JPEG")
    os.utime(path, ns=(10**18, 10**18))  # older than a day and than the change: relatime updates it
    looked_at(path)
    assert path.stat().st_atime_ns == 10**18


def test_where_it_is_not_allowed_the_file_is_opened_all_the_same(tmp_path, monkeypatch):
    path = put(tmp_path / "x.JPEG")
    real = os.open
    modes = []

    def refuse(name: bytes, mode: int) -> int:
        modes.append(mode)
        if mode & os.O_NOATIME:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return real(name, mode)

    monkeypatch.setattr(os, "open", refuse)
    assert looked_at(path).problem is None
    assert len(modes) == 2
    assert not any(mode & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) for mode in modes)


def test_a_filesystem_without_nonblocking_reads_is_read_as_usual(tmp_path, monkeypatch):
    def unknown(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "preadv", unknown)
    assert looked_at(put(tmp_path / "x.JPEG")).problem is None


def test_a_partly_cached_file_is_read_whole(tmp_path, monkeypatch):
    """A read that must not wait may return less than there is."""

    def some(descriptor: int, buffers: list[bytearray], offset: int, flags: int) -> int:
        buffers[0][:10] = os.pread(descriptor, 10, offset)
        return 10

    monkeypatch.setattr(os, "preadv", some)
    assert looked_at(put(tmp_path / "x.JPEG", encoded() + b"\x00" * 5000)).problem is None
