"""What differs between runs, with how sure that is."""

from __future__ import annotations

import msgspec

from ioprof.record.estimate import Interval


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One run's number of one cell; None with the reason where it has none."""

    value: float | None
    n: int = 0
    """Observations behind it: blocks of steps, or one-second windows."""
    repeats: int = 0
    reason: str | None = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One number of one cell, in the first run and in another."""

    topology: str
    loader: str
    role: str
    name: str
    """As in a summary: samples_per_s, step_s, …"""
    run: int
    """Which of the compared runs stands against the first: 1 for the second, and so on."""
    first: Side
    other: Side
    relative: Interval
    """(other - first) ÷ first, with its 99 % bootstrap interval."""
    significant: bool | None
    """The interval does not hold 0; None where there is no interval."""
    reason: str | None = None
    """Why there is no difference or no interval."""

    @property
    def cell(self) -> str:
        """The cell as people call it."""
        return " ".join(dict.fromkeys((self.topology, self.loader, self.role)))


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Runs side by side. The first one is what the others are measured against."""

    runs: tuple[str, ...]
    differences: tuple[Difference, ...]
    unlike: tuple[str, ...]
    """What keeps the runs from being compared as they are; a sentence each."""
    cautions: tuple[str, ...]
    """What a reader of the differences must know."""
