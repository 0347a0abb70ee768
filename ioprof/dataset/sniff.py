"""What a file really is, by its first and last bytes, whatever its name says."""

from __future__ import annotations

import io
import mmap
import os

import msgspec
from PIL import Image

_HEAD_BYTES = 32
_TAIL_BYTES = 1024
"""Some cameras and tools leave a few bytes after the end marker."""

IMAGE_SUFFIXES = {
    b".jpeg": "JPEG", b".jpg": "JPEG", b".jpe": "JPEG", b".jfif": "JPEG", b".png": "PNG",
    b".gif": "GIF", b".bmp": "BMP", b".webp": "WebP", b".tif": "TIFF", b".tiff": "TIFF",
    b".ppm": "PPM", b".pgm": "PPM",
}  # fmt: skip
"""Names that stand for an image, in lower case, and the kind each stands for."""

_MAGIC = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    (b"P5", "PPM"),
    (b"P6", "PPM"),
)
_ENDS = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}
"""What stands near the end of a whole file. A JPEG's coded data cannot hold its end marker."""
_UNDECODED = {"GIF"}
"""Kinds that not every loader can decode: kept by one and lost by another, they are no samples."""


class Sniffed(msgspec.Struct, frozen=True, kw_only=True):
    """A file's size, its kind by content (None when it is no image), and why it cannot be a
    sample (None when it can)."""

    stored_bytes: int
    kind: str | None
    problem: str | None


def kind_of_name(path: bytes) -> str | None:
    """Image kind that a name stands for, in upper or lower case; None when it stands for none."""
    return IMAGE_SUFFIXES.get(suffix(path))


def suffix(path: bytes) -> bytes:
    """The name's last suffix in lower case, with its dot; empty when there is none."""
    return os.path.splitext(path)[1].lower()  # noqa: PTH122 - bytes


def kind_of(head: bytes) -> str | None:
    """Image kind of a file's first bytes; None when they are no image's."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)


def sniff(path: bytes) -> Sniffed:
    """Look at both ends of a file; decode it only when its end is missing.

    OSError when it cannot be opened or read.
    """
    descriptor = _open(path)
    try:
        size = os.fstat(descriptor).st_size
        if size == 0:
            return Sniffed(stored_bytes=0, kind=None, problem="it is empty")
        # Without readahead: the page cache is left as it was found, for what is measured later.
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        head = _read(descriptor, min(_HEAD_BYTES, size), offset=0)
        kind = kind_of(head)
        return Sniffed(
            stored_bytes=size, kind=kind, problem=_problem(descriptor, size, head=head, kind=kind)
        )
    finally:
        os.close(descriptor)


def _problem(descriptor: int, size: int, *, head: bytes, kind: str | None) -> str | None:
    if kind is None:
        return _what(head)
    if kind in _UNDECODED:
        return f"it is a {kind}, which not every loader can decode"
    end = _ENDS.get(kind)
    if end is None:
        return None
    tail_bytes = min(_TAIL_BYTES, size)
    tail = _read(descriptor, tail_bytes, offset=size - tail_bytes)
    if end in tail:
        return None
    return _decoding_problem(_read(descriptor, size, offset=0))


def _open(path: bytes) -> int:
    """Open for reading, without touching the access time where that is allowed."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NOATIME | os.O_NONBLOCK)
    except PermissionError:  # O_NOATIME is the owner's alone
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def _read(descriptor: int, length: int, *, offset: int) -> bytes:
    """Read, and drop again what was not in the page cache before.

    Where the filesystem cannot say whether it was, it stays.
    """
    buffer = bytearray(length)
    try:
        if os.preadv(descriptor, [buffer], offset, os.RWF_NOWAIT) == length:
            return bytes(buffer)
    except BlockingIOError:  # not cached
        pass
    except OSError:  # this filesystem knows no RWF_NOWAIT; a real error comes again
        return os.pread(descriptor, length, offset)
    data = os.pread(descriptor, length, offset)
    first = offset - offset % mmap.PAGESIZE
    end = -(-(offset + length) // mmap.PAGESIZE) * mmap.PAGESIZE  # only whole pages are dropped
    os.posix_fadvise(descriptor, first, end - first, os.POSIX_FADV_DONTNEED)
    return data


def _what(head: bytes) -> str:
    text = head.lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "it is a web page, not an image"
    return f"it is no image: it begins with {head[:8].hex(' ')}"


def _decoding_problem(data: bytes) -> str | None:
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        return f"it is truncated or broken: {error}"
    return None
