"""Runs side by side, as text."""

from __future__ import annotations

from collections.abc import Iterator

from ioprof.record.comparison import Comparison, Difference
from ioprof.report.answer import TRAINED
from ioprof.report.layout import paragraph, table
from ioprof.units import MISSING, format_bandwidth, format_percent, format_rate, format_seconds

_WORDS = {
    "samples_per_s": "samples/s",
    "step_s": "step time",
    "wait_s": "wait",
    "storage_read_bytes_per_s": "storage",
    "reads_per_s": "IOPS",
}


def render(found: Comparison) -> str:
    """A table for each run against the first one, then what a reader must know."""
    lines: list[str] = []
    lines += paragraph(f"first: {found.runs[0]}")
    for number, name in enumerate(found.runs[1:], start=1):
        lines += ["", *paragraph(f"other: {name}")]
        lines += _table([d for d in found.differences if d.run == number])
        lines += _reasons(found, number)
    lines.append("")
    for caution in (*(f"Not alike: {one}." for one in found.unlike), *found.cautions):
        lines += paragraph(caution, rest="  ")
    lines += paragraph(answer(found))
    return "\n".join(lines)


def answer(found: Comparison) -> str:
    """Which throughputs differ, in a sentence."""
    rates = [d for d in found.differences if d.name == "samples_per_s"]
    differ = [d for d in rates if d.significant]
    known = [d for d in rates if d.significant is not None]
    if not known:
        return "Too little was observed to say whether the runs differ."
    if not differ:
        return f"No difference in samples/s is significant, in {len(known)} cells compared."
    # What trains says more than what only serves to measure a stage.
    most = max(differ, key=lambda d: (d.role in TRAINED, abs(d.relative.value or 0.0)))
    return (
        f"Samples/s differ significantly in {len(differ)} of {len(known)} cells compared, most in "
        f"{most.cell}: {signed(most.relative.value)}."
    )


def _table(differences: list[Difference]) -> list[str]:
    """One table, with the name of each cell above its rows."""
    header = ("", "first", "other", "difference", "99 % interval", "significant")
    head, *rows = table(header, [_row(one) for one in differences], align="lrrrrl")
    lines = [head]
    cell = None
    for one, row in zip(differences, rows, strict=True):
        if one.cell != cell:
            cell = one.cell
            lines += paragraph(cell)
        lines.append(row)
    return lines


def _row(one: Difference) -> tuple[str, ...]:
    low, high = one.relative.low, one.relative.high
    told = {None: MISSING, False: "no", True: "YES"}
    return (
        f"  {_WORDS.get(one.name, one.name)}",
        _value(one.name, one.first.value),
        _value(one.name, one.other.value),
        signed(one.relative.value),
        MISSING if low is None else f"{signed(low)} to {signed(high)}",
        told[one.significant],
    )


def _value(name: str, value: float | None) -> str:
    if name.endswith("bytes_per_s"):
        return format_bandwidth(value)
    return (
        format_seconds(value) if name.endswith("_s") and "_per_" not in name else format_rate(value)
    )


def signed(value: float | None) -> str:
    """A relative difference with its sign; a decimal below 10 %."""
    if value is None:
        return MISSING
    digits = 1 if abs(value) < 0.0995 else 0
    return ("+" if value > 0 else "") + format_percent(value, digits=digits)


def _reasons(found: Comparison, number: int) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for one in found.differences:
        if one.run == number and one.reason:
            told.setdefault(one.reason, []).append(f"{one.cell} {_WORDS.get(one.name, one.name)}")
    for reason, where in told.items():
        rest = f" and {len(where) - 1} more" if len(where) > 1 else ""
        yield from paragraph(f"{MISSING} {where[0]}{rest}: {reason}.", first="  ", rest="    ")
