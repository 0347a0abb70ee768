"""Time: one monotonic clock for everything measured, one wall-clock anchor for people.

All times in a run file are seconds of Linux `CLOCK_MONOTONIC`, which all processes of a node
share; the wall clock is read once per file, so a clock step cannot edit a result.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from ioprof.record.header import ClockAnchor


class Clock(Protocol):
    """Where time comes from; tests hand in their own."""

    def now_s(self) -> float:
        """Seconds on the monotonic clock."""

    def sleep_until(self, deadline_s: float) -> None:
        """Return at `deadline_s` of the monotonic clock, or at once if it has passed."""


class MonotonicClock:
    """The machine's `CLOCK_MONOTONIC`."""

    def now_s(self) -> float:
        """Seconds on the monotonic clock."""
        return time.monotonic()

    def sleep_until(self, deadline_s: float) -> None:
        """Return at `deadline_s` of the monotonic clock, or at once if it has passed."""
        delay_s = deadline_s - time.monotonic()
        if delay_s > 0:
            time.sleep(delay_s)


def anchor() -> ClockAnchor:
    """Both clocks, read together: what ties a run file to the calendar."""
    return ClockAnchor(monotonic_s=time.monotonic(), wall_s=time.time())


def now_iso() -> str:
    """Local wall-clock time as ISO 8601 with offset, to the second; for people, never for maths."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def ticks(clock: Clock, *, interval_s: float, start_s: float) -> Iterator[tuple[int, float]]:
    """Yield (grid index, time) at `start_s + index * interval_s`, for ever.

    A consumer that is late skips the grid points it missed: the index jumps, so the number of
    missed ticks is known and the grid never drifts.
    """
    index = 0
    while True:
        clock.sleep_until(start_s + index * interval_s)
        now_s = clock.now_s()
        yield index, now_s
        index = max(index + 1, int((clock.now_s() - start_s) / interval_s))
