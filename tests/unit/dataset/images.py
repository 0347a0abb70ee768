"""Small image files, whole and broken, for tests of the survey."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

HTML = b"<!DOCTYPE html><html><body>404 Not Found</body></html>"


def encoded(kind: str = "JPEG", *, side: int = 24) -> bytes:
    """A whole image file of that kind."""
    buffer = io.BytesIO()
    Image.effect_noise((side, side), 60).convert("RGB").save(buffer, format=kind)
    return buffer.getvalue()


def put(path: Path, data: bytes | None = None) -> Path:
    """Write `data`, or a JPEG, at `path`; make its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded() if data is None else data)
    return path
