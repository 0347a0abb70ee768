"""A median with its spread and its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ioprof.record.estimate import Estimate

_RESAMPLES = 2000
_FEWEST_FOR_INTERVAL = 3


def estimate(values: Sequence[float]) -> Estimate | None:
    """Median, median absolute deviation and 95 % bootstrap percentile interval of the median.

    None for no values; no interval below three. The resampling is seeded: the same values always
    give the same interval.
    """
    found = np.asarray([value for value in values if np.isfinite(value)], dtype=np.float64)
    if not len(found):
        return None
    median = float(np.median(found))
    low = high = None
    if len(found) >= _FEWEST_FOR_INTERVAL:
        drawn = np.random.default_rng(0).choice(found, (_RESAMPLES, len(found)))
        low, high = (float(q) for q in np.percentile(np.median(drawn, axis=1), (2.5, 97.5)))
    return Estimate(
        median=median,
        mad=float(np.median(np.abs(found - median))),
        n=len(found),
        low=low,
        high=high,
    )


def pooled(groups: Sequence[Sequence[float]]) -> Estimate | None:
    """One estimate over the observations of all repeats."""
    return estimate([value for group in groups for value in group])
