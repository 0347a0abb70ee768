"""Datasets that the end-to-end tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ioprof.dataset.make import make


@pytest.fixture(scope="session")
def checkout_data() -> Path:
    """A folder for datasets on the checkout's own filesystem (/tmp may be a tmpfs)."""
    base = Path(__file__).resolve().parents[2] / "data"
    base.mkdir(exist_ok=True)
    return base


@pytest.fixture(scope="session")
def dataset(checkout_data: Path) -> Iterator[Path]:
    """400 real JPEGs with the sizes of ImageNet, on disk."""
    folder = checkout_data / f"test-set-{os.getpid()}"
    make(folder, samples=400, seed=7)
    os.sync()
    yield folder
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    folder.rmdir()
