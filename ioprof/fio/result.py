"""fio's JSON, as fio really writes it: text around it, units that changed, keys that may lack.

In fio 2 `io_bytes` and `bw` are KiB and latencies microseconds (`clat`); since fio 3 there are
`io_bytes` in bytes beside `io_kbytes`, `bw_bytes`, and nanoseconds (`clat_ns`). The averages that
fio makes of its own samples (`bw_mean`) are 0 in short runs, so rates are made here, from bytes,
operations and run time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ioprof.errors import ToolError

_KIB = 1024
_INTERRUPTED = re.compile(r"terminating on signal \d+")
_NOT_A_NUMBER = re.compile(r'(?<=":)\s*-?(?:nan|inf)\b', re.IGNORECASE)

_Json = Mapping[str, Any]


class FioResult(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs of one run added up. Latencies are completion latencies in seconds.

    `read_bytes_per_s` and `reads_per_s` are None when the run time is 0. The mean latency is
    weighted by operations over the jobs; percentiles cannot be added up, so they are None unless
    fio itself reported all jobs as one group.
    """

    version: str
    read_bytes: int
    reads: int
    runtime_s: float
    read_bytes_per_s: float | None
    reads_per_s: float | None
    latency_mean_s: float | None
    latency_p50_s: float | None
    latency_p99_s: float | None
    cpu_s: float
    """User + system time of all jobs."""
    error: int
    """First errno that a job ended with; 0 when none did."""
    interrupted: bool
    messages: tuple[str, ...]
    """What fio wrote around its JSON."""
    devices: tuple[str, ...]
    """Those that fio itself watched; none for filesystems without a block device."""
    options: tuple[dict[str, str], ...]
    """Effective options of each job: global ones, overridden by its own."""


def parse(text: str) -> FioResult:
    """Read what fio wrote; ToolError, with its words, when there is no result in it."""
    document, messages = _document(text)
    jobs: list[_Json] = document.get("jobs") or []
    if not jobs:
        raise ToolError(f"fio reported no job. It said: {_words(messages)}")
    reads = [_Read(job) for job in jobs]
    read_bytes = sum(read.bytes for read in reads)
    operations = sum(read.operations for read in reads)
    runtime_s = max(read.runtime_s for read in reads)
    shared: dict[str, str] = document.get("global options") or {}
    return FioResult(
        version=str(document.get("fio version", "")),
        read_bytes=read_bytes,
        reads=operations,
        runtime_s=runtime_s,
        read_bytes_per_s=read_bytes / runtime_s if runtime_s > 0 else None,
        reads_per_s=operations / runtime_s if runtime_s > 0 else None,
        latency_mean_s=_weighted_mean(reads),
        latency_p50_s=reads[0].percentile_s(50) if len(reads) == 1 else None,
        latency_p99_s=reads[0].percentile_s(99) if len(reads) == 1 else None,
        cpu_s=sum(read.cpu_s for read in reads),
        error=next((int(job["error"]) for job in jobs if job.get("error")), 0),
        interrupted=any(_INTERRUPTED.search(line) for line in messages),
        messages=messages,
        devices=tuple(str(disk["name"]) for disk in document.get("disk_util") or ()),
        options=tuple({**shared, **(job.get("job options") or {})} for job in jobs),
    )


class _Read:
    """The read side of one job object."""

    def __init__(self, job: _Json) -> None:
        read: _Json = job.get("read") or {}
        in_bytes = "io_kbytes" in read or "bw_bytes" in read
        self.bytes = int(read.get("io_bytes") or 0) * (1 if in_bytes else _KIB)
        self.operations = int(read.get("total_ios") or 0)
        self.runtime_s = float(read.get("runtime") or 0) / 1000
        nanoseconds: _Json | None = read.get("clat_ns")
        self._latency: _Json = nanoseconds or read.get("clat") or {}
        self._latency_unit_s = 1e-6 if nanoseconds is None else 1e-9
        # fio gives per cent of the run time summed over the threads of a group; fio 2 does not
        # say that sum.
        thread_s = float(job.get("job_runtime") or read.get("runtime") or 0) / 1000
        percent = float(job.get("usr_cpu") or 0) + float(job.get("sys_cpu") or 0)
        self.cpu_s = percent / 100 * thread_s

    @property
    def latency_mean_s(self) -> float | None:
        mean = self._latency.get("mean")
        return None if mean is None else float(mean) * self._latency_unit_s

    def percentile_s(self, percent: int) -> float | None:
        """None when fio kept no percentiles: no operation, or switched off."""
        value = (self._latency.get("percentile") or {}).get(f"{percent}.000000")
        return None if value is None or not self.operations else float(value) * self._latency_unit_s


def _weighted_mean(reads: list[_Read]) -> float | None:
    known = [
        (read.latency_mean_s, read.operations)
        for read in reads
        if read.latency_mean_s is not None and read.operations
    ]
    total = sum(operations for _, operations in known)
    return sum(mean * operations for mean, operations in known) / total if total else None


def _document(text: str) -> tuple[_Json, tuple[str, ...]]:
    lines = text.splitlines(keepends=True)
    start = next((n for n, line in enumerate(lines) if line.strip() == "{"), None)
    if start is None:
        raise ToolError(f"fio wrote no result. It said: {_words(_messages(text))}")
    body = _NOT_A_NUMBER.sub(" null", "".join(lines[start:]))
    try:
        document, end = json.JSONDecoder().raw_decode(body)
    except json.JSONDecodeError as error:
        raise ToolError(
            f"fio's result ends in the middle ({error.msg}, line {start + error.lineno}): it was "
            "killed before it was done. Run it again."
        ) from None
    return document, (*_messages("".join(lines[:start])), *_messages(body[end:]))


def _messages(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _words(messages: tuple[str, ...]) -> str:
    return "; ".join(messages[-5:]) if messages else "nothing"
