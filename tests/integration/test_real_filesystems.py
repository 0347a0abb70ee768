"""Read a known number of bytes from real filesystems, cold and warm, and find them.

The files' bytes are counted by `stat`, and beside ioprof somebody else counts what was delivered:
the loop device, or the filesystem's own server. Nothing of ioprof computes an expected value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from ioprof import cachestate
from ioprof.calibration.calibrate import calibrate
from ioprof.dataset.listing import FileList, list_of
from ioprof.record.headline import Calibration
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import find_mount
from tests.integration.loopfs import (
    LoopMount,
    btrfs_of_two,
    folder_on_disk,
    loop_filesystem,
    overlay_over,
    squashfs_of,
)
from tests.integration.recording import accounted

MIB = 2**20
FILES = 24
FILE_BYTES = 1_048_583
TRUE_BYTES = FILES * FILE_BYTES
NAMES = [f"file-{number:02d}.bin" for number in range(FILES)]
TOLERANCE = 0.01

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts"),
]


@dataclass(frozen=True, kw_only=True)
class Filesystem:
    """A folder of known files on a real filesystem, and who else counts what it delivers."""

    folder: Path
    delivered_bytes: Callable[[], int]

    @property
    def files(self) -> FileList:
        return list_of(self.folder, NAMES)


def fill(folder: Path) -> None:
    """Write the known files: nothing compresses them, and all of them are on disk."""
    for name in NAMES:
        with (folder / name).open("wb") as file:
            file.write(os.urandom(FILE_BYTES))
            os.fsync(file.fileno())


def on_xfs(stack: ExitStack) -> LoopMount:
    return filled(stack.enter_context(loop_filesystem("xfs", 320 * MIB, direct_io=True)))


def on_btrfs(stack: ExitStack) -> LoopMount:
    return filled(stack.enter_context(loop_filesystem("btrfs", 256 * MIB, direct_io=True)))


def on_btrfs_of_two(stack: ExitStack) -> LoopMount:
    return filled(stack.enter_context(btrfs_of_two(256 * MIB)))


def on_overlay(stack: ExitStack) -> LoopMount:
    return stack.enter_context(overlay_over(on_xfs(stack)))


def on_squashfs(stack: ExitStack) -> LoopMount:
    content = stack.enter_context(folder_on_disk())
    fill(content)
    return stack.enter_context(squashfs_of(content))


def filled(mount: LoopMount) -> LoopMount:
    fill(mount.mountpoint)
    return mount


KINDS: dict[str, Callable[[ExitStack], LoopMount]] = {
    "xfs": on_xfs,
    "btrfs": on_btrfs,
    "btrfs of two devices": on_btrfs_of_two,
    "overlay": on_overlay,
    "squashfs": on_squashfs,
}


@pytest.fixture(scope="module", params=KINDS)
def filesystem(request: pytest.FixtureRequest) -> Iterator[Filesystem]:
    with ExitStack() as stack:
        mount = KINDS[request.param](stack)
        yield Filesystem(folder=mount.mountpoint, delivered_bytes=mount.delivered_bytes)


@pytest.fixture(scope="module")
def calibration(filesystem: Filesystem) -> Calibration:
    mount = find_mount(filesystem.folder)
    return calibrate(
        [filesystem.folder / name for name in NAMES],
        mount=mount,
        stack=find_stack(mount, path=filesystem.folder),
    )


def test_a_counter_is_found_that_saw_the_known_amount_and_rests_while_warm(
    calibration: Calibration,
) -> None:
    assert calibration.headline is not None, calibration.why
    assert calibration.headline.ratios["read"] == pytest.approx(1.0, abs=TOLERANCE)
    assert calibration.headline.ratios["warm"] == pytest.approx(0.0, abs=TOLERANCE)


def test_a_cold_read_is_delivered_to_one_per_cent(
    filesystem: Filesystem, calibration: Calibration, tmp_path: Path
) -> None:
    cachestate.evict(filesystem.files)
    before = filesystem.delivered_bytes()
    found = accounted(filesystem.folder, cell=tmp_path, calibration=calibration)
    outside = filesystem.delivered_bytes() - before
    assert outside == pytest.approx(TRUE_BYTES, rel=TOLERANCE), "the test itself"
    assert found.requested_bytes == pytest.approx(TRUE_BYTES, rel=TOLERANCE)
    assert found.storage_read_bytes == pytest.approx(TRUE_BYTES, rel=TOLERANCE)
    assert "cache-served" not in found.why


def test_a_warm_read_is_recognised_as_cache_served(
    filesystem: Filesystem, calibration: Calibration, tmp_path: Path
) -> None:
    cachestate.warm(filesystem.files)
    before = filesystem.delivered_bytes()
    found = accounted(filesystem.folder, cell=tmp_path, calibration=calibration)
    outside = filesystem.delivered_bytes() - before
    assert outside <= TRUE_BYTES * TOLERANCE, "the test itself"
    assert found.requested_bytes == pytest.approx(TRUE_BYTES, rel=TOLERANCE)
    assert found.cache_served == pytest.approx(1.0, abs=TOLERANCE)
    assert "cache-served" in found.why


def test_residency_tells_a_cold_file_from_a_warm_one(filesystem: Filesystem) -> None:
    """On an overlay `cachestat` answers 0 for both."""
    cachestate.evict(filesystem.files)
    assert cachestate.observe(filesystem.files).resident_fraction == 0.0
    cachestate.warm(filesystem.files)
    assert cachestate.observe(filesystem.files).resident_fraction == 1.0
