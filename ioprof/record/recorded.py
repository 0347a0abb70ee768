"""A command that was recorded as it is: what was asked for, how it ended, what it read."""

from __future__ import annotations

import msgspec

from ioprof.record.dataset import Mount
from ioprof.record.estimate import Estimate
from ioprof.record.header import Host
from ioprof.record.headline import Calibration
from ioprof.record.summary import Window

CELL = "command"
"""The folder under `cells/` that a recorded command's files are in."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`. `exit_status` and `ended_s` are None while the command runs, and stay so when
    ioprof itself was killed."""

    format_version: int
    ioprof_version: str
    created: str
    command: tuple[str, ...]
    data: str | None
    interval_s: float
    host: Host
    mount: Mount | None
    top_devices: tuple[str, ...]
    calibration: Calibration | None
    unavailable: dict[str, str] = {}
    started_s: float | None = None
    ended_s: float | None = None
    exit_status: int | None = None
    partial: str | None = None
    """"interrupted" or "terminated" when a signal to ioprof ended it early, "deadline" when its
    --duration was over."""


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """What the command's own step marks say, in the window after its warm-up."""

    ranks: int
    window: Window
    samples_per_s: Estimate | None
    """All ranks together."""
    step_s: Estimate | None
    wait_s: Estimate | None
    compute_s: Estimate | None
    au: float | None
    """Time not waiting for data ÷ step time. It takes the rest of the step for the accelerator's
    work: a run of `profile` measures that apart. None where the marks tell no wait."""
    consumed_bytes_per_s: float | None
    """Stored bytes of the samples, where the marks say how large they are."""


class RecordedTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What a recorded command read, first look to last. Missing is null, with a reason by name."""

    command: tuple[str, ...]
    exit_status: int | None
    partial: str | None
    seconds: float
    requested_bytes: float | None
    read_calls: float | None
    storage_read_bytes: float | None
    storage_read_source: str | None
    storage_reads: float | None
    read_request_bytes: float | None
    read_latency_s: float | None
    metadata_operations: float | None
    metadata_source: str | None
    cache_served: float | None
    cpu_busy: float | None
    marks: Marks | None = None
    """None where the command has no step marks."""
    why: str
    """One sentence on what was asked for and what storage delivered."""
    reasons: dict[str, str] = {}
