"""Is the middle of one sample other than that of another? By resampling both.

Neighbouring blocks of steps are alike (an epoch's beginning, a burst of another program), so runs
of neighbours are drawn, not single ones: the circular block bootstrap (Politis and Romano, 1992),
with blocks of the square root of n. Tried on series in which each value is half the one before it,
60 long: at blocks of the cube root 5 to 13 of 100 comparisons of a thing with itself were false
alarms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

_RESAMPLES = 4000
_MOST = 1000
CONFIDENCE = 0.99
"""Several numbers are compared at once: at 95 % one in twenty would differ by chance."""
FEWEST = 5
"""Fewer observations than this on either side make no interval."""


def relative_difference(
    first: Sequence[Floats], other: Sequence[Floats], *, seed: int = 0
) -> tuple[float, float | None, float | None]:
    """(other - first) ÷ first of the means, and its interval; each side is given by repeats.

    With several repeats a side's repeats are drawn first, then the blocks within them, so that the
    scatter from run to run is in the interval. The interval is None when a side has fewer than
    five observations.
    """
    mean = _mean(first)
    value = (_mean(other) - mean) / mean
    if min(sum(map(len, first)), sum(map(len, other))) < FEWEST:
        return value, None, None
    dice = np.random.default_rng(seed)
    means = _means(first, dice)
    drawn = (_means(other, dice) - means) / means
    tail = (1 - CONFIDENCE) / 2 * 100
    low, high = np.percentile(drawn, (tail, 100 - tail))
    return value, float(low), float(high)


def _mean(repeats: Sequence[Floats]) -> float:
    return float(np.mean(np.concatenate(list(repeats))))


def _means(repeats: Sequence[Floats], dice: np.random.Generator) -> Floats:
    """Means of as many resamples."""
    within = np.stack([_block_means(repeat, dice) for repeat in repeats])
    sizes = np.array([len(repeat) for repeat in repeats], dtype=np.float64)
    if len(repeats) == 1:
        return np.asarray(within[0])
    picked = dice.integers(0, len(repeats), (_RESAMPLES, len(repeats)))
    values = within[picked, np.arange(_RESAMPLES)[:, None]]
    weights = sizes[picked]
    return np.asarray((values * weights).sum(axis=1) / weights.sum(axis=1))


def _thinned(values: Floats) -> Floats:
    """At most a thousand means of neighbours: their mean is the same, and a day's seconds fit."""
    size = -(-len(values) // _MOST)
    if size == 1:
        return values
    whole = len(values) // size * size
    return np.asarray(values[:whole].reshape(-1, size).mean(axis=1))


def _block_means(values: Floats, dice: np.random.Generator) -> Floats:
    values = _thinned(values)
    count = len(values)
    length = max(1, round(count**0.5))
    blocks = -(-count // length)
    starts = dice.integers(0, count, (_RESAMPLES, blocks))
    taken = (starts[:, :, None] + np.arange(length)).reshape(_RESAMPLES, -1)[:, :count] % count
    middle = values.mean()
    return np.asarray(middle + (values[taken].mean(axis=1) - middle) * _widening(blocks))


def _widening(blocks: int) -> float:
    """Few blocks scatter less than they should, and tell little of their scatter: Student's t."""
    if blocks < 2:
        return 1.0
    tail = (1 + CONFIDENCE) / 2
    student = stats.t.ppf(tail, blocks - 1) / stats.norm.ppf(tail)
    return float(student * np.sqrt(blocks / (blocks - 1)))
