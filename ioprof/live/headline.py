"""Which counter is shown as what storage delivers, where none was calibrated."""

from __future__ import annotations

from collections.abc import Iterable

from ioprof.record.headline import Candidate
from ioprof.record.reading import Layer, Reading, Role, Scope

BYTES = "read_bytes_total"
_ORDER = (
    (Layer.WIRE, Scope.MOUNT),
    (Layer.WIRE, Scope.DEVICE),
    (Layer.WIRE, Scope.HOST),
    (Layer.CLIENT, Scope.MOUNT),
)
"""Nearest to storage first, then the one that includes the least of others' work. What the block
layer did for some processes is not here: it stays 0 where it is not asked at all."""


def headline(readings: Iterable[Reading]) -> Candidate | None:
    """The first source by layer and scope, all its parts together; None where there is none."""
    found = [r for r in readings if _tells(r)]
    if not found:
        return None
    first = min(found, key=lambda reading: _ORDER.index((reading.layer, reading.scope)))
    parts = [r for r in found if r.source == first.source and r.scope is first.scope]
    return Candidate(
        source=first.source,
        instances=tuple(reading.instance for reading in parts),
        layer=first.layer,
        scope=first.scope,
        counter=BYTES,
        ratios={},
        note=first.note,
    )


def _tells(reading: Reading) -> bool:
    known = reading.counters.get(BYTES) is not None
    on_top = reading.role in (None, Role.TOP)
    return known and on_top and (reading.layer, reading.scope) in _ORDER
