"""What WekaFS tells of itself: its driver's /proc/wekafs files and the answers of `weka … --json`.

Rows of the driver's statistics are `NAME: N us N us N ns N ns COUNT [(M)]`: mean and longest time
in the user-mode frontend, the same in the driver, and how many since the driver was loaded. What M
is, no document says, so it is left alone. Units are read from the text, never assumed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from ioprof.record.reading import Number
from ioprof.sources.numeral import MOST, total, whole

_ROW = re.compile(
    rb"(?P<name>[a-z][a-z _]*):"
    rb"\s+(?P<user>\d+) (?P<user_unit>[a-z]+)\s+\d+ [a-z]+"
    rb"\s+(?P<driver>\d+) (?P<driver_unit>[a-z]+)\s+\d+ [a-z]+"
    rb"\s+(?P<count>\d+)(\s+\(.*\))?\s*"
)
_SECONDS = {b"ns": 1e-9, b"us": 1e-6, b"ms": 1e-3, b"s": 1.0}
_FRONTEND = re.compile(rb"Container=(\S+) FE \d+: Connected frontend pid \d+\s*")
_NODE = re.compile(r"(?:NodeId<)?([0-9]{1,9})>?")
_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,20}")
_PARTS: dict[str, str] = {
    "lookup_operations_total": "lookup",
    "getattr_operations_total": "getattr",
    "open_operations_total": "open",
    "readdir_operations_total": "readdir",
}
# Large reads have a row of their own.
_READS = ("read", "jumbo read")
_RATES: dict[str, tuple[str, float]] = {
    "read_bytes_per_second": ("READ_BYTES", 1.0),
    "reads_per_second": ("READS", 1.0),
    "read_latency_seconds": ("READ_LATENCY", 1e-6),
}
COUNTERS = (
    "read_operations_total", "write_operations_total", *_PARTS, "metadata_operations_total",
)  # fmt: skip
MEANS = ("read_frontend_mean_seconds", "read_driver_mean_seconds")
RATES = tuple(_RATES)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of operation since the driver was loaded."""

    count: int | None
    frontend_mean_s: float | None
    driver_mean_s: float | None


def parse_stat(text: bytes) -> dict[str, Row]:
    """Rows by the driver's name of the operation; of two of one name the first."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        found = _ROW.fullmatch(line)
        if found is not None:
            row = Row(
                count=whole(found["count"]),
                frontend_mean_s=_seconds(found["user"], found["user_unit"]),
                driver_mean_s=_seconds(found["driver"], found["driver_unit"]),
            )
            rows.setdefault(found["name"].decode(), row)
    return rows


def _seconds(number: bytes, unit: bytes) -> float | None:
    value, factor = whole(number), _SECONDS.get(unit)
    return None if value is None or factor is None else value * factor


def counters(rows: Mapping[str, Row]) -> dict[str, Number | None]:
    """Operations by our names; None where the driver has no such row."""
    reads = [rows[name].count for name in _READS if name in rows]
    made: dict[str, Number | None] = {
        "read_operations_total": total(reads) if "read" in rows else None,
        "write_operations_total": rows["write"].count if "write" in rows else None,
    }
    for ours, theirs in _PARTS.items():
        made[ours] = rows[theirs].count if theirs in rows else None
    made["metadata_operations_total"] = total(made[name] for name in _PARTS)
    return made


def means(rows: Mapping[str, Row]) -> dict[str, Number | None]:
    """Mean times of a read since the driver was loaded: gauges, of no use for a difference."""
    row = rows.get("read")
    if row is None or not row.count:
        return dict.fromkeys(MEANS)
    return dict(zip(MEANS, (row.frontend_mean_s, row.driver_mean_s), strict=True))


def frontends(interface: bytes) -> dict[str, int]:
    """How many frontends are connected, by container, from /proc/wekafs/interface."""
    found: dict[str, int] = {}
    for line in interface.splitlines():
        match = _FRONTEND.fullmatch(line)
        if match is not None:
            name = match[1].decode(errors="replace")
            found[name] = found.get(name, 0) + 1
    return found


def parse_processes(text: bytes, *, hosts: Collection[str]) -> frozenset[int]:
    """Numbers of the frontend processes on one of `hosts`, from `weka cluster process --json`.

    Taken are a list of processes and, as older versions answer, a mapping from process to facts.
    """
    found: set[int] = set()
    for name, facts in _processes(_json(text)):
        roles = facts.get("roles")
        host = facts.get("hostname")
        number = _number(facts.get("node_id", facts.get("id", name)))
        if (
            isinstance(roles, list)
            and "FRONTEND" in roles
            and isinstance(host, str)
            and host in hosts
            and number is not None
        ):
            found.add(number)
    return frozenset(found)


def _processes(answer: object) -> Iterator[tuple[Any, dict[str, Any]]]:
    if isinstance(answer, dict):
        yield from ((name, facts) for name, facts in answer.items() if isinstance(facts, dict))
    elif isinstance(answer, list):
        yield from ((None, facts) for facts in answer if isinstance(facts, dict))


def parse_rates(text: bytes, *, processes: Collection[int]) -> dict[str, Number | None]:
    """Rates of `processes` together over the last interval that all of them tell.

    Takes the list of version 3 and the mapping of version 4. A latency is the mean of the
    processes', weighted by their reads; None for what they do not tell.
    """
    told: dict[tuple[int, str], dict[str, float]] = {}
    for node, when, stat, value in _rates(_json(text)):
        number = _number(node)
        if number in processes and number is not None and _is_time(when) and _is_rate(value):
            told.setdefault((number, when), {})[stat] = float(value)
    return _together(list(_latest(told, processes)))


def _rates(answer: object) -> Iterator[tuple[Any, Any, str, Any]]:
    """Process, time, name and value of each rate, whichever version answered."""
    if isinstance(answer, list):
        for row in answer:
            if isinstance(row, dict) and isinstance(row.get("stat_type"), str):
                yield row.get("node"), row.get("timestamp"), row["stat_type"], row.get("stat_value")
    elif isinstance(answer, dict):
        for node, categories in answer.items():
            looks = categories.get("ops_driver") if isinstance(categories, dict) else None
            for look in looks if isinstance(looks, list) else ():
                stats = look.get("stats") if isinstance(look, dict) else None
                for name, value in stats.items() if isinstance(stats, dict) else ():
                    yield node, look.get("timestamp"), name, value


def _latest(
    told: Mapping[tuple[int, str], dict[str, float]], processes: Collection[int]
) -> Iterator[dict[str, float]]:
    times = {when for _, when in told}
    # Written alike by one command, so the latest is the greatest.
    for when in sorted(times, reverse=True):
        if all((number, when) in told for number in processes):
            yield from (told[number, when] for number in processes)
            return


def _together(looks: list[dict[str, float]]) -> dict[str, Number | None]:
    made: dict[str, Number | None] = {}
    for ours, (theirs, unit) in _RATES.items():
        if ours == "read_latency_seconds":
            made[ours] = _latency(looks, unit)
        else:
            complete = looks and all(theirs in look for look in looks)
            made[ours] = sum(look[theirs] for look in looks) * unit if complete else None
    return made


def _latency(looks: list[dict[str, float]], unit: float) -> float | None:
    reads = sum(look.get("READS", 0.0) for look in looks)
    if not reads or any("READ_LATENCY" not in look for look in looks if look.get("READS")):
        return None
    weighted = sum(look["READS"] * look["READ_LATENCY"] for look in looks if look.get("READS"))
    return weighted / reads * unit


def _json(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _number(node: object) -> int | None:
    found = _NODE.fullmatch(node) if isinstance(node, str) else None
    return int(found[1]) if found else None


def _is_time(when: object) -> bool:
    return isinstance(when, str) and _WHEN.fullmatch(when) is not None


def _is_rate(value: object) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 <= value <= MOST  # type: ignore[operator]
