"""What both families of loaders do to an image, and how a file is tried."""

from __future__ import annotations

import io
import os
import struct
import warnings

from PIL import Image, UnidentifiedImageError

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
"""Per-channel statistics of ImageNet for pixels from 0 to 1, as in torchvision's references."""

AREA = (0.08, 1.0)
ASPECT = (3 / 4, 4 / 3)
"""Share of the image's area, and width to height, of the random crop that is resized."""


BROKEN = (
    UnidentifiedImageError,
    Image.DecompressionBombError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    OverflowError,
    RuntimeError,
    struct.error,
)
"""What Pillow raises, beside OSError, for a file that is no image or a broken one."""


def read_file(path: bytes) -> bytes:
    """The whole file by read(2)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size + 1)
        while len(data) < size and (more := os.read(descriptor, size + 1 - len(data))):
            data += more
        return data
    finally:
        os.close(descriptor)


def rehearsal_jpeg() -> bytes:
    """A small JPEG that is on no disk.

    Decoding it once before the clock runs brings in the libraries' own pages, which would else be
    read from storage beside the first samples and be taken for theirs.
    """
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), "slateblue").save(buffer, format="JPEG")
    return buffer.getvalue()


def decode_rgb(data: bytes) -> Image.Image:
    """An RGB image by Pillow; OSError says what is wrong with it."""
    with warnings.catch_warnings():
        # Broken EXIF says nothing about the pixels, and comes once per file.
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(data)) as image:
                return image.convert("RGB")
        except BROKEN as error:
            raise OSError(f"no image: {error}") from None


def problem_of(path: bytes) -> str | None:
    """Why a file is no sample; None when it can be decoded."""
    try:
        decode_rgb(read_file(path))
    except OSError as error:
        return str(error)
    return None
