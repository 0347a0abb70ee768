"""Base units inside, people's units at the edge: the only place that divides by 10⁹ or 2³⁰.

Rates and sizes on disk or wire are decimal (1 GB = 10⁹ B), memory is binary (1 GiB = 2³⁰ B).
"""

from __future__ import annotations

import re

from ioprof.errors import UsageError

MISSING = "–"

_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50}
_DURATION_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*$")


def parse_size_bytes(text: str) -> float:
    """Bytes from "10TB", "1TiB", "4k", "114660.07". Decimal suffixes are powers of 1000."""
    number, suffix = _split(text, "size", "10GB, 512MiB, 4096")
    factor = {**_DECIMAL, **_BINARY}.get(suffix.lower().removesuffix("b"))
    if factor is None:
        raise UsageError(f"{text!r} is not a size: {suffix!r} is no unit. Write 10GB or 512MiB.")
    return number * factor


def parse_duration_s(text: str) -> float:
    """Seconds from "100ms", "30s", "5m", "2h" or a bare number of seconds."""
    number, suffix = _split(text, "duration", "100ms, 30s, 5m, 2h")
    factor = _DURATION_S.get(suffix.lower() or "s")
    if factor is None:
        raise UsageError(f"{text!r} is not a duration: {suffix!r} is no unit. Write 100ms or 30s.")
    return number * factor


def _split(text: str, what: str, examples: str) -> tuple[float, str]:
    match = _NUMBER.match(text)
    if match is None:
        raise UsageError(f"{text!r} is not a {what}. Write it like {examples}.")
    return float(match[1]), match[2]


def _scaled(value: float, steps: tuple[str, ...], base: float) -> str:
    sign = "-" if value < 0 else ""
    value = abs(value)
    index = 0
    while value >= base * 0.9995 and index < len(steps) - 1:
        value /= base
        index += 1
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    if index == 0 and value == int(value):
        digits = 0
    return f"{sign}{value:.{digits}f} {steps[index]}"


def format_bytes(value: float | None) -> str:
    """Decimal bytes for disk and wire: "1.47 GB"; None is "–"."""
    return MISSING if value is None else _scaled(value, ("B", "kB", "MB", "GB", "TB", "PB"), 1000)


def format_memory(value: float | None) -> str:
    """Binary bytes for memory: "1.50 GiB"; None is "–"."""
    if value is None:
        return MISSING
    return _scaled(value, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"), 1024)


def format_bandwidth(value: float | None) -> str:
    """Decimal bytes per second: "205 MB/s"; None is "–"."""
    return MISSING if value is None else f"{format_bytes(value)}/s"


def format_rate(value: float | None) -> str:
    """A plain rate with separators, three significant digits below 100: "1,786"; None is "–"."""
    if value is None:
        return MISSING
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def format_seconds(value: float | None) -> str:
    """A duration at its natural scale: "315 ms", "4.2 s", "3 min 20 s"; None is "–"."""
    if value is None:
        return MISSING
    size = abs(value)
    if size >= 119.95:
        minutes, seconds = divmod(round(size), 60)
        return f"{'-' if value < 0 else ''}{minutes} min {seconds} s"
    if size >= 0.9995:
        return f"{value:.1f} s" if size >= 9.995 else f"{value:.2f} s"
    if size >= 0.9995e-3:
        return f"{value * 1e3:.0f} ms" if size >= 0.09995 else f"{value * 1e3:.1f} ms"
    return f"{value * 1e6:.0f} µs"


def format_percent(value: float | None, *, digits: int = 0) -> str:
    """A fraction 0–1 as per cent: "71 %"; None is "–"."""
    return MISSING if value is None else f"{value * 100:.{digits}f} %"
