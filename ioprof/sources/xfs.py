"""xfs: what was read and written through its system calls, `/sys/fs/xfs/<device>/stats/stats`."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.procfile import read_once, why
from ioprof.sources.source import Fact, Found, Roots, Target
from ioprof.sources.sysblock import SysBlock

_FIELDS: dict[str, tuple[bytes, int]] = {
    "requested_bytes_total": (b"xpc", 2),
    "read_calls_total": (b"rw", 1),
    "write_bytes_total": (b"xpc", 1),
    "write_calls_total": (b"rw", 0),
    "lookup_operations_total": (b"dir", 0),
    "readdir_operations_total": (b"dir", 3),
}
_GONE = (errno.ENOENT, errno.ENODEV)
_FILE = "/sys/fs/xfs/<device>/stats/stats"
_CHECK = "cat /sys/fs/xfs/$(lsblk -no KNAME $(findmnt -no SOURCE -T DIR))/stats/stats"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="xfs",
        layer=Layer.APP,
        scope=Scope.MOUNT,
        counters=("requested_bytes_total", "write_bytes_total"),
        file=_FILE,
        field="line xpc: numbers 3 (read) and 2 (written); the first is not I/O",
        unit="bytes, 64 bits",
        since="Linux 4.4 per filesystem; /proc/fs/xfs/stat before, all filesystems in one",
        caveat="through read() and write(), from the page cache or not; never through mmap",
        check=_CHECK,
    ),
    Fact(
        source="xfs",
        layer=Layer.APP,
        scope=Scope.MOUNT,
        counters=("read_calls_total", "write_calls_total"),
        file=_FILE,
        field="line rw: numbers 2 (reads) and 1 (writes)",
        unit="calls, 32 bits",
        since="Linux 4.4 per filesystem",
        caveat="writes stand first in the file; wraps at 4,294,967,296",
        check=_CHECK,
    ),
    Fact(
        source="xfs",
        layer=Layer.APP,
        scope=Scope.MOUNT,
        counters=(
            "lookup_operations_total", "readdir_operations_total", "metadata_operations_total",
        ),
        file=_FILE,
        field="line dir: numbers 1 (lookups) and 4 (getdents); metadata is both added up",
        unit="operations, 32 bits",
        since="Linux 4.4 per filesystem",
        caveat="what the dentry cache answers is not in it, nor are opens and stats",
        check=_CHECK,
    ),
)  # fmt: skip


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source of the target's filesystem, or why it cannot be read; nothing when not xfs."""
    mount = target.mount
    if mount is None or mount.filesystem != "xfs":
        return []
    device = SysBlock(roots).name(mount.major_minor)
    if device is None:
        reason = f"no device has the number {mount.major_minor} of {mount.path}"
        return [Unavailable(source="xfs", reason=reason)]
    path = roots.sys / "fs" / "xfs" / device / "stats" / "stats"
    try:
        read_once(str(path))
    except OSError as error:
        reason = f"{path} cannot be read: {why(error)}"
        return [Unavailable(source="xfs", reason=reason, remedy="it is there from Linux 4.4 on")]
    return [XfsSource(path, mount_path=mount.path)]


def parse(text: bytes) -> dict[str, Number | None]:
    """The counters by our names; None for one whose line or number is not there."""
    rows: dict[bytes, list[bytes]] = {}
    for line in text.splitlines():
        # The whole word is the key: "gc xpc" of newer kernels is no "xpc".
        key, *numbers = line.split() or [b""]
        rows.setdefault(key, numbers)
    counters: dict[str, Number | None] = {
        name: _number(rows.get(key, []), at) for name, (key, at) in _FIELDS.items()
    }
    lookups, listings = counters["lookup_operations_total"], counters["readdir_operations_total"]
    counters["metadata_operations_total"] = (
        None if lookups is None or listings is None else lookups + listings
    )
    return counters


def _number(numbers: list[bytes], at: int) -> int | None:
    return int(numbers[at]) if at < len(numbers) and numbers[at].isdigit() else None


class XfsSource:
    """Reading "xfs" of one filesystem."""

    name = "xfs"
    every_ticks = 1

    def __init__(self, path: Path, *, mount_path: str) -> None:
        self._path = str(path)
        self._mount_path = mount_path

    def read(self) -> Iterable[Reading]:
        """One look; none while the filesystem is not mounted."""
        try:
            # Opened anew: a file kept open would stay with the mount of its time for ever.
            text = read_once(self._path)
        except OSError as error:
            if error.errno in _GONE:
                return
            raise
        yield Reading(
            source="xfs",
            instance=self._mount_path,
            layer=Layer.APP,
            scope=Scope.MOUNT,
            counters=parse(text),
        )

    def close(self) -> None:
        """Nothing is kept open."""
