"""A number with its evidence."""

from __future__ import annotations

import msgspec


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """Median, unscaled median absolute deviation, and the 95 % bootstrap interval of the median.

    `n` counts the observations: blocks of consecutive steps, or repeats. `low` and `high` are
    None when n is too small for an interval (under 3).
    """

    median: float
    mad: float
    n: int
    low: float | None = None
    high: float | None = None


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A value with the range it may lie in; None where the data cannot say."""

    value: float | None
    low: float | None = None
    high: float | None = None
