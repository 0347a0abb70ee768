"""What of this host we may use: CPUs by affinity and cgroup quota, memory by cgroup limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ioprof.sources.source import Roots

_UNLIMITED_BYTES = 1 << 60
"""cgroup v1 writes "no limit" as the largest page-aligned number (about 2⁶³)."""


def usable_cpus(*, roots: Roots = Roots()) -> float:
    """CPUs that this process may keep busy: its affinity, cut by any cgroup quota (v1 or v2).

    A fraction when the quota is one (1.5 CPUs).
    """
    allowed = float(len(os.sched_getaffinity(0)))
    return min([allowed, *_quotas(roots)])


def memory_limit_bytes(*, roots: Roots = Roots()) -> int | None:
    """The tightest cgroup memory limit above this process; None when there is none.

    Page cache counts against it, so a working set larger than this is never warm.
    """
    files = [
        *((folder / "memory.max") for folder in _groups("", roots)),
        *((folder / "memory.limit_in_bytes") for folder in _groups("memory", roots)),
    ]
    limits = [int(word) for file in files if (word := _text(file)) is not None and word.isdigit()]
    return min((limit for limit in limits if limit < _UNLIMITED_BYTES), default=None)


def _quotas(roots: Roots) -> Iterator[float]:
    for folder in _groups("", roots):
        # cgroup v2: "max 100000", or "150000 100000" for one and a half CPUs.
        words = (_text(folder / "cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
            yield int(words[0]) / int(words[1])
    for folder in _groups("cpu", roots):
        # cgroup v1: -1 is no quota.
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        if quota and period and quota.isdigit() and period.isdigit() and int(period):
            yield int(quota) / int(period)


def _groups(controller: str, roots: Roots) -> Iterator[Path]:
    """Folders of this process's group and its ancestors; `controller` "" is cgroup v2.

    Inside a container the path may name a place that only the host sees; then the mount's own
    top, which is the container's group, is what is left.
    """
    path = _group_path(_text(roots.proc / "self" / "cgroup") or "", controller)
    if path is None:
        return
    for top in _tops(controller, roots):
        folder = top / path.lstrip("/")
        while folder != top and folder.is_relative_to(top):
            yield folder
            folder = folder.parent
        yield top


def _tops(controller: str, roots: Roots) -> tuple[Path, ...]:
    base = roots.sys / "fs" / "cgroup"
    return (base, base / "unified") if not controller else (base / controller,)


def _group_path(table: str, controller: str) -> str | None:
    for line in table.splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3 and controller in fields[1].split(","):
            return fields[2]
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
