"""The trainer's clock, in one place."""

import time


def now_s() -> float:
    """Seconds on the monotonic clock."""
    return time.monotonic()


def sleep_until(deadline_s: float) -> None:
    """Return at `deadline_s` of the monotonic clock, or at once if it has passed."""
    delay_s = deadline_s - time.monotonic()
    if delay_s > 0:
        time.sleep(delay_s)
