"""What may not be read is named, and what is surveyed is left as it was."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ioprof.dataset.survey import survey
from ioprof.errors import DatasetError
from tests.unit.dataset.images import encoded, put
from tests.unit.dataset.seen import names, reasons

NOBODY = 65534


def checksum(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        digest.update(repr((str(path), status.st_mode, status.st_mtime_ns)).encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def as_someone_else() -> Iterator[None]:
    """For root: act as a user who may be refused."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=True)
    shutil.rmtree(folder)


def test_what_may_not_be_read_is_quarantined_by_name(open_folder):
    put(open_folder / "a/1.JPEG")
    put(open_folder / "a/2.JPEG").chmod(0)
    put(open_folder / "b/1.JPEG")
    (open_folder / "b").chmod(0)
    with as_someone_else():
        dataset, files = survey(open_folder)
    assert names(files) == ["a/1.JPEG"]
    assert reasons(dataset) == {
        "a/2.JPEG": "it cannot be read: Permission denied",
        "b": "it cannot be read: Permission denied",
    }


def test_a_root_that_may_not_be_read_says_what_to_ask_for(open_folder):
    put(open_folder / "data/1.JPEG")
    (open_folder / "data").chmod(0)
    with as_someone_else(), pytest.raises(DatasetError, match=r"Permission denied\. Ask for"):
        survey(open_folder / "data")


def test_a_read_only_tree_is_surveyed_and_left_as_it_was(open_folder):
    put(open_folder / "a/1.JPEG")
    put(open_folder / "a/cut.JPEG", encoded(side=100)[:-50])
    subprocess.run(["chmod", "-R", "a=rX", str(open_folder)], check=True)
    before = checksum(open_folder)
    with as_someone_else():
        assert survey(open_folder)[0].samples == 1
    assert checksum(open_folder) == before


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: chattr +i")
def test_an_immutable_tree_is_surveyed(tmp_path):
    put(tmp_path / "a/1.JPEG")
    if subprocess.run(["chattr", "-R", "+i", str(tmp_path)], capture_output=True).returncode != 0:
        pytest.skip("this filesystem knows no chattr +i")
    try:
        assert survey(tmp_path)[0].samples == 1
    finally:
        subprocess.run(["chattr", "-R", "-i", str(tmp_path)], check=True)


def test_nothing_is_opened_for_writing(tmp_path, monkeypatch):
    put(tmp_path / "a/1.JPEG")
    put(tmp_path / "a/cut.JPEG", encoded(side=100)[:-50])
    real = os.open
    modes = []

    def spy(path: bytes, mode: int) -> int:
        modes.append(mode)
        return real(path, mode)

    monkeypatch.setattr(os, "open", spy)
    survey(tmp_path)
    assert len(modes) == 2
    assert not any(mode & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) for mode in modes)
