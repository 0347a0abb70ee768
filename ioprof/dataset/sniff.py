"""What a file really is, by its first bytes, whatever its name says."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path

import msgspec
from PIL import Image, UnidentifiedImageError

_HEAD_BYTES = 32
_TAIL_BYTES = 1024
"""Some cameras and tools leave a few bytes after the end marker."""
_JPEG_END = b"\xff\xd9"

IMAGE_SUFFIXES = {
    ".jpeg": "JPEG", ".jpg": "JPEG", ".jpe": "JPEG", ".jfif": "JPEG", ".png": "PNG", ".gif": "GIF",
    ".bmp": "BMP", ".webp": "WebP", ".tif": "TIFF", ".tiff": "TIFF", ".ppm": "PPM", ".pgm": "PPM",
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


class Sniffed(msgspec.Struct, frozen=True, kw_only=True):
    """A file's size, its kind by content (None when it is no image), and why it cannot be a
    sample (None when it can)."""

    stored_bytes: int
    kind: str | None
    problem: str | None


def kind_of(head: bytes) -> str | None:
    """Image kind of a file's first bytes; None when they are no image's."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)


def sniff(path: Path) -> Sniffed:
    """Look at both ends of a file; decode it only when its end is missing.

    OSError when it cannot be opened or read.
    """
    descriptor = _open(path)
    try:
        size = os.fstat(descriptor).st_size
        if size == 0:
            return Sniffed(stored_bytes=0, kind=None, problem="it is empty")
        head = os.pread(descriptor, _HEAD_BYTES, 0)
        kind = kind_of(head)
        if kind is None:
            return Sniffed(stored_bytes=size, kind=None, problem=_what(head))
        if kind == "JPEG" and _JPEG_END not in _tail(descriptor, size):
            problem = _decoding_problem(os.pread(descriptor, size, 0))
            return Sniffed(stored_bytes=size, kind=kind, problem=problem)
        return Sniffed(stored_bytes=size, kind=kind, problem=None)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Open for reading, without touching the access time where that is allowed."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NOATIME | os.O_NONBLOCK)
    except PermissionError:  # O_NOATIME is the owner's alone
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def _tail(descriptor: int, size: int) -> bytes:
    return os.pread(descriptor, _TAIL_BYTES, max(0, size - _TAIL_BYTES))


def _what(head: bytes) -> str:
    text = head.lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "it is a web page, not an image"
    return f"it is no image: it begins with {head[:8].hex(' ')}"


def _decoding_problem(data: bytes) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # broken EXIF says nothing about the pixels
        try:
            with Image.open(io.BytesIO(data)) as image:
                image.load()
        except (OSError, UnidentifiedImageError, SyntaxError, ValueError) as error:
            return f"it is truncated or broken: {error}"
    return None
