"""Three counts of the same bytes, side by side, and why they differ when they do."""

from __future__ import annotations

from ioprof.analysis.accounting import Accounting, account
from ioprof.analysis.observation import Observation
from ioprof.analysis.storage import StorageCounters
from ioprof.record.summary import Reconciliation
from ioprof.units import format_percent

TOLERANCE = 0.05


def reconcile(seen: Observation, *, storage: StorageCounters) -> Reconciliation | None:
    """The bytes of the whole cell, first read to last.

    None when it left no counters or marks, or reads nothing of the dataset.
    """
    span = seen.span_s
    if seen.node is None or span is None or seen.plan.cache is None:
        return None
    consumed = seen.consumed_bytes
    found = account(
        seen.node,
        start_s=span[0],
        end_s=span[1],
        storage=storage,
        consumed_bytes=consumed,
        log=seen.log,
    )
    requested = found.requested_bytes
    reasons: dict[str, str] = {
        name: found.reasons[name]
        for name in ("requested_bytes", "storage_read_bytes")
        if name in found.reasons
    }
    if found.block_read_bytes is None:
        reasons["process_read_bytes"] = found.reasons.get("block_read_bytes", "not recorded")
    if consumed is None:
        reasons["consumed_bytes"] = "the trainer did not say how large its samples are"
    ratios = {
        "requested_over_consumed": _ratio(requested, consumed),
        "storage_over_consumed": _ratio(found.storage_read_bytes, consumed),
    }
    for name, ratio in ratios.items():
        if ratio is None:
            reasons[name] = "one of the two is not known, or nothing was consumed"
    others = _others_read(found, consumed)
    agrees = _agrees(
        ratios["requested_over_consumed"],
        # On a warm cell storage should deliver nothing: the share that it did is cache_served.
        None if seen.plan.cache == "warm" else ratios["storage_over_consumed"],
    )
    if agrees is None:
        reasons["agrees"] = "fewer than two of the three counts are known"
    return Reconciliation(
        consumed_bytes=consumed,
        requested_bytes=_whole(requested),
        storage_read_bytes=_whole(found.storage_read_bytes),
        storage_scope=found.storage_scope,
        process_read_bytes=_whole(found.block_read_bytes),
        others_read=others,
        agrees=agrees,
        why=_why(seen, found, agrees=agrees, others=others, **ratios),
        reasons=reasons,
        **ratios,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _agrees(*ratios: float | None) -> bool | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return all(abs(ratio - 1) <= TOLERANCE for ratio in known) if known else None


def _others_read(found: Accounting, consumed: int | None) -> bool:
    """Whether a device-wide count holds more than what these processes took, beyond 5 % of what
    they consumed. Where the block layer's account of them is missing, nothing can be said."""
    own, delivered = found.block_read_bytes, found.storage_read_bytes
    if found.storage_scope in (None, "process") or own is None or not delivered or not consumed:
        return False
    return delivered - own > TOLERANCE * max(own, consumed)


def _why(
    seen: Observation,
    found: Accounting,
    *,
    agrees: bool | None,
    others: bool,
    requested_over_consumed: float | None,
    storage_over_consumed: float | None,
) -> str:
    if agrees is None:
        return "Too little was counted to compare."
    warm = seen.plan.cache == "warm"
    if agrees and not warm:
        return "Consumed, requested and storage bytes agree within 5 %."
    if storage_over_consumed is not None and storage_over_consumed < 1 - TOLERANCE:
        share = format_percent(1 - storage_over_consumed)
        if warm and agrees:
            return f"The page cache served {share} of what was consumed, as asked for."
        return f"Storage delivered {share} less than was consumed: a cache served the rest."
    if storage_over_consumed is not None and storage_over_consumed > 1 + TOLERANCE:
        own = _ratio(found.block_read_bytes, seen.consumed_bytes)
        if own is not None and others:
            return (
                f"The device delivered {storage_over_consumed:.2f} times what was consumed, the "
                f"processes' own block reads {own:.2f} times: others read from the device too."
            )
        return (
            f"Storage delivered {storage_over_consumed:.2f} times what was consumed: readahead, "
            "or whole blocks for small files."
        )
    if requested_over_consumed is not None and requested_over_consumed > 1 + TOLERANCE:
        return (
            f"The processes requested {requested_over_consumed:.2f} times what was consumed: they "
            "read other files or pipes too, or read samples twice."
        )
    return "The counts differ by more than 5 %."
