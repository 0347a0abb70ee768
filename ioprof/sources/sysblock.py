"""Block devices as sysfs shows them: name by number, and what each is built on.

A device is found by its number, never by the name in a mount table, which may be `/dev/root`,
`/dev/mapper/...` or a name that another namespace gave.
"""

from __future__ import annotations

import re
from pathlib import Path

from ioprof.sources.source import Roots

_HEAD = re.compile(r"nvme(\d+)n(\d+)")


class SysBlock:
    """Looks at /sys/dev/block, /sys/class/block and /sys/block; keeps nothing open."""

    def __init__(self, roots: Roots) -> None:
        self._sys = roots.sys
        self._diskstats = roots.proc / "diskstats"

    def name(self, major_minor: str) -> str | None:
        """Kernel name of a number; None when neither sysfs nor diskstats knows such a device."""
        link = self._sys / "dev" / "block" / major_minor
        try:
            return link.readlink().name
        except OSError:
            # Number 0:0 is what hidden paths share: it names none of them.
            return None if major_minor == "0:0" else self._numbered().get(major_minor)

    def folder(self, name: str) -> Path:
        """Sysfs folder of a disk, or of a partition (which lies in its disk's folder)."""
        for parent in (self._sys / "class" / "block", self._sys / "block"):
            if (parent / name).exists():
                return (parent / name).resolve()
        for folder in (self._sys / "block").glob(f"*/{name}"):
            return folder.resolve()
        return self._sys / "block" / name

    def disk(self, name: str) -> str:
        """The whole disk that a partition lies on; a device that is no partition is its own."""
        folder = self.folder(name)
        return folder.parent.name if (folder / "partition").exists() else name

    def members(self, name: str) -> list[str]:
        """What a device is built on: a partition's disk, the slaves of dm and md; else nothing."""
        disk = self.disk(name)
        return [disk] if disk != name else self.listed(self.folder(name) / "slaves")

    def paths(self, name: str) -> tuple[str, ...]:
        """Hidden paths of the multipath NVMe head that a device is or lies on: nvme2c0n1 and
        nvme2c1n1 of nvme2n1 and of nvme2n1p1. Sysfs may hide them where diskstats does not."""
        head = _HEAD.fullmatch(self.disk(name))
        if head is None:
            return ()
        path = re.compile(rf"nvme{head[1]}c\d+n{head[2]}")
        known = {*self.listed(self._sys / "block"), *self._numbered().values()}
        return tuple(sorted(name for name in known if path.fullmatch(name)))

    def attribute(self, name: str, attribute: str) -> str | None:
        """Text of one attribute of a device, for instance "loop/dio"; None where it has none."""
        try:
            return (self.folder(name) / attribute).read_text(errors="surrogateescape").rstrip("\n")
        except OSError:
            return None

    def counts(self, name: str) -> bool:
        """Whether the device's queue keeps statistics; a partition has its disk's queue."""
        return self.attribute(self.disk(name), "queue/iostats") != "0"

    def mapped(self, mapper_name: str) -> str | None:
        """The dm device of a name under /dev/mapper; None when there is none."""
        for name in self.listed(self._sys / "block"):
            if self.attribute(name, "dm/name") == mapper_name:
                return name
        return None

    def listed(self, folder: Path) -> list[str]:
        """Names in a folder of sysfs, sorted; none where it does not exist."""
        try:
            return sorted(path.name for path in folder.iterdir())
        except OSError:
            return []

    def _numbered(self) -> dict[str, str]:
        """Names by number as diskstats has them: where sysfs is not mounted, all there is."""
        try:
            lines = self._diskstats.read_text(errors="replace").splitlines()
        except OSError:
            return {}
        rows = [line.split(None, 3) for line in lines]
        # Several hidden paths share 0:0; the name keeps their keys apart.
        return {
            f"{row[0]}:{row[1]}" if row[:2] != ["0", "0"] else row[2]: row[2]
            for row in rows
            if len(row) == 4
        }
