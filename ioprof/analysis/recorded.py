"""What a recorded command read, from its node's counters."""

from __future__ import annotations

from ioprof.analysis.accounting import account
from ioprof.analysis.counters import CounterLog
from ioprof.analysis.marks import marks
from ioprof.analysis.requests import metadata_operations
from ioprof.analysis.storage import calibrated, uncalibrated
from ioprof.errors import RunFileError
from ioprof.record.recorded import CELL, Recorded, RecordedTotals
from ioprof.record.store import RunDirectory, read_json, read_node, read_rank


def totals(run: RunDirectory) -> RecordedTotals:
    """Account for the whole command; RunFileError when it left no counters."""
    recorded = read_json(run.recorded, Recorded)
    files = run.node_files(CELL)
    if not files:
        raise RunFileError(
            f"{run.root} holds no counters: the command was not started. Run it again."
        )
    node = read_node(files[0])
    if node.first_s is None or node.last_s is None:
        raise RunFileError(f"{files[0]} ends before its first tick. Run it again.")
    log = CounterLog(node)
    start_s = recorded.started_s or node.first_s
    end_s = recorded.ended_s or node.last_s
    tried = recorded.calibration
    storage = calibrated(tried, access="read") if tried else uncalibrated(recorded.top_devices)
    found = account(node, start_s=start_s, end_s=end_s, storage=storage, log=log)
    calls, busy, cpus = (
        log.growth(source, instance, name, start_s=start_s, end_s=end_s, whole=True)
        for source, instance, name in (
            ("process.io", "tree", "read_calls_total"),
            ("cpu", "cpus", "busy_seconds_total"),
            ("cpu", "cpus", "total_seconds_total"),
        )
    )
    metadata, metadata_source = metadata_operations(log, start_s=start_s, end_s=end_s, whole=True)
    reasons = dict(found.reasons)
    if metadata is None:
        reasons["metadata_operations"] = "no counter of this mount tells its metadata operations"
    made = marks(tuple(read_rank(path) for path in run.rank_files(CELL)))
    if made is None:
        reasons["marks"] = "the command marked no steps; docs/marks.md has the three lines"
    return RecordedTotals(
        command=recorded.command,
        exit_status=recorded.exit_status,
        partial=recorded.partial or (None if recorded.ended_s else "ioprof was killed"),
        seconds=end_s - start_s,
        requested_bytes=found.requested_bytes,
        read_calls=calls.value,
        storage_read_bytes=found.storage_read_bytes,
        storage_read_source=found.storage_source,
        storage_reads=found.storage_reads,
        read_request_bytes=_per(found.storage_read_bytes, found.storage_reads),
        read_latency_s=_per(found.storage_read_time_s, found.storage_reads),
        metadata_operations=metadata,
        metadata_source=metadata_source,
        cache_served=found.cache_served,
        cpu_busy=_per(busy.value, cpus.value),
        marks=made,
        why=found.why,
        reasons=reasons,
    )


def _per(value: float | None, by: float | None) -> float | None:
    return None if value is None or not by else value / by
