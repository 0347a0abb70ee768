"""A /proc and a /sys with chosen block devices and mounts, in a folder."""

from __future__ import annotations

import os
from pathlib import Path

from ioprof.record.dataset import Mount
from ioprof.sources.source import Roots

DATA = Path(__file__).parents[2] / "data" / "block"
_DESCRIPTORS = 256


class FakeSys:
    """Laid out as the kernel does: folders under devices/, links to them everywhere else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.roots = Roots(proc=folder / "proc", sys=folder / "sys")
        (self.roots.proc / "self" / "fdinfo").mkdir(parents=True)
        for name in ("block", "class/block", "dev/block", "fs/btrfs"):
            (self.roots.sys / name).mkdir(parents=True)
        self.diskstats("")
        self.mountinfo("")

    def disk(
        self, name: str, number: str, *, slaves: tuple[str, ...] = (), **attributes: str
    ) -> None:
        """A whole device; `loop__dio="0"` makes the attribute loop/dio."""
        folder = self.roots.sys / "devices" / "virtual" / "block" / name
        (folder / "slaves").mkdir(parents=True)
        self._linked(folder, number, attributes)
        (self.roots.sys / "block" / name).symlink_to(folder)
        for slave in slaves:
            (folder / "slaves" / slave).symlink_to(self.roots.sys / "class" / "block" / slave)

    def partition(self, name: str, number: str, *, disk: str) -> None:
        """A partition, inside its disk's folder."""
        folder = self.roots.sys / "devices" / "virtual" / "block" / disk / name
        folder.mkdir()
        self._linked(folder, number, {"partition": "1"})

    def btrfs(self, uuid: str, *devices: str) -> None:
        """A mounted btrfs over the devices."""
        for name in devices:
            link = self.roots.sys / "fs" / "btrfs" / uuid / "devices" / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self.roots.sys / "class" / "block" / name)

    def diskstats(self, text: str) -> None:
        (self.roots.proc / "diskstats").write_text(text)

    def mountinfo(self, text: str) -> None:
        (self.roots.proc / "self" / "mountinfo").write_text(text)

    def answer_mount_id(self, mount_id: int) -> None:
        """Every descriptor is said to lie in this mount."""
        for descriptor in range(_DESCRIPTORS):
            file = self.roots.proc / "self" / "fdinfo" / str(descriptor)
            file.write_text(f"pos:\t0\nflags:\t010000000\nmnt_id:\t{mount_id}\nino:\t2\n")

    def _linked(self, folder: Path, number: str, attributes: dict[str, str]) -> None:
        for name in ("class/block/" + folder.name, "dev/block/" + number):
            link = self.roots.sys / name
            link.symlink_to(os.path.relpath(folder, link.parent))
        for name, value in attributes.items():
            file = folder / name.replace("__", "/")
            file.parent.mkdir(exist_ok=True)
            file.write_text(value + "\n")


def mount_of(
    path: Path | str,
    *,
    filesystem: str = "ext4",
    source: str = "/dev/root",
    number: str = "0:40",
    options: tuple[str, ...] = ("rw",),
    root: str = "/",
) -> Mount:
    """A mount as mountinfo would give it."""
    return Mount(
        mount_id=40,
        path=str(path),
        filesystem=filesystem,
        source=source,
        root=root,
        options=options,
        major_minor=number,
    )
