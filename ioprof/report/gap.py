"""Why a number is missing: every reason once, with whom it concerns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ioprof.record.summary import CellSummary
from ioprof.report.answer import bare, cell_name


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """One field that is null for one reason."""

    field: str
    reason: str
    whose: tuple[str, ...]
    """The cells, or topologies and loaders, that lack it."""

    @property
    def owner(self) -> str:
        """Whose field it is, in few words."""
        return self.whose[0] if len(self.whose) == 1 else f"{len(self.whose)} rows"


def reasons_of(cell: CellSummary) -> tuple[str, dict[str, str]]:
    """A cell's name and reasons, less that of a stall which a warm cell cannot have."""
    kept = {
        field: reason
        for field, reason in cell.reasons.items()
        if not (cell.role == "warm" and field == "fetch_stall_s")
    }
    return cell_name(cell), kept


def gaps(reasons: Iterable[tuple[str, Mapping[str, str]]], *, fields: tuple[str, ...]) -> list[Gap]:
    """The reasons given for these fields, most concerned first."""
    whose: dict[tuple[str, str], list[str]] = {}
    for who, why in reasons:
        for field in fields:
            if field in why:
                whose.setdefault((field, bare(why[field])), []).append(who)
    found = [
        Gap(field=field, reason=reason, whose=tuple(dict.fromkeys(who)))
        for (field, reason), who in whose.items()
    ]
    return sorted(found, key=lambda gap: -len(gap.whose))
