"""Read a known number of bytes from real filesystems, cold and warm, and find them.

The files' bytes are counted by `stat`, and beside ioprof somebody else counts what was delivered:
the loop device, or the filesystem's own server. Nothing of ioprof computes an expected value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from ioprof import cachestate
from ioprof.analysis.accounting import Accounting
from ioprof.calibration.calibrate import calibrate
from ioprof.record.filelist import list_of
from ioprof.record.headline import Calibration
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import find_mount
from tests.integration.loopfs import (
    IMAGES,
    PREFIX,
    btrfs_of_two,
    folder_on_disk,
    loop_filesystem,
    overlay_over,
    squashfs_of,
)
from tests.integration.networkfs import glusterfs, moosefs, sshfs
from tests.integration.recording import accounted
from tests.integration.tracing import tracefs, why_no_fuse_requests

MIB = 2**20
FILES = 24
FILE_BYTES = 1_048_583
TRUE_BYTES = FILES * FILE_BYTES
NAMES = [f"file-{number:02d}.bin" for number in range(FILES)]
TOLERANCE = 0.01
ATTEMPTS = 5

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts"),
]

Result = TypeVar("Result")


class Filesystem(Protocol):
    """A mounted filesystem, and who else counts what it delivers."""

    @property
    def mountpoint(self) -> Path: ...

    def delivered_bytes(self) -> int: ...


def fill(folder: Path) -> None:
    """Write the known files: nothing compresses them, and all of them are on disk."""
    for name in NAMES:
        with (folder / name).open("wb") as file:
            file.write(os.urandom(FILE_BYTES))
            os.fsync(file.fileno())


@contextmanager
def filled(empty: AbstractContextManager[Filesystem]) -> Iterator[Filesystem]:
    with empty as mount:
        fill(mount.mountpoint)
        yield mount


@contextmanager
def overlay() -> Iterator[Filesystem]:
    with loop_filesystem("xfs", 320 * MIB, direct_io=True) as lower:
        fill(lower.mountpoint)
        with overlay_over(lower) as mount:
            yield mount


@contextmanager
def squashfs() -> Iterator[Filesystem]:
    with folder_on_disk() as content:
        fill(content)
        with squashfs_of(content) as mount:
            yield mount


ON_DEVICES: dict[str, Callable[[], AbstractContextManager[Filesystem]]] = {
    "xfs": lambda: filled(loop_filesystem("xfs", 320 * MIB, direct_io=True)),
    "btrfs": lambda: filled(loop_filesystem("btrfs", 256 * MIB, direct_io=True)),
    "btrfs of two devices": lambda: filled(btrfs_of_two(256 * MIB)),
    "overlay": overlay,
    "squashfs": squashfs,
}
IN_USER_SPACE: dict[str, Callable[[], AbstractContextManager[Filesystem]]] = {
    "sshfs": lambda: filled(sshfs()),
    "moosefs": lambda: filled(moosefs()),
    "glusterfs": lambda: filled(glusterfs()),
}
KINDS = ON_DEVICES | IN_USER_SPACE


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def filesystem(kind: str) -> Iterator[Filesystem]:
    with tracefs(), KINDS[kind]() as mount:
        yield mount


def undisturbed(filesystem: Filesystem, act: Callable[[], Result], *, delivered: int) -> Result:
    """What `act` returns, while the filesystem delivered that many bytes.

    The kernel may drop any page at any time, which for squashfs is a whole block to be read again;
    then it is done once more.
    """
    for _ in range(ATTEMPTS):
        before = filesystem.delivered_bytes()
        result = act()
        seen = filesystem.delivered_bytes() - before
        if seen == pytest.approx(delivered, abs=TRUE_BYTES * TOLERANCE):
            return result
    raise AssertionError(f"{seen} bytes were delivered and not {delivered}, {ATTEMPTS} times")


@pytest.fixture(scope="module")
def calibration(kind: str, filesystem: Filesystem) -> Calibration:
    reason = why_no_fuse_requests() if kind in IN_USER_SPACE else None
    if reason is not None:
        pytest.skip(reason)
    mount = find_mount(filesystem.mountpoint)
    stack = find_stack(mount, path=filesystem.mountpoint)
    paths = [filesystem.mountpoint / name for name in NAMES]
    for _ in range(ATTEMPTS):
        found = calibrate(paths, mount=mount, stack=stack)
        if found.headline and (found.headline.ratios["warm"] or 0.0) <= TOLERANCE:
            break
    return found


def test_what_was_evicted_is_delivered_once_and_what_was_warmed_not_at_all(
    filesystem: Filesystem,
) -> None:
    """On an overlay `cachestat` answers 0 for a cold file and for a warm one."""
    files = list_of(filesystem.mountpoint, NAMES)

    def cold() -> None:
        cachestate.evict(files)
        assert cachestate.observe(files).resident_fraction == 0.0
        cachestate.warm(files)

    undisturbed(filesystem, cold, delivered=TRUE_BYTES)
    resident = cachestate.observe(files).resident_fraction
    assert resident == pytest.approx(1.0, abs=TOLERANCE)
    undisturbed(filesystem, lambda: cachestate.warm(files), delivered=0)


def test_a_counter_is_found_that_saw_the_known_amount_and_rests_while_warm(
    calibration: Calibration,
) -> None:
    assert calibration.headline is not None, calibration.why
    assert calibration.headline.ratios["read"] == pytest.approx(1.0, abs=TOLERANCE)
    assert calibration.headline.ratios["warm"] == pytest.approx(0.0, abs=TOLERANCE)


def test_a_cold_read_is_delivered_to_one_per_cent(
    filesystem: Filesystem, calibration: Calibration, tmp_path: Path
) -> None:
    def cold() -> Accounting:
        cachestate.evict(list_of(filesystem.mountpoint, NAMES))
        return accounted(filesystem.mountpoint, cell=tmp_path, calibration=calibration)

    found = undisturbed(filesystem, cold, delivered=TRUE_BYTES)
    assert found.requested_bytes == pytest.approx(TRUE_BYTES, rel=TOLERANCE)
    assert found.storage_read_bytes == pytest.approx(TRUE_BYTES, rel=TOLERANCE)
    assert "cache-served" not in found.why


def test_a_warm_read_is_recognised_as_cache_served(
    filesystem: Filesystem, calibration: Calibration, tmp_path: Path
) -> None:
    cachestate.warm(list_of(filesystem.mountpoint, NAMES))
    found = undisturbed(
        filesystem,
        lambda: accounted(filesystem.mountpoint, cell=tmp_path, calibration=calibration),
        delivered=0,
    )
    assert found.requested_bytes == pytest.approx(TRUE_BYTES, rel=TOLERANCE)
    assert found.cache_served == pytest.approx(1.0, abs=TOLERANCE)
    assert "cache-served" in found.why


@pytest.mark.parametrize("name", KINDS)
def test_a_test_that_fails_or_holds_a_file_open_leaves_nothing_behind(name: str) -> None:
    before = left_over()
    with (
        pytest.raises(ZeroDivisionError),
        KINDS[name]() as mount,
        (mount.mountpoint / NAMES[0]).open("rb"),
    ):
        assert left_over() != before
        raise ZeroDivisionError
    assert left_over() == before


def left_over() -> dict[str, set[str]]:
    """Mounts, devices, networks, folders and programs of these tests, while this process runs."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    devices = [path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    return {
        "mounts": {line for line in mounts if PREFIX in line},
        "devices": {file for file in devices if PREFIX in file},
        "networks": {path.name for path in Path("/run").glob(f"netns/ioprof-test-{os.getpid()}-*")},
        "folders": {path.name for path in IMAGES.glob(f"{PREFIX}*")},
        "programs": {command for command in commands() if PREFIX in command},
    }


def commands() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            yield f"{path.parent.name} {path.read_text(errors='replace')}"
