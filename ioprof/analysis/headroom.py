"""How many accelerators this mount feeds, and what stops the next one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ioprof.analysis.demand import required_bytes_per_s
from ioprof.record.summary import Ceilings, Demand, Headroom
from ioprof.units import format_bandwidth, format_percent, format_rate


def headroom(
    *,
    demand: Sequence[Demand],
    ceilings: Sequence[Ceilings],
    stored_bytes: float,
    amplification: float | None,
    at_au: float,
) -> Headroom:
    """From the largest topology that was measured; further accelerators are taken to run as those.

    When preparation on this client binds, storage was never driven to its limit, and none is
    claimed: the answer is then how many accelerators this client can feed.
    """
    if not demand or not ceilings:
        return _unknown(at_au, "no topology has a synthetic cell to tell what it could consume")
    largest = max(demand, key=lambda row: row.accelerators)
    here = [c for c in ceilings if c.topology == largest.topology]
    compute = next((c.compute for c in here if c.compute), None)
    if compute is None:
        return _unknown(at_au, "the largest topology has no synthetic cell")
    rate = compute.median / largest.accelerators
    if rate <= 0 or stored_bytes <= 0:
        return _unknown(at_au, "the synthetic cell, or every sample of the dataset, was empty")
    if all(c.bottleneck == "unknown" for c in here):
        # Without every stage nobody knows which one binds: fio alone does not say it is storage.
        why = "; ".join(dict.fromkeys(reason for c in here for reason in c.reasons.values()))
        return _unknown(at_au, f"a stage was not measured: {why or 'its cell did not run'}")
    if all(c.bottleneck in ("prep", "client-limited") for c in here):
        return _by_client(here, rate=rate, at_au=at_au)
    available, reason = _available(
        here, stored_bytes=stored_bytes, amplification=amplification or 1.0
    )
    if available is None:
        return _unknown(at_au, reason)
    required = required_bytes_per_s(
        rate, at_au=at_au, stored_bytes=stored_bytes, amplification=amplification or 1.0
    )
    count = math.floor(available / required)
    best = max((c.prep.median for c in here if c.prep), default=math.inf)
    if best < count * at_au * rate:
        # Storage could feed more, and this client cannot prepare for them.
        return _by_client(here, rate=rate, at_au=at_au)
    return Headroom(
        at_au=at_au,
        max_accelerators=count,
        first_limit="storage",
        available_read_bytes_per_s=available,
        sentence=_sentence(
            f"this mount delivers {format_bandwidth(available)} and one accelerator needs "
            f"{format_bandwidth(required)}: it",
            count,
            at_au,
            "storage",
        ),
    )


def _available(
    here: Sequence[Ceilings], *, stored_bytes: float, amplification: float
) -> tuple[float | None, str]:
    """What storage can deliver: by fio, and where reading was seen to bind, no more than that."""
    claimed = [c.storage_read_bytes_per_s for c in here if c.storage_read_bytes_per_s is not None]
    fetched = [
        c.fetch.median * stored_bytes * amplification
        for c in here
        if c.fetch is not None and c.bottleneck == "fetch"
    ]
    if claimed or fetched:
        # fio reads without opening files; where opens bind, the loader's own reads are the limit.
        return min([*claimed, *fetched]), ""
    why = next((c.reasons["storage"] for c in here if "storage" in c.reasons), "not measured")
    return None, f"no storage ceiling: {why}"


def _by_client(here: Sequence[Ceilings], *, rate: float, at_au: float) -> Headroom:
    best = max((c.prep.median for c in here if c.prep), default=0.0)
    count = math.floor(best / (at_au * rate))
    reason = next(
        (c.reasons["storage"] for c in here if "storage" in c.reasons),
        "the client was the limit and storage was not driven to its own",
    )
    return Headroom(
        at_au=at_au,
        max_accelerators=count,
        first_limit="client",
        available_read_bytes_per_s=None,
        sentence=_sentence(
            f"this client prepares {format_rate(best)} samples/s and one accelerator consumes "
            f"{format_rate(rate)}: it",
            count,
            at_au,
            "the client, not storage",
        ),
        reasons={"available_read_bytes_per_s": reason},
    )


def _sentence(what: str, count: int, at_au: float, limit: str) -> str:
    some = "no accelerator" if count == 0 else f"at most {count:,} accelerator"
    plural = "s" if count > 1 else ""
    return f"{what} feeds {some}{plural} at AU {format_percent(at_au)}; the first limit is {limit}"


def _unknown(at_au: float, reason: str) -> Headroom:
    return Headroom(
        at_au=at_au,
        max_accelerators=None,
        first_limit="unknown",
        available_read_bytes_per_s=None,
        sentence=f"how many accelerators this mount feeds is not known: {reason}",
        reasons={"max_accelerators": reason, "available_read_bytes_per_s": reason},
    )
