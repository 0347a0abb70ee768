"""Each stage alone, and the one that binds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ioprof.analysis.estimate import estimate, pooled
from ioprof.analysis.observation import Observation
from ioprof.record.ceiling import StorageCeiling
from ioprof.record.estimate import Estimate
from ioprof.record.study import CellRole
from ioprof.record.summary import Ceilings
from ioprof.units import format_bandwidth

CLIENT_BUSY = 0.85
"""From this share of the usable CPUs on, the client itself is taken for the limit."""


class References:
    """Pooled observations of all repeats, by topology, loader and role."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        self._seen = observations

    def _of(self, topology: str, loader: str | None, role: CellRole) -> list[Observation]:
        return [
            seen
            for seen in self._seen
            if seen.plan.topology == topology
            and seen.plan.role == role
            and (loader is None or seen.plan.loader == loader)
            and seen.stepping is not None
        ]

    def repeats(self, topology: str, loader: str, role: CellRole) -> int:
        """How many runs were pooled."""
        return len(self._of(topology, loader, role))

    def step_s(self, topology: str, loader: str | None, role: CellRole) -> Estimate | None:
        """Median step time over the blocks of all repeats."""
        found = self._of(topology, loader, role)
        return pooled([seen.stepping.blocks.step_s for seen in found if seen.stepping])

    def samples_per_s(self, topology: str, loader: str | None, role: CellRole) -> Estimate | None:
        """Median throughput of all ranks together over the blocks of all repeats."""
        found = self._of(topology, loader, role)
        return pooled([seen.stepping.blocks.samples_per_s for seen in found if seen.stepping])


def ceilings(
    references: References,
    *,
    topology: str,
    loader: str,
    storage: StorageCeiling | None,
    mean_stored_bytes: float,
    cpu_busy: float | None,
) -> Ceilings:
    """The ceilings of one topology and loader; `cpu_busy` is that of its prep cell.

    Where the client was the limit, fio's result is not claimed as what storage can deliver.
    """
    compute = references.samples_per_s(topology, None, "synthetic")
    prep = references.samples_per_s(topology, loader, "prep")
    fetch = references.samples_per_s(topology, None, "fetch")
    reasons = {
        name: f"its {role} cell did not run, or made no steps"
        for name, role, value in (
            ("compute", "synthetic", compute),
            ("prep", "prep", prep),
            ("fetch", "fetch", fetch),
        )
        if value is None
    }
    lowest = bottleneck({"compute": compute, "prep": prep, "fetch": fetch})
    if lowest == "prep" and cpu_busy is not None and cpu_busy >= CLIENT_BUSY:
        lowest = "client-limited"
    delivered, why = _claimed(storage, bottleneck=lowest)
    if delivered is None:
        reasons |= {"storage": why, "storage_read_bytes_per_s": why}
    elif not delivered or not mean_stored_bytes:
        reasons["storage"] = "fio read nothing, or the dataset's samples hold no bytes"
    return Ceilings(
        topology=topology,
        loader=loader,
        compute=compute,
        prep=prep,
        fetch=fetch,
        storage=estimate([delivered / mean_stored_bytes])
        if delivered and mean_stored_bytes
        else None,
        storage_read_bytes_per_s=delivered,
        bottleneck=lowest,
        reasons=reasons,
    )


def bottleneck(stages: dict[str, Estimate | None]) -> str:
    """The stage whose interval lies wholly below the next one's; "balanced" when none does,
    "unknown" when a stage is missing."""
    known = [(name, value) for name, value in stages.items() if value is not None]
    if len(known) < len(stages):
        return "unknown"
    (name, lowest), (_, second), *_ = sorted(known, key=lambda pair: pair[1].median)
    if lowest.high is None or second.low is None:
        return "balanced"  # too few observations to tell them apart
    return name if lowest.high < second.low else "balanced"


def _claimed(storage: StorageCeiling | None, *, bottleneck: str) -> tuple[float | None, str]:
    if storage is None:
        return None, "fio was not run"
    if storage.read_bytes_per_s is None:
        return None, storage.reason or "fio gave no result"
    if bottleneck in ("prep", "client-limited"):
        return None, (
            "the client was the limit and storage was not driven to its own; fio read at least "
            f"{format_bandwidth(storage.read_bytes_per_s)} here"
        )
    return storage.read_bytes_per_s, ""


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """Ceilings of all topologies and loaders, found again by their names."""

    all: tuple[Ceilings, ...]

    def of(self, topology: str, loader: str) -> Ceilings | None:
        """The ceilings of one topology and loader; None when neither cell was planned."""
        return next((c for c in self.all if (c.topology, c.loader) == (topology, loader)), None)
