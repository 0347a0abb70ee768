"""Real filesystems on real loop devices: which devices are under them, and what they count.

The bytes that must appear are the size of a file that the test wrote, 64 MiB, read with
`posix_fadvise` eviction before. Counters of the host's own disk have other readers too, so they
are only compared where a lower bound says enough.
"""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ioprof import cachestate
from ioprof.record.filelist import list_of
from ioprof.record.reading import Role, Unavailable
from ioprof.sources.block import find
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import find_mount
from ioprof.sources.source import Target
from tests.integration.loopfs import (
    IMAGES,
    loop_device,
    loop_filesystem,
    make_filesystem,
    mounted,
    why_not,
)

MIB = 2**20
FILE_BYTES = 64 * MIB
SIZES = {"xfs": 512 * MIB, "btrfs": 512 * MIB, "ext4": 256 * MIB}
ONE_READAHEAD_WINDOW = 1 * MIB

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices"),
]


def needs(kind):
    reason = why_not(kind)
    return pytest.mark.skipif(reason is not None, reason=reason or "")


KINDS = [pytest.param(kind, marks=needs(kind)) for kind in SIZES]


def written(folder):
    """A file of 64 MiB, on its device and out of the page cache."""
    path = folder / "file"
    with path.open("wb") as file:
        for _ in range(64):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
    cachestate.evict(list_of(folder, ["file"]))
    return path


def counted(folder, act):
    """Bytes that each device under `folder` read while `act` ran, and each one's role."""
    mount = find_mount(folder)
    stack = find_stack(mount, path=folder)
    (source,) = find(Target(root_pid=os.getpid(), mount=mount, stack=stack))
    assert not isinstance(source, Unavailable)
    before = {r.instance: bytes_read(r) for r in source.read()}
    act()
    after = list(source.read())
    source.close()
    grown = {r.instance: bytes_read(r) - before[r.instance] for r in after}
    return grown, {r.instance: r.role for r in after}


def bytes_read(reading):
    return reading.counters["read_bytes_total"]


def read_whole(path):
    with path.open("rb", buffering=0) as file:
        while file.read(MIB):
            pass


def name(device):
    return device.removeprefix("/dev/")


@pytest.mark.parametrize("kind", KINDS)
def test_the_loop_device_is_the_headline_and_has_every_byte_once(kind):
    with loop_filesystem(kind, SIZES[kind], direct_io=True) as loop:
        path = written(loop.mountpoint)
        grown, roles = counted(loop.mountpoint, lambda: read_whole(path))
    top = name(loop.device)
    assert [n for n, role in roles.items() if role is Role.TOP] == [top]
    assert FILE_BYTES <= grown[top] <= FILE_BYTES + ONE_READAHEAD_WINDOW
    below = [n for n, role in roles.items() if role is not Role.TOP]
    if below and find_stack(find_mount(IMAGES)).top == (below[0],):
        assert grown[below[0]] >= FILE_BYTES, "direct I/O of the loop goes to the disk below"


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes_from_the_page_cache_move_no_device(kind):
    with loop_filesystem(kind, SIZES[kind], direct_io=True) as loop:
        path = written(loop.mountpoint)
        read_whole(path)
        grown, _ = counted(loop.mountpoint, lambda: read_whole(path))
    assert grown[name(loop.device)] == 0


@pytest.mark.parametrize("kind", KINDS[:1])
def test_a_buffered_loop_counts_what_it_delivers_and_says_what_it_hides(kind):
    with loop_filesystem(kind, SIZES[kind]) as loop:
        path = written(loop.mountpoint)
        stack = find_stack(find_mount(loop.mountpoint))
        grown, _ = counted(loop.mountpoint, lambda: read_whole(path))
    assert grown[name(loop.device)] >= FILE_BYTES
    assert "through the page cache" in stack.notes[0]


@needs("btrfs")
def test_a_btrfs_over_two_devices_has_two_tops_that_add_up():
    with contextlib.ExitStack() as devices:
        first, second = (
            devices.enter_context(loop_device(256 * MIB, direct_io=True)) for _ in range(2)
        )
        make_filesystem("btrfs", first, second, options=("--data", "raid0"))
        with mounted(first, kind="btrfs") as mountpoint:
            path = written(mountpoint)
            grown, roles = counted(mountpoint, lambda: read_whole(path))
        tops = [n for n, role in roles.items() if role is Role.TOP]
    assert sorted(tops) == sorted([name(first), name(second)])
    total = sum(grown[n] for n in tops)
    assert FILE_BYTES <= total <= FILE_BYTES + 2 * ONE_READAHEAD_WINDOW
    assert min(grown[n] for n in tops) >= FILE_BYTES // 4, "raid0 reads from both"


@needs("btrfs")
def test_a_btrfs_subvolume_is_found_though_no_device_number_fits():
    """henrygd/beszel#200, aristocratos/btop#140: matched by st_dev, none fits."""
    with loop_filesystem("btrfs", SIZES["btrfs"]) as loop:
        subvolume = loop.mountpoint / "sub"
        subprocess.run(
            ["btrfs", "subvolume", "create", str(subvolume)], check=True, capture_output=True
        )
        mount = find_mount(subvolume)
        number = subvolume.stat().st_dev
        assert f"{os.major(number)}:{os.minor(number)}" != mount.major_minor
        assert (mount.path, mount.filesystem) == (str(loop.mountpoint), "btrfs")
        assert find_stack(mount).top == (name(loop.device),)


@needs("xfs")
def test_an_overlay_reads_from_the_layer_that_holds_the_file(tmp_path):
    with loop_filesystem("xfs", SIZES["xfs"], direct_io=True) as lower:
        path = written(lower.mountpoint)
        for folder in ("upper", "work"):
            (tmp_path / folder).mkdir()
        options = f"lowerdir={lower.mountpoint},upperdir={tmp_path}/upper,workdir={tmp_path}/work"
        with mounted("overlay", kind="overlay", options=options) as merged:
            seen = merged / path.name
            assert find_mount(seen).filesystem == "overlay"
            assert find_stack(find_mount(seen), path=seen).top == (name(lower.device),)
            grown, _ = counted(seen, lambda: read_whole(seen))
    assert FILE_BYTES <= grown[name(lower.device)] <= FILE_BYTES + ONE_READAHEAD_WINDOW


@pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="mksquashfs is not installed")
def test_a_squashfs_is_on_its_loop_device(tmp_path):
    image = tmp_path / "image.squashfs"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_bytes(os.urandom(MIB))
    subprocess.run(
        ["mksquashfs", str(tmp_path / "data"), str(image), "-quiet"],
        check=True,
        capture_output=True,
    )
    with mounted(str(image), kind="squashfs", options="loop") as mountpoint:
        mount = find_mount(mountpoint)
        assert find_stack(mount).top == (name(mount.source),)


@pytest.mark.parametrize("folder", ["a blank", "a\ttab", "back\\slash", "new\nline", "hash#"])
def test_a_mount_point_with_a_strange_name_is_found(tmp_path, folder):
    """prometheus/node_exporter#953, netdata/netdata#716: real mounts with such names."""
    path = tmp_path / folder
    path.mkdir()
    with tmpfs(path, source=""):
        mount = find_mount(path)
        assert (mount.path, mount.filesystem, mount.source) == (str(path), "tmpfs", "")
        assert "lives in memory" in (find_stack(mount).reason or "")


def test_of_two_mounts_on_one_path_the_upper_is_found(tmp_path):
    """prometheus/node_exporter#434: two entries of one path."""
    with tmpfs(tmp_path, source="below"), tmpfs(tmp_path, source="above"):
        assert find_mount(tmp_path).source == "above"


def test_a_descriptor_below_an_over_mount_still_names_its_own_mount(tmp_path):
    with tmpfs(tmp_path, source="below"):
        held = os.open(tmp_path, os.O_PATH)
        try:
            with tmpfs(tmp_path, source="above"):
                assert find_mount(Path(f"/proc/self/fd/{held}")).source == "below"
        finally:
            os.close(held)


@contextlib.contextmanager
def tmpfs(path, *, source):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", source, str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--no-canonicalize", str(path)], check=True)


@needs("xfs")
def test_a_test_that_fails_or_holds_a_file_open_gives_its_loop_device_back():
    with (
        pytest.raises(ZeroDivisionError),
        loop_filesystem("xfs", SIZES["xfs"]) as loop,
        (loop.mountpoint / "held").open("w"),
    ):
        folder = loop.mountpoint.parent
        raise ZeroDivisionError
    listed = subprocess.run(["losetup", "--all"], capture_output=True, text=True, check=True)
    assert str(folder) not in listed.stdout
    assert not folder.exists()
