"""Distribution of read request sizes, as counters: one for each power of two.

A source that knows request sizes gives, beside its other counters, how many reads were of at most
512 bytes, of more than that and at most 1,024, and so on: `read_requests_up_to_512_total` …
`read_requests_up_to_16777216_total`, and `read_requests_above_16777216_total`.
"""

from __future__ import annotations

import re

EDGES: tuple[int, ...] = tuple(512 << shift for shift in range(16))
"""Upper edges in bytes, each included in its own bucket: 512 … 16,777,216."""
_NAME = re.compile(r"read_requests_(?:up_to|above)_([0-9]+)_total")


def bucket(size_bytes: int) -> str:
    """Name of the counter for a read of `size_bytes`."""
    for edge in EDGES:
        if size_bytes <= edge:
            return f"read_requests_up_to_{edge}_total"
    return f"read_requests_above_{EDGES[-1]}_total"


def names() -> tuple[str, ...]:
    """All names, smallest first."""
    return (*(bucket(edge) for edge in EDGES), bucket(EDGES[-1] + 1))


def edge(name: str) -> int | None:
    """The edge in a counter's name: upper, and lower for the last; None for another counter."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None
