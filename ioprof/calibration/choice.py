"""Which of the calibrated counters is believed, and what it cannot see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ioprof.record.headline import Access, Calibration, Candidate, Trial
from ioprof.record.reading import Layer, Scope
from ioprof.units import format_bytes, format_percent

LOW, HIGH = 0.95, 1.10
"""A counter that saw between these shares of a known amount is right for it."""
_BLIND_BELOW = 0.5
_COUNTS_HITS_ABOVE = 0.5
_MOVED_ABOVE = 0.02
_ORDER = (Layer.WIRE, Layer.CLIENT, Layer.LINK, Layer.APP)
_NARROW = (Scope.PROCESS, Scope.MOUNT, Scope.DEVICE, Scope.HOST)
_ACCESS_WORDS = {
    "read": "read()",
    "mmap": "mapped files (mmap)",
    "direct": "direct I/O (O_DIRECT)",
}
_WHOSE = {
    Scope.MOUNT: "It includes whatever other programs of this node read from the mount.",
    Scope.DEVICE: "It includes whatever else reads from the same device or volume.",
    Scope.HOST: "It includes everything else that this node does.",
}


def choose(found: Iterable[Candidate], *, trials: Sequence[Trial], access: Access) -> Calibration:
    """The first counter, from the wire upwards, that saw what was read by `access`.

    A counter of storage must also rest while the page cache serves. Of one layer the narrowest
    scope comes first, then the ratio nearest to 1. What the process asked for is never taken for
    what storage delivered: where it alone is right there is no headline.
    """
    every = tuple(found)
    trial = next(t for t in trials if t.access == access)
    right = sorted(
        (c for c in every if _is_right(c, trial, access)), key=lambda c: _rank(c, access)
    )
    storage = [c for c in right if c.layer is not Layer.APP and not _counts_hits(c)]
    # The device that the mount names is the storage, compressed or read in larger blocks or not.
    moved = [c for c in every if _is_device_that_moved(c, access) and c not in storage]
    headline, *others = [*storage, *moved, None]
    runner_up = next((c for c in [*others, *right] if c is not None and c is not headline), None)
    return Calibration(
        trials=tuple(trials),
        candidates=every,
        headline=headline,
        runner_up=runner_up,
        why=_why(headline, trial, access=access, exact=headline in storage, right=right),
        blind_spots=_blind_spots(headline, access),
    )


def _is_right(candidate: Candidate, trial: Trial, access: Access) -> bool:
    ratio = candidate.ratios.get(access)
    if ratio is None or not trial.read_bytes:
        return False
    # Storage delivers whole pages; of small files that is more than their bytes.
    return LOW <= ratio <= HIGH * max(1.0, trial.page_bytes / trial.read_bytes)


def _is_device_that_moved(candidate: Candidate, access: Access) -> bool:
    ratio = candidate.ratios.get(access)
    of_mount = candidate.layer is Layer.WIRE and candidate.scope in (Scope.DEVICE, Scope.MOUNT)
    return of_mount and ratio is not None and ratio > _MOVED_ABOVE and not _counts_hits(candidate)


def _counts_hits(candidate: Candidate) -> bool:
    warm = candidate.ratios.get("warm")
    return warm is not None and warm > _COUNTS_HITS_ABOVE


def _rank(candidate: Candidate, access: Access) -> tuple[int, int, float]:
    ratio = candidate.ratios.get(access) or 0.0
    return _ORDER.index(candidate.layer), _NARROW.index(candidate.scope), abs(ratio - 1)


def _why(
    headline: Candidate | None,
    trial: Trial,
    *,
    access: Access,
    exact: bool,
    right: list[Candidate],
) -> str:
    known = f"{format_bytes(trial.read_bytes)} read by {_ACCESS_WORDS[access]}"
    if not trial.read_bytes:
        return f"no known amount could be read: {trial.reason or 'the files are empty'}"
    if headline is None:
        only = f"; only {right[0].name} did" if right else ""
        return f"no counter below the process saw the {known}{only}"
    share = format_percent(headline.ratios.get(access) or 0.0)
    if exact:
        return f"{headline.name} saw {share} of the {known}"
    return (
        f"{headline.name} saw {share} of the {known}: it is the mount's own, and compression, a "
        "cache below it or larger blocks make the difference"
    )


def _blind_spots(headline: Candidate | None, access: Access) -> tuple[str, ...]:
    if headline is None:
        return ()
    spots = [_WHOSE[headline.scope]] if headline.scope in _WHOSE else []
    for other, words in _ACCESS_WORDS.items():
        ratio = headline.ratios.get(other)  # type: ignore[call-overload]
        if other != access and ratio is not None and ratio < _BLIND_BELOW:
            spots.append(f"It does not see {words}.")
    if headline.note:
        spots.append(headline.note[:1].upper() + headline.note[1:].rstrip(".") + ".")
    return tuple(spots)
