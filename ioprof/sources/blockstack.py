"""The block devices under a mount, by their place in the stack.

What the mount names is the top: its bytes are the headline. What it is built on (a partition's
disk, members of md and dm, the disk below a loop device's file) is shown and never added. Devices
are found by number through sysfs, never by the mount's source name, which may be `/dev/root`.
"""

from __future__ import annotations

import os
from pathlib import Path

from ioprof.errors import MeasureError
from ioprof.record.dataset import Mount
from ioprof.record.reading import Role
from ioprof.sources.mount import find_mount
from ioprof.sources.source import BlockDevice, BlockStack, Roots

_MAX_DEPTH = 16
_MEMORY = {"tmpfs", "ramfs", "hugetlbfs"}
_NETWORK = {
    "nfs", "nfs4", "lustre", "gpfs", "wekafs", "beegfs", "ceph", "cifs", "smb3", "9p", "virtiofs",
    "afs", "orangefs",
}  # fmt: skip


def find_stack(mount: Mount, *, roots: Roots = Roots()) -> BlockStack:
    """The stack under `mount`; empty with the reason where the filesystem has no block device."""
    return _Search(roots).stack(mount)


class _Search:
    """One walk down: remembers what it has passed, so that no device is listed twice."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._below: dict[str, BlockDevice] = {}
        self._notes: list[str] = []

    def stack(self, mount: Mount, *, depth: int = 0) -> BlockStack:
        tops, reason = self._tops(mount, depth=depth)
        devices = {
            name: BlockDevice(name=name, role=Role.TOP, paths=self._paths(name)) for name in tops
        }
        for name in tops:
            self._descend(name, depth=depth)
        below = [device for name, device in self._below.items() if name not in devices]
        return BlockStack(
            devices=(*devices.values(), *below), reason=reason, notes=tuple(self._notes)
        )

    def _tops(self, mount: Mount, *, depth: int) -> tuple[list[str], str | None]:
        """Names of the devices that the mount itself is on, or why there are none."""
        if depth > _MAX_DEPTH:
            return [], f"{mount.path} is stacked more than {_MAX_DEPTH} filesystems deep"
        name = self._name(mount.major_minor)
        if name is not None:
            return [name], None
        if mount.filesystem == "btrfs":
            return self._btrfs(mount)
        if mount.filesystem == "overlay":
            return self._overlay(mount, depth=depth)
        return [], _no_device(mount)

    def _name(self, major_minor: str) -> str | None:
        """Device name of a number, None when sysfs knows no such device."""
        link = self._roots.sys / "dev" / "block" / major_minor
        try:
            return link.readlink().name
        except OSError:
            return link.resolve().name if link.exists() else None

    def _directory(self, name: str) -> Path:
        """Sysfs folder of a disk or of a partition (which lies in its disk's folder)."""
        for folder in (self._roots.sys / "class" / "block", self._roots.sys / "block"):
            if (folder / name).exists():
                return (folder / name).resolve()
        for folder in (self._roots.sys / "block").glob(f"*/{name}"):
            return folder.resolve()
        return self._roots.sys / "block" / name

    def _btrfs(self, mount: Mount) -> tuple[list[str], str | None]:
        """All devices of the btrfs whose mount names one of them as its source."""
        source = Path(mount.source).name
        resolved = Path(os.path.realpath(mount.source)).name
        for folder in sorted((self._roots.sys / "fs" / "btrfs").glob("*/devices")):
            members = sorted(path.name for path in folder.iterdir())
            if source in members or resolved in members:
                return members, None
        return [], f"the devices of the btrfs on {mount.source} are not listed in sysfs"

    def _overlay(self, mount: Mount, *, depth: int) -> tuple[list[str], str | None]:
        """Devices under every layer: a read goes to the layer that holds the file."""
        layers = _layers(mount)
        tops: list[str] = []
        reasons: list[str] = []
        for layer in layers:
            try:
                below = find_mount(layer, roots=self._roots)
            except MeasureError as error:
                reasons.append(str(error))
                continue
            found, reason = self._tops(below, depth=depth + 1)
            tops.extend(name for name in found if name not in tops)
            if reason:
                reasons.append(reason)
        if tops:
            self._notes.append(
                f"{mount.path} is an overlay: the devices are those under its {len(layers)} layers"
            )
            return tops, None
        return [], "; ".join(dict.fromkeys(reasons)) or f"{mount.path} names no layer"

    def _descend(self, name: str, *, depth: int) -> None:
        """List what `name` is built on."""
        if depth > _MAX_DEPTH:
            return
        below = self._below_one(name)
        for lower in below:
            if lower in self._below:
                continue
            leaf = not self._below_one(lower)
            self._below[lower] = BlockDevice(
                name=lower, role=Role.LEAF if leaf else Role.MIDDLE, paths=self._paths(lower)
            )
            self._descend(lower, depth=depth + 1)

    def _below_one(self, name: str) -> list[str]:
        directory = self._directory(name)
        if (directory / "partition").exists():
            return [directory.parent.name]
        slaves = directory / "slaves"
        members = sorted(path.name for path in slaves.iterdir()) if slaves.is_dir() else []
        return members or self._backing(directory)

    def _backing(self, directory: Path) -> list[str]:
        """Devices under the file that a loop device reads."""
        try:
            file = (directory / "loop" / "backing_file").read_text().rstrip("\n")
        except OSError:
            return []
        try:
            mount = find_mount(Path(file), roots=self._roots)
        except MeasureError:
            self._notes.append(f"the file under {directory.name} cannot be found: {file}")
            return []
        direct = _text(directory / "loop" / "dio")
        if direct == "0":
            self._notes.append(
                f"{directory.name} reads its file through the page cache: the disk below it may "
                "rest while it delivers"
            )
        return self._tops(mount, depth=1)[0]

    def _paths(self, name: str) -> tuple[str, ...]:
        """Hidden path devices of an NVMe multipath head: nvme2c0n1 and nvme2c1n1 of nvme2n1."""
        controller, namespace = _nvme(name)
        if not controller:
            return ()
        block = self._roots.sys / "block"
        return tuple(sorted(path.name for path in block.glob(f"{controller}c*n{namespace}")))


def _nvme(name: str) -> tuple[str, str]:
    """Parts of an NVMe head's name: "nvme2n1" is ("nvme2", "1"); empty for other names."""
    head, _, namespace = name.rpartition("n")
    is_head = head.startswith("nvme") and head[4:].isdigit() and namespace.isdigit()
    return (head, namespace) if is_head else ("", "")


def _layers(mount: Mount) -> list[Path]:
    """Upper and lower folders of an overlay, from its options."""
    found: list[Path] = []
    for option in mount.options:
        key, _, value = option.partition("=")
        if key == "upperdir":
            found.insert(0, Path(value))
        elif key in ("lowerdir", "lowerdir+", "datadir+"):
            found.extend(Path(part) for part in value.split(":") if part)
    return found


def _no_device(mount: Mount) -> str:
    name = mount.filesystem
    if name in _MEMORY:
        return f"{mount.path} is {name}: it lives in memory and has no storage under it"
    if name in _NETWORK or name.startswith("fuse"):
        return (
            f"{name} has no block device under it, and ioprof does not read the client counters "
            "of this filesystem yet"
        )
    if name == "zfs":
        return "zfs hides its devices from the mount, and ioprof does not read pool counters yet"
    return (
        f"{name} on {mount.source or mount.path} names no block device (number {mount.major_minor})"
    )


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
