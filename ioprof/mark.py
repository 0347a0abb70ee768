"""Step marks: what a training script tells the profiler. Standard library only.

Does nothing unless the environment variable `IOPROF_EVENTS` names a folder, so it may stay in a
script for ever. Three lines are enough:

    from ioprof import mark
    for images, labels in mark.batches(loader):
        ...                                     # forward, backward, update
        mark.step(samples=len(labels))

Each rank writes `rank-<n>.jsonl` in that folder: a header, then steps and events in time order,
one JSON object a line, flushed line by line so that a killed run stays readable. Times are
seconds of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import json
import math
import os
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TypeVar

FORMAT_VERSION = 1
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "HOROVOD_RANK", "PMI_RANK", "SLURM_PROCID")
_LOCAL = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "HOROVOD_LOCAL_RANK", "SLURM_LOCALID")
# A batch script has SLURM_NTASKS and rank 0 as well, and is no rank: only srun counts a step's.
_WORLD = (
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "HOROVOD_SIZE",
    "PMI_SIZE",
    "SLURM_STEP_NUM_TASKS",
)

_Item = TypeVar("_Item")
Scalar = str | int | float | bool | None


class _Marker:
    """The open file of this rank, and where the current step began."""

    def __init__(self) -> None:
        self.file: IO[str] | None = None
        self.opened_by_pid = 0
        self.step_start_s: float | None = None
        self.step_index = 0
        self.epoch = 0
        self.wait_s: float | None = None

    def write(self, row: dict[str, object]) -> None:
        file = self._open()
        if file is not None:
            file.write(_json(row) + "\n")
            file.flush()

    def _open(self) -> IO[str] | None:
        folder = os.environ.get("IOPROF_EVENTS")
        if not folder:
            return None
        # A forked loader worker inherits this object: it must not write into its parent's file.
        if self.file is not None:
            return self.file if self.opened_by_pid == os.getpid() else None
        number = rank()
        path = Path(folder) / f"rank-{number}.jsonl"
        self.file = path.open("a", encoding="utf-8")
        self.opened_by_pid = os.getpid()
        self.write(
            {
                "type": "rank",
                "format_version": FORMAT_VERSION,
                "rank": number,
                "local_rank": _first_integer(_LOCAL),
                "world_size": world_size(),
                "hostname": socket.gethostname(),
                "boot_id": _boot_id(),
                "pid": os.getpid(),
                "monotonic_s": time.monotonic(),
                "wall_s": time.time(),
            }
        )
        return self.file


_marker = _Marker()


def _json(row: dict[str, object]) -> str:
    try:
        return json.dumps(row, allow_nan=False, separators=(",", ":"), default=_plain)
    except ValueError:
        # JSON has no NaN; a diverging loss must not end the training that is being watched.
        return json.dumps(_finite(row), separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    """The number inside a NumPy or torch scalar; None for anything else that JSON lacks."""
    item = getattr(value, "item", None)
    return _finite(item()) if callable(item) else None


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rank() -> int:
    """This process's rank, by the environment of its engine; 0 without one."""
    return _first_integer(_RANK)


def world_size() -> int:
    """How many ranks its engine started; 1 without one."""
    return max(1, _first_integer(_WORLD))


def enabled() -> bool:
    """Whether a profiler is listening (`IOPROF_EVENTS` is set)."""
    return bool(os.environ.get("IOPROF_EVENTS"))


def event(name: str, **fields: Scalar) -> None:
    """Record that `name` happened now, with plain facts about it."""
    if enabled():
        _marker.write({"type": "event", "t_s": time.monotonic(), "name": name, "fields": fields})


def epoch_start(epoch: int) -> None:
    """Begin epoch number `epoch`: reading may start after this line; the step clock starts here."""
    event("epoch_start", epoch=epoch)
    _marker.epoch = epoch
    _marker.step_start_s = time.monotonic()


def epoch_end(epoch: int) -> None:
    """End epoch number `epoch`: until the next start time is a pause, outside any window."""
    event("epoch_end", epoch=epoch)
    _marker.step_start_s = None


def step(
    *,
    samples: int,
    stored_bytes: int | None = None,
    wait_s: float | None = None,
    h2d_s: float | None = None,
    phase: str = "steady",
) -> None:
    """Record one finished step of this rank.

    The step began where the last one ended. `samples` is what this rank consumed, `stored_bytes`
    their size on the filesystem (None when unknown), `wait_s` the time blocked on the loader
    (taken from `batches` when left out), `h2d_s` the host-to-device copy, both in seconds.
    `phase` is "steady", or "drain" for batches taken after the clock was stopped.
    """
    if not enabled():
        return
    end_s = time.monotonic()
    start_s = _marker.step_start_s if _marker.step_start_s is not None else end_s
    waited_s = wait_s if wait_s is not None else _marker.wait_s
    _marker.write(
        {
            "type": "step",
            "index": _marker.step_index,
            "epoch": _marker.epoch,
            "start_s": start_s,
            "end_s": end_s,
            "samples": samples,
            "stored_bytes": stored_bytes,
            "wait_s": waited_s,
            "h2d_s": h2d_s,
            "phase": phase,
        }
    )
    _marker.step_index += 1
    _marker.step_start_s = end_s
    _marker.wait_s = None


def batches(loader: Iterable[_Item]) -> Iterator[_Item]:
    """Iterate over `loader`, timing how long each batch is waited for, as one epoch."""
    epoch_start(_marker.epoch)
    source = iter(loader)
    try:
        while True:
            began_s = time.monotonic()
            try:
                item = next(source)
            except StopIteration:
                break
            _marker.wait_s = time.monotonic() - began_s
            yield item
    finally:
        # Also when the script leaves its loop early.
        finished = _marker.epoch
        epoch_end(finished)
        _marker.epoch = finished + 1


def _first_integer(names: tuple[str, ...]) -> int:
    for name in names:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return 0


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
