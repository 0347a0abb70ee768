"""The text of /proc/PID/io: seven counters of one process."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

Counters = tuple[int, ...]
"""As in the file: rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes."""

ZERO: Counters = (0,) * 7
_KEYS = [
    b"rchar:",
    b"wchar:",
    b"syscr:",
    b"syscw:",
    b"read_bytes:",
    b"write_bytes:",
    b"cancelled_write_bytes:",
]


def parse_io(text: bytes) -> Counters:
    """Counters of one `io` file. Blank and unknown lines are passed over; ValueError when one of
    the seven is missing.
    """
    fields = text.split()
    if fields[0::2] == _KEYS:
        return tuple(map(int, fields[1::2]))
    found: dict[bytes, int] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(b":")
        if colon and value.strip().isdigit():
            found[key.strip() + b":"] = int(value)
    missing = [key.decode() for key in _KEYS if key not in found]
    if missing:
        raise ValueError(f"it has no line {' '.join(missing)}")
    return tuple(found[key] for key in _KEYS)


def add(*values: Counters) -> Counters:
    """Counter by counter."""
    return tuple(map(sum, zip(*values, strict=True)))


def sum_io(texts: Sequence[bytes]) -> Counters:
    """Counters of many processes added up. A text that makes no sense adds nothing."""
    # All texts as one: at every tick, this costs a third of taking them one by one.
    fields = b"".join(texts).split()
    if fields[0::2] == _KEYS * len(texts):
        with contextlib.suppress(ValueError):  # a torn number: then one by one
            return tuple(sum(map(int, fields[column::14])) for column in range(1, 14, 2))
    total = ZERO
    for text in texts:
        try:
            total = add(total, parse_io(text))
        except ValueError:
            continue
    return total
