"""A block device made slow for chosen processes, by the cgroup-v1 blkio controller."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

BLKIO = Path("/sys/fs/cgroup/blkio")


def unavailable() -> str | None:
    """Why devices cannot be throttled here; None when they can."""
    if os.geteuid() != 0:
        return "needs root: cgroup-v1 blkio throttling"
    if not (BLKIO / "blkio.throttle.read_bps_device").exists():
        return "this kernel offers no cgroup-v1 blkio throttling"
    return None


def device_of(path: Path) -> str:
    """ "major:minor" of the device that holds `path`, as the controller wants it."""
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


@contextlib.contextmanager
def throttled_group(device: str, *, read_bytes_per_s: int) -> Iterator[Path]:
    """A cgroup whose processes read from `device` no faster; write a pid to its cgroup.procs."""
    group = BLKIO / f"ioprof-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "blkio.throttle.read_bps_device").write_text(f"{device} {read_bytes_per_s}")
        yield group
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (BLKIO / "cgroup.procs").write_text(pid)
        group.rmdir()


def inside(group: Path, command: list[str]) -> list[str]:
    """`command`, started inside the group."""
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group), *command]
