"""What a recorded command read, in a few lines."""

from __future__ import annotations

import shlex

from ioprof.record.recorded import RecordedTotals
from ioprof.report.answer import bare, count
from ioprof.report.layout import paragraph
from ioprof.units import (
    format_bandwidth,
    format_bytes,
    format_percent,
    format_rate,
    format_seconds,
)


def render(found: RecordedTotals) -> str:
    """The lines that `ioprof run` ends with, no line over 79 characters."""
    status = "still running" if found.exit_status is None else f"exit status {found.exit_status}"
    partial = f", partial: {found.partial}" if found.partial else ""
    lines = paragraph(
        f"{shlex.join(found.command)}: {format_seconds(found.seconds)}, {status}{partial}",
        first="command   ",
    )
    lines += paragraph(_requested(found), first="requested ")
    lines += paragraph(_storage(found), first="storage   ")
    if found.metadata_operations is not None:
        rate = format_rate(found.metadata_operations / found.seconds) if found.seconds else "–"
        told = f"{format_rate(found.metadata_operations)} operations, {rate}/s"
        lines += paragraph(f"{told}, by {found.metadata_source}", first="metadata  ")
    lines += paragraph(_steps(found), first="steps     ")
    lines += paragraph(
        f"{found.why}; CPUs {format_percent(found.cpu_busy)} busy", first="so        "
    )
    return "\n".join(lines)


def _steps(found: RecordedTotals) -> str:
    made = found.marks
    if made is None:
        return f"unknown: {bare(found.reasons.get('marks', 'not marked'))}"
    parts = [f"{made.window.steps:,} of {count(made.ranks, 'rank')}"]
    for name, value, put in (
        ("", made.samples_per_s, lambda v: f"{format_rate(v)} samples/s"),
        ("step ", made.step_s, format_seconds),
        ("wait ", made.wait_s, format_seconds),
    ):
        if value is not None:
            parts.append(f"{name}{put(value.median)}")
    if made.au is not None:
        parts.append(f"AU {format_percent(made.au)} (time not waiting ÷ step time)")
    return ", ".join(parts)


def _requested(found: RecordedTotals) -> str:
    if found.requested_bytes is None:
        return f"unknown: {bare(found.reasons.get('requested_bytes', 'not counted'))}"
    return (
        f"{format_bytes(found.requested_bytes)} by system call"
        f"{_rate(found.requested_bytes, found.seconds)}, {format_rate(found.read_calls)} calls"
    )


def _storage(found: RecordedTotals) -> str:
    if found.storage_read_bytes is None:
        return f"unknown: {bare(found.reasons.get('storage_read_bytes', 'not counted'))}"
    parts = [f"{format_bytes(found.storage_read_bytes)}"]
    parts[0] += _rate(found.storage_read_bytes, found.seconds)
    if found.storage_reads:
        parts.append(
            f"{format_rate(found.storage_reads)} reads, mean "
            f"{format_bytes(found.read_request_bytes)} in {format_seconds(found.read_latency_s)}"
        )
    return f"{', '.join(parts)}, by {found.storage_read_source}"


def _rate(value: float, seconds: float) -> str:
    return f", {format_bandwidth(value / seconds)}" if seconds else ""
