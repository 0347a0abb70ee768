"""The dataset as all loaders see it."""

from __future__ import annotations

import msgspec


class SizeStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Stored bytes per sample over all samples kept."""

    mean: float
    std: float
    p50: float
    p95: float
    p99: float
    max: float


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A file left out of the list, and why, in words."""

    file: str
    why: str


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """The mount that holds a path, from mountinfo by mount id (never by `st_dev` alone)."""

    mount_id: int
    path: str
    """Mount point."""
    filesystem: str
    source: str
    root: str
    """The folder of the filesystem that is mounted; not "/" for a bind mount or a subvolume."""
    options: tuple[str, ...]
    """Per-mount options, then those of the superblock."""
    major_minor: str


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """What `dataset survey` found. Sizes in bytes; `survey_s` is how long the scan took."""

    path: str
    layout: str
    samples: int
    classes: int
    stored_bytes: int
    stored_bytes_per_sample: SizeStatistics
    quarantined: tuple[Quarantined, ...] = ()
    quarantined_count: int = 0
    """All of them; `quarantined` may hold only the first thousand."""
    notes: tuple[str, ...] = ()
    """Handled and worth saying: hidden folders skipped, links followed, misnamed files kept."""
    survey_s: float = 0.0
    files_seen: int = 0
