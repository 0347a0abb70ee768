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
_MAKE = {"xfs": ("-q", "-f"), "btrfs": ("-q", "-f"), "ext4": ("-q", "-F")}


@dataclass(frozen=True, kw_only=True)
class LoopMount:
    """A mounted filesystem and the loop device that it is on, for instance "/dev/loop0"."""

    mountpoint: Path
    device: str


def why_not(kind: Kind) -> str | None:
    """What is missing to make such a filesystem here; None when nothing is."""
    if os.geteuid() != 0:
        return "needs root: loop devices"
    missing = [tool for tool in ("losetup", "mount", f"mkfs.{kind}") if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if not Path("/dev/loop-control").exists():
        return "this kernel has no loop devices"
    if f"\t{kind}\n" not in Path("/proc/filesystems").read_text():
        return f"this kernel has no {kind}"
    return None


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
def loop_device(size_bytes: int, *, direct_io: bool = False) -> Iterator[str]:
    """A loop device over a new sparse file of `size_bytes`."""
    with _folder() as folder:
        image = folder / "image"
        with image.open("wb") as file:
            file.truncate(size_bytes)
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
    with _folder() as folder:
        mountpoint = folder / "mounted"
        mountpoint.mkdir()
        _run("mount", "-t", kind, "-o", options, source, str(mountpoint))
        try:
            yield mountpoint
        finally:
            # What a failed test still holds open must not keep the device.
            if subprocess.run(["umount", str(mountpoint)], capture_output=True).returncode != 0:
                _run("umount", "--lazy", str(mountpoint))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder beside the datasets; removed only when nothing is mounted in it any more."""
    IMAGES.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="loop-", dir=IMAGES))
    try:
        yield folder
    finally:
        if not any(path.is_mount() for path in folder.iterdir()):
            shutil.rmtree(folder)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
