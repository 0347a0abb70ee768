"""Numbers in counter texts: none negative, none beyond 64 bits; anything else is no number."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ioprof.record.reading import Number

MOST = 2**64 - 1
_REAL = re.compile(rb"[0-9]{1,32}(\.[0-9]{1,32})?([eE][+-]?[0-9]{1,3})?")


def whole(text: bytes) -> int | None:
    """A counter written in decimal digits; None for anything else."""
    # int() would also take "1_0" and signs; a torn text must not make a number.
    if not text.isdigit() or len(text) > 20:
        return None
    value = int(text)
    return value if value <= MOST else None


def real(text: bytes) -> Number | None:
    """A counter with or without a fraction or an exponent; an int where it is written as one."""
    found = _REAL.fullmatch(text)
    if found is None:
        return None
    if found[1] is None and found[2] is None:
        return whole(text)
    value = float(text)
    return value if value <= MOST else None


def total(parts: Iterable[Number | None]) -> Number | None:
    """The sum; None without any, or when one is missing: the others would look whole."""
    numbers = list(parts)
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) else None
