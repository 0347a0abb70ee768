"""Read exactly 23 files of 1,048,583 bytes and find them in the counters, four ways.

The files' bytes are counted by `stat`; nothing of ioprof computes the expected values.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ioprof import cachestate
from ioprof.analysis.accounting import Accounting, account
from ioprof.analysis.storage import uncalibrated
from ioprof.record.filelist import FileList
from ioprof.record.store import read_node
from ioprof.recorder import RecordSpec, record
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import find_mount
from tests.integration.loopfs import loop_filesystem

FILES = 23
FILE_BYTES = 1_048_583
TRUE_BYTES = FILES * FILE_BYTES
READAHEAD_BYTES = 128 * 1024
PAGE_BYTES = 4096
ATTEMPTS = 5
READER = Path(__file__).with_name("reader.py")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")


@pytest.fixture(
    params=[
        "root filesystem",
        pytest.param("xfs on a loop device", marks=[pytest.mark.root, needs_root]),
    ]
)
def folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder of 23 known files, on disk and out of the page cache's dirty list."""
    if request.param == "root filesystem":
        # Not /tmp: that may be a tmpfs, which has no device under it.
        base = Path(__file__).resolve().parents[2] / "data" / f"known-load-{os.getpid()}"
        base.mkdir(parents=True)
        try:
            if not find_stack(find_mount(base)).top:
                pytest.skip("the checkout lies on a filesystem without a block device")
            yield _filled(base)
        finally:
            for path in base.iterdir():
                path.unlink()
            base.rmdir()
    else:
        with loop_filesystem("xfs", 512 * 2**20, direct_io=True) as mounted:
            yield _filled(mounted.mountpoint)


def _filled(base: Path) -> Path:
    for number in range(FILES):
        path = base / f"file-{number:02d}.bin"
        with path.open("wb") as file:
            file.write(os.urandom(FILE_BYTES))
            os.fsync(file.fileno())
    return base


def _recorded(
    folder: Path, mode: str, tmp_path: Path, *, prepare: Callable[[FileList], None] | None = None
) -> Accounting:
    """The read, measured again when other programs read from the same disk meanwhile.

    Their bytes are in the device's counter and not in the process tree's. If they are there every
    time, the last measurement stands, and the test judges it.
    """
    for attempt in range(ATTEMPTS):
        if prepare is not None:
            prepare(_files(folder))
        found = _recorded_once(folder, mode, tmp_path / f"cell-{attempt}")
        device, tree = found.storage_read_bytes, found.block_read_bytes
        if device is None or tree is None or device - tree <= READAHEAD_BYTES:
            break
    return found


def _recorded_once(folder: Path, mode: str, cell: Path) -> Accounting:
    result = record(
        RecordSpec(
            command=(sys.executable, "-I", "-S", str(READER), mode, str(folder)),
            folder=cell,
            data_path=folder,
            interval_s=0.02,
            cpus=tuple(sorted(os.sched_getaffinity(0))),
        )
    )
    assert result.exit_status == 0
    return account(
        read_node(cell / "node-0.jsonl"),
        start_s=result.started_s,
        end_s=result.ended_s,
        storage=uncalibrated(find_stack(find_mount(folder)).top),
    )


def _files(folder: Path) -> FileList:
    from ioprof.record.filelist import list_of

    return list_of(folder, sorted(p.name for p in folder.iterdir()))


def _assert_delivered(accounting: Accounting) -> None:
    """The device delivered every byte once: whole pages and one readahead window a file more."""
    slack = FILES * (PAGE_BYTES + READAHEAD_BYTES)
    assert accounting.storage_read_bytes is not None
    assert TRUE_BYTES * 0.995 <= accounting.storage_read_bytes <= TRUE_BYTES * 1.005 + slack


def test_buffered_cold_is_requested_once_and_delivered_once(folder: Path, tmp_path: Path) -> None:
    found = _recorded(folder, "buffered", tmp_path, prepare=cachestate.evict)
    assert found.requested_bytes == pytest.approx(TRUE_BYTES, rel=0.005)
    _assert_delivered(found)


def test_buffered_warm_is_requested_and_said_to_be_cache_served(
    folder: Path, tmp_path: Path
) -> None:
    """ncabatoff/process-exporter#66: read_bytes is 0 when the page cache serves the reads."""
    found = _recorded(folder, "buffered", tmp_path, prepare=cachestate.warm)
    assert found.requested_bytes == pytest.approx(TRUE_BYTES, rel=0.005)
    assert found.storage_read_bytes is not None
    assert found.storage_read_bytes <= TRUE_BYTES * 0.005
    assert found.cache_served == pytest.approx(1.0, abs=0.005)
    assert "cache-served" in found.why


def test_mapped_cold_has_no_requested_bytes_and_says_why(folder: Path, tmp_path: Path) -> None:
    """darshan-hpc/darshan#416, NVIDIA/DALI#1909: about 0 bytes were shown, without the reason."""
    found = _recorded(folder, "mmap", tmp_path, prepare=cachestate.evict)
    assert found.requested_bytes is None
    assert "mmap" in found.reasons["requested_bytes"]
    _assert_delivered(found)


def test_direct_is_delivered_even_when_the_page_cache_holds_it(
    folder: Path, tmp_path: Path
) -> None:
    found = _recorded(folder, "direct", tmp_path)
    assert found.requested_bytes == pytest.approx(TRUE_BYTES, rel=0.005)
    _assert_delivered(found)
