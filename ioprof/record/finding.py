"""A doubt about a result, said beside it: level, what, evidence, remedy."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["note", "caution", "invalid"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`note`: worth knowing. `caution`: the number may mislead. `invalid`: do not use it."""

    level: Level
    what: str
    evidence: str
    remedy: str
    code: str = ""
    """Short stable name for tests and scripts, for instance "cache-served"."""
    cell: str | None = None
    """The cell it concerns; None for the whole run."""
