"""Filesystems on loop devices, for as long as a test runs; always taken down again.

The images lie on the checkout's own filesystem: /tmp may be a tmpfs, under which no disk moves.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

Kind = Literal["xfs", "btrfs", "ext4"]

IMAGES = Path(__file__).resolve().parents[2] / "data"
PREFIX = f"loop-{os.getpid()}-"
"""Of the folders that these tests make, and so of what is mounted and served there."""
_MAKE = {"xfs": ("-q", "-f"), "btrfs": ("-q", "-f"), "ext4": ("-q", "-F")}


@dataclass(frozen=True, kw_only=True)
class LoopMount:
    """A mounted filesystem and the loop device that it is on, for instance "/dev/loop0"."""

    mountpoint: Path
    device: str
    more_devices: tuple[str, ...] = ()
    """Those that it is also on: only a btrfs has any."""

    def delivered_bytes(self) -> int:
        """What the devices have read since they were made, as the kernel counts it."""
        return sum(map(_read_bytes, (self.device, *self.more_devices)))


def _read_bytes(device: str) -> int:
    fields = Path(f"/sys/block/{Path(device).name}/stat").read_text().split()
    return int(fields[2]) * 512


def why_not(kind: Kind | Literal["squashfs", "overlay"]) -> str | None:
    """What is missing to make such a filesystem here; None when nothing is."""
    if os.geteuid() != 0:
        return "needs root: loop devices"
    maker = {"squashfs": ["mksquashfs"], "overlay": []}.get(kind, [f"mkfs.{kind}"])
    missing = [tool for tool in ("losetup", "mount", *maker) if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if not Path("/dev/loop-control").exists() and shutil.which("modprobe"):
        subprocess.run(["modprobe", "--quiet", "loop"], capture_output=True)
    if not Path("/dev/loop-control").exists():
        return "this kernel has no loop devices"
    return None if _kernel_has(kind) else f"this kernel has no {kind}"


def _kernel_has(kind: str) -> bool:
    """Whether the kernel knows the filesystem, or learns it: a module may not be loaded yet."""
    known = Path("/proc/filesystems")
    if f"\t{kind}\n" not in known.read_text() and shutil.which("modprobe"):
        subprocess.run(["modprobe", "--quiet", kind], capture_output=True)
    return f"\t{kind}\n" in known.read_text()


@contextlib.contextmanager
def loop_filesystem(kind: Kind, size_bytes: int, *, direct_io: bool = False) -> Iterator[LoopMount]:
    """A new filesystem of `size_bytes`, mounted. xfs wants 300 MiB and btrfs 128 MiB at least.

    Where something is missing for it, the test that asks is skipped with the reason.
    """
    reason = why_not(kind)
    if reason is not None:
        pytest.skip(reason)
    with loop_device(size_bytes, direct_io=direct_io) as device:
        make_filesystem(kind, device)
        with mounted(device, kind=kind) as mountpoint:
            yield LoopMount(mountpoint=mountpoint, device=device)


@contextlib.contextmanager
def btrfs_of_two(size_bytes: int) -> Iterator[LoopMount]:
    """A btrfs whose data lies in stripes over two loop devices of `size_bytes` each."""
    reason = why_not("btrfs")
    if reason is not None:
        pytest.skip(reason)
    with (
        loop_device(size_bytes, direct_io=True) as first,
        loop_device(size_bytes, direct_io=True) as second,
    ):
        make_filesystem("btrfs", first, second, options=("--data", "raid0"))
        with mounted(first, kind="btrfs") as mountpoint:
            yield LoopMount(mountpoint=mountpoint, device=first, more_devices=(second,))


@contextlib.contextmanager
def squashfs_of(content: Path) -> Iterator[LoopMount]:
    """A squashfs that holds the files of `content` as they are, not compressed.

    Its blocks are as large as it allows: a block is read in whole pages, wherever it begins, so
    small ones add some per cent.
    """
    reason = why_not("squashfs")
    if reason is not None:
        pytest.skip(reason)
    with folder_on_disk() as folder:
        image = folder / "image"
        _run("mksquashfs", str(content), str(image), "-quiet", "-noI", "-noD", "-noF", "-b", "1M")
        with (
            _attached(image, direct_io=True) as device,
            mounted(device, kind="squashfs", options="ro") as mountpoint,
        ):
            yield LoopMount(mountpoint=mountpoint, device=device)


@contextlib.contextmanager
def overlay_over(lower: LoopMount) -> Iterator[LoopMount]:
    """An overlay whose lower layer is `lower`, and whose upper layer lies beside the images."""
    reason = why_not("overlay")
    if reason is not None:
        pytest.skip(reason)
    with folder_on_disk() as folder:
        (folder / "upper").mkdir()
        (folder / "work").mkdir()
        layers = f"lowerdir={lower.mountpoint},upperdir={folder}/upper,workdir={folder}/work"
        with mounted("overlay", kind="overlay", options=layers) as mountpoint:
            yield LoopMount(mountpoint=mountpoint, device=lower.device)


@contextlib.contextmanager
def loop_device(size_bytes: int, *, direct_io: bool = False) -> Iterator[str]:
    """A loop device over a new sparse file of `size_bytes`."""
    with folder_on_disk() as folder:
        image = folder / "image"
        with image.open("wb") as file:
            file.truncate(size_bytes)
        with _attached(image, direct_io=direct_io) as device:
            yield device


@contextlib.contextmanager
def _attached(image: Path, *, direct_io: bool) -> Iterator[str]:
    flag = "on" if direct_io else "off"
    device = _run("losetup", "--find", "--show", f"--direct-io={flag}", str(image)).strip()
    try:
        yield device
    finally:
        _run("losetup", "--detach", device)


def make_filesystem(kind: Kind, *devices: str, options: tuple[str, ...] = ()) -> None:
    """Make a filesystem over the devices (several: btrfs alone)."""
    _run(f"mkfs.{kind}", *_MAKE[kind], *options, *devices)


@contextlib.contextmanager
def mounted(source: str, *, kind: str, options: str = "noatime") -> Iterator[Path]:
    """`source`, mounted on a folder of its own."""
    with folder_on_disk() as folder:
        mountpoint = folder / "mounted"
        mountpoint.mkdir()
        _run("mount", "-t", kind, "-o", options, source, str(mountpoint))
        try:
            yield mountpoint
        finally:
            unmount(mountpoint)


def is_mounted(path: Path) -> bool:
    """By the kernel's list: the mount itself is not touched, since it may not answer."""
    listed = str(path).translate({ord(c): f"\\{ord(c):03o}" for c in " \t\n\\"})
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(line.split(" ")[4] == listed for line in lines)


def unmount(mountpoint: Path) -> None:
    """Unmount, and at once: what a failed test still holds open must not keep the device."""
    if subprocess.run(["umount", str(mountpoint)], capture_output=True).returncode != 0:
        _run("umount", "--lazy", str(mountpoint))


@contextlib.contextmanager
def folder_on_disk() -> Iterator[Path]:
    """A folder beside the datasets; removed only when nothing is mounted in it any more."""
    IMAGES.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=IMAGES))
    try:
        yield folder
    finally:
        if not any(is_mounted(path) for path in folder.iterdir()):
            shutil.rmtree(folder)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
