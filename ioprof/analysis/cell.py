"""One cell's summary: its own numbers, and what they mean beside its reference cells."""

from __future__ import annotations

from typing import Any

import msgspec

from ioprof.analysis.ceilings import Bound, References, bottleneck
from ioprof.analysis.doubts import cell_findings
from ioprof.analysis.estimate import estimate
from ioprof.analysis.observation import Observation
from ioprof.analysis.rates import Rates, rates
from ioprof.analysis.reconciliation import reconcile
from ioprof.analysis.storage import storage_counters
from ioprof.record.dataset import Quarantined
from ioprof.record.step import Event
from ioprof.record.study import Residency, Study
from ioprof.record.summary import (
    CacheSummary,
    CellSummary,
    Reconciliation,
    SamplerSummary,
    Training,
)

COLD_BELOW = 0.01
WARM_ABOVE = 0.99
_SERVED_BELOW = 0.5
_OWN_CACHE = ("zfs", "gpfs")
"""Filesystems that serve reads from a cache outside the page cache; FUSE daemons may too."""
_DATASET_ROLES = ("cold", "warm", "as-found")


class _Stalls(msgspec.Struct, frozen=True, kw_only=True):
    au: float | None = None
    data_stall_s: float | None = None
    prep_stall_s: float | None = None
    fetch_stall_s: float | None = None
    reasons: dict[str, str] = {}


def cell_summary(
    seen: Observation, *, study: Study, references: References, bound: Bound
) -> CellSummary:
    """Everything the report says about one cell."""
    plan = seen.plan
    storage = storage_counters(study)
    bytes_ = reconcile(seen, storage=storage)
    measured = rates(seen, storage=storage, reconciliation=bytes_)
    stalls = _stalls(seen, references)
    times, time_reasons = _times(seen)
    served, amplification, ratio_reasons = _ratios(plan.role, bytes_)
    reasons = {
        **measured.reasons,
        **stalls.reasons,
        **ratio_reasons,
        **time_reasons,
    }
    summary = CellSummary(
        id=plan.id,
        topology=plan.topology,
        nodes=plan.nodes,
        accelerators_per_node=plan.accelerators_per_node,
        loader=plan.loader,
        role=plan.role,
        repeat=plan.repeat,
        repeats=references.repeats(plan.topology, plan.loader, plan.role),
        cache=cache_summary(seen, filesystem=study.mount.filesystem),
        accelerator=plan.accelerator,
        engine=plan.engine,
        window=seen.stepping.window if seen.stepping else None,
        cache_served=served,
        read_amplification=amplification,
        sampler=_sampler(seen),
        reconciliation=bytes_,
        training=_training(seen),
        quarantined=_quarantined(seen),
        verdict=_verdict(seen, bytes_, bound=bound),
        partial=_partial(seen),
        findings=(),
        reasons=reasons,
        **times,
        **_but_reasons(stalls),
        **_but_reasons(measured),
    )
    return msgspec.structs.replace(summary, findings=cell_findings(summary, seen))


def _times(seen: Observation) -> tuple[dict[str, Any], dict[str, str]]:
    """Throughput and step times over the blocks of the window, and why one is missing."""
    blocks = seen.stepping.blocks if seen.stepping else None
    names = ("samples_per_s", "step_s", "wait_s", "compute_s")
    found = {name: estimate(getattr(blocks, name)) if blocks else None for name in names}
    why = "the cell made no steps" if blocks is None else "its steps were not timed"
    return found, {name: why for name, value in found.items() if value is None}


def _but_reasons(part: _Stalls | Rates) -> dict[str, Any]:
    """The fields of a part of the summary, which bear the summary's own names."""
    fields = msgspec.structs.asdict(part)
    del fields["reasons"]
    return fields


def cache_summary(seen: Observation, *, filesystem: str) -> CacheSummary:
    """The state asked for and the one observed; only the observed one is claimed.

    Where the filesystem keeps a cache of its own, an empty page cache is not "cold".
    """
    before = seen.outcome.residency_before if seen.outcome else None
    after = seen.outcome.residency_after if seen.outcome else None
    return CacheSummary(
        asked=seen.plan.cache,
        observed_resident_fraction=before.resident_fraction if before else None,
        observed_resident_fraction_after=after.resident_fraction if after else None,
        state="not read" if seen.plan.cache is None else _state(before, filesystem=filesystem),
    )


def _state(residency: Residency | None, *, filesystem: str) -> str:
    if residency is None or residency.resident_fraction is None:
        return "unknown"
    cold = residency.resident_fraction < COLD_BELOW
    if cold and (filesystem in _OWN_CACHE or filesystem.startswith("fuse")):
        return "unknown"
    if residency.resident_fraction < COLD_BELOW:
        return "cold"
    return "warm" if residency.resident_fraction > WARM_ABOVE else "partial"


def _stalls(seen: Observation, references: References) -> _Stalls:
    """Differences of median step times, not clipped: small negative ones show the noise."""
    plan = seen.plan
    names = ("au", "data_stall_s", "prep_stall_s", "fetch_stall_s")
    if plan.role not in _DATASET_ROLES:
        return _Stalls(reasons=dict.fromkeys(names, "a reference cell: it measures one stage"))
    own = references.step_s(plan.topology, plan.loader, plan.role)
    synthetic = references.step_s(plan.topology, None, "synthetic")
    warm = references.step_s(plan.topology, plan.loader, "warm")
    reasons: dict[str, str] = {}
    if own is None or synthetic is None:
        why = "the cell made no steps" if own is None else "there is no synthetic cell beside it"
        return _Stalls(reasons=dict.fromkeys(names, why))
    if own.median <= 0:
        return _Stalls(reasons=dict.fromkeys(names, "most of its steps took no time at all"))
    prep = warm.median - synthetic.median if warm else None
    fetch = own.median - warm.median if warm and plan.role != "warm" else None
    if prep is None:
        reasons["prep_stall_s"] = reasons["fetch_stall_s"] = "there is no warm cell beside it"
    elif plan.role == "warm":
        reasons["fetch_stall_s"] = "a warm cell reads nothing from storage"
    return _Stalls(
        au=synthetic.median / own.median,
        data_stall_s=own.median - synthetic.median,
        prep_stall_s=prep,
        fetch_stall_s=fetch,
        reasons=reasons,
    )


def _ratios(
    role: str, bytes_: Reconciliation | None
) -> tuple[float | None, float | None, dict[str, str]]:
    """Cache-served share (warm, as-found) and read amplification (cold), and why one is missing."""
    cold = role in ("cold", "fetch")
    reasons = {
        "cache_served": "a cold cell: what it read more or less is its read amplification",
        "read_amplification": "told on cold cells alone: on others it means cache hits",
    }
    if bytes_ is None or bytes_.storage_over_consumed is None:
        why = "the bytes of this cell could not be counted on both sides"
        if role == "synthetic":
            why = "nothing is read from the dataset"
        return None, None, dict.fromkeys(reasons, why)
    if not cold:
        del reasons["cache_served"]
        return 1.0 - (_own_share(bytes_) or 0.0), None, reasons
    del reasons["read_amplification"]
    asked = bytes_.requested_bytes or bytes_.consumed_bytes or 0
    delivered = bytes_.own_storage_bytes or 0
    return None, delivered / asked if asked else None, reasons


def _own_share(bytes_: Reconciliation | None) -> float | None:
    """What storage delivered for this cell ÷ what it consumed."""
    if bytes_ is None or bytes_.own_storage_bytes is None or not bytes_.consumed_bytes:
        return None
    return bytes_.own_storage_bytes / bytes_.consumed_bytes


def _verdict(seen: Observation, bytes_: Reconciliation | None, *, bound: Bound) -> str:
    plan = seen.plan
    if seen.stepping is None:
        return "invalid"
    if plan.role not in _DATASET_ROLES:
        return "reference"
    if bytes_ is not None and not (bytes_.consumed_bytes or bytes_.storage_read_bytes):
        return "invalid"
    over = _own_share(bytes_)
    if plan.role != "warm" and over is not None and over < _SERVED_BELOW:
        return "cache-served"
    found = bound.of(plan.topology, plan.loader)
    if found is None:
        return "unknown"
    if plan.role != "warm":
        return found.bottleneck
    if found.bottleneck == "client-limited":
        return found.bottleneck
    return bottleneck({"compute": found.compute, "prep": found.prep})


def _sampler(seen: Observation) -> SamplerSummary | None:
    if seen.node is None:
        return None
    end = seen.node.end
    seconds = end.t_s - seen.node.first_s if end and seen.node.first_s is not None else None
    return SamplerSummary(
        interval_s=seen.node.header.interval_s,
        cpu_fraction=end.cpu_s / seconds if end and seconds else None,
        missed_ticks=end.missed_ticks if end else None,
        # Sources with times of their own lay down ticks beside the grid's.
        ticks=end.ticks if end else seen.node.ticks,
    )


def _events(seen: Observation, name: str) -> list[Event]:
    return [event for rank in seen.ranks for event in rank.events if event.name == name]


def _training(seen: Observation) -> Training | None:
    trained = _events(seen, "trained")
    if not trained:
        return None
    first = trained[0].fields
    losses = [first.get("loss_first"), first.get("loss_last")]
    loss_first, loss_last = (loss if isinstance(loss, float) else None for loss in losses)
    digests = {event.fields.get("weights_digest") for event in trained}
    return Training(
        loss_first=loss_first,
        loss_last=loss_last,
        weights_changed=all(bool(event.fields.get("weights_changed")) for event in trained),
        ranks_agree=len(digests) == 1 and len(trained) == len(seen.ranks),
    )


def _quarantined(seen: Observation) -> tuple[Quarantined, ...]:
    named = {
        str(event.fields.get("file")): str(event.fields.get("why"))
        for event in _events(seen, "quarantine")
    }
    return tuple(Quarantined(file=file, why=why) for file, why in sorted(named.items()))


def _partial(seen: Observation) -> str | None:
    if seen.outcome is None:
        return "it was not finished" if seen.started else "it was not run"
    if seen.outcome.error is not None:
        return seen.outcome.error.splitlines()[0].removesuffix(" Its last words:")
    if seen.outcome.partial is not None:
        return seen.outcome.partial
    return "; ".join(seen.problems) or None
