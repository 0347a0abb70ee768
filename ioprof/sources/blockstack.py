"""The block devices under a mount, by their place in the stack.

What the mount names is the top: its bytes are the headline. What it is built on (a partition's
disk, members of md and dm, the disk below a loop device's file) is shown and never added.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ioprof.errors import MeasureError
from ioprof.record.dataset import Mount
from ioprof.record.reading import Role
from ioprof.sources.mount import find_mount
from ioprof.sources.overlay import layers_of
from ioprof.sources.source import BlockDevice, BlockStack, Roots
from ioprof.sources.sysblock import SysBlock

_MAX_DEPTH = 16
_MEMORY = {"tmpfs", "ramfs", "hugetlbfs", "devtmpfs", "rootfs"}
_NETWORK = {
    "nfs", "nfs4", "lustre", "gpfs", "wekafs", "beegfs", "ceph", "cifs", "smb3", "9p", "virtiofs",
    "afs", "orangefs", "fuse",
}  # fmt: skip


def find_stack(mount: Mount, *, roots: Roots = Roots(), path: Path | None = None) -> BlockStack:
    """The stack under `mount`; empty with the reason where the filesystem has no block device.

    With `path`, a place below the mount, an overlay counts only the layers that hold this path.
    """
    return _Search(roots).stack(mount, path=path)


class _Search:
    """One walk down: remembers what it has passed, so that no device is listed twice."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._block = SysBlock(roots)
        self._lower: dict[str, list[str]] = {}
        """What each device passed is built on."""
        self._notes: dict[str, None] = {}

    def stack(self, mount: Mount, *, path: Path | None) -> BlockStack:
        found, reason = self._tops(mount, path=path, depth=0)
        for name in found:
            self._descend(name, depth=0)
        tops = [name for name in found if not self._stands_on(name, others=found)]
        below = [name for name in self._lower if name not in tops]
        devices = [self._device(name, Role.TOP) for name in tops]
        devices += [
            self._device(name, Role.MIDDLE if self._lower[name] else Role.LEAF) for name in below
        ]
        return BlockStack(devices=tuple(devices), reason=reason, notes=tuple(self._notes))

    def _device(self, name: str, role: Role) -> BlockDevice:
        return BlockDevice(name=name, role=role, paths=self._block.paths(name))

    def _note(self, text: str) -> None:
        self._notes[text] = None

    def _stands_on(self, name: str, *, others: list[str]) -> bool:
        """Whether one of the other tops carries `name`: adding both would count bytes twice."""
        waiting = list(self._lower[name])
        passed: set[str] = set()
        while waiting:
            lower = waiting.pop()
            if lower in others:
                self._note(f"{name} stands on {lower}: only {lower} is in the headline")
                return True
            if lower not in passed:
                passed.add(lower)
                waiting += self._lower.get(lower, [])
        return False

    def _tops(
        self, mount: Mount, *, depth: int, path: Path | None = None
    ) -> tuple[list[str], str | None]:
        """Names of the devices that the mount itself is on, or why there are none."""
        if depth > _MAX_DEPTH:
            return [], f"{mount.path} is stacked more than {_MAX_DEPTH} filesystems deep"
        if mount.filesystem == "overlay":
            return self._overlay(mount, depth=depth, path=path)
        if mount.filesystem == "btrfs":
            return self._btrfs(mount)
        if _over_network(mount.filesystem):
            # Before the number is looked up: Lustre takes it from a hash, so it may be any disk's.
            return [], _no_device(mount)
        name = self._block.name(mount.major_minor)
        return ([name], None) if name is not None else ([], _no_device(mount))

    def _btrfs(self, mount: Mount) -> tuple[list[str], str | None]:
        """All devices of the btrfs whose mount names one of them as its source."""
        folder = self._roots.sys / "fs" / "btrfs"
        names = {self._source_device(mount.source), Path(mount.source).name}
        every = [self._block.listed(each / "devices") for each in sorted(folder.glob("*"))]
        every = [members for members in every if members]
        for members in every:
            if names.intersection(members):
                return members, None
        if len(every) == 1:
            # The source may be /dev/root: the only btrfs of this host is the one.
            return every[0], None
        return [], f"the devices of the btrfs on {mount.source} are not listed in sysfs"

    def _source_device(self, source: str) -> str | None:
        """Kernel name of a device file, by its number, or by the mapper's name where the file is
        in another namespace."""
        try:
            found = Path(source).stat()
        except (OSError, ValueError):
            return self._block.mapped(Path(source).name)
        if not stat.S_ISBLK(found.st_mode):
            return None
        return self._block.name(f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}")

    def _overlay(
        self, mount: Mount, *, depth: int, path: Path | None
    ) -> tuple[list[str], str | None]:
        """Devices under the layers: a read goes to the layer that holds the file."""
        layers = layers_of(mount, path=path)
        tops: list[str] = []
        reasons: list[str] = []
        for layer in layers:
            try:
                below = find_mount(layer, roots=self._roots)
            except MeasureError:
                reasons.append(f"the layer {layer} of the overlay is not visible from here")
                continue
            found, reason = self._tops(below, depth=depth + 1, path=layer)
            tops.extend(name for name in found if name not in tops)
            if reason:
                reasons.append(f"the layer {layer} of the overlay: {reason}")
        if not tops:
            return [], "; ".join(dict.fromkeys(reasons)) or f"{mount.path} names no layer"
        for text in (f"{mount.path} is an overlay of {len(layers)} layers", *reasons):
            self._note(text)
        return tops, None

    def _descend(self, name: str, *, depth: int) -> None:
        """Remember what `name` is built on, down to the end."""
        if name in self._lower or depth > _MAX_DEPTH:
            return
        self._lower[name] = self._block.members(name) or self._backing(name)
        for lower in self._lower[name]:
            self._descend(lower, depth=depth + 1)

    def _backing(self, name: str) -> list[str]:
        """Devices under the file that a loop device reads."""
        file = self._block.attribute(name, "loop/backing_file")
        if file is None:
            return []
        if self._block.attribute(name, "loop/dio") == "0":
            self._note(
                f"{name} reads its file through the page cache: the disk below it may rest while "
                "it delivers, and evicting the dataset leaves that file cached"
            )
        try:
            mount = find_mount(Path(file), roots=self._roots)
        except MeasureError:
            self._note(f"the file under {name} cannot be found: {file}")
            return []
        found, reason = self._tops(mount, depth=1, path=Path(file))
        if reason:
            self._note(f"the file under {name}: {reason}")
        return found


def _over_network(filesystem: str) -> bool:
    """fuseblk is not: its daemon reads a block device, and the mount has that device's number."""
    return filesystem in _NETWORK or filesystem.startswith("fuse.")


def _no_device(mount: Mount) -> str:
    name = mount.filesystem
    if name in _MEMORY:
        return f"{mount.path} is {name}: it lives in memory and has no storage under it"
    if _over_network(name):
        hidden = "; drives that it takes over from user space no kernel sees" * (name == "wekafs")
        return f"{name} has no block device under it: its client's own counters tell{hidden}"
    if name == "zfs":
        return "zfs hides its devices from the mount"
    return (
        f"{name} on {mount.source or mount.path} names no block device (number {mount.major_minor})"
    )
