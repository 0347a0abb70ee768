"""How a study tells what it is doing; the command line draws it, tests keep it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told about every step of a study."""

    def say(self, sentence: str) -> None:
        """One line worth keeping on the screen."""

    def begin(self, what: str, *, expected_s: float, left_s: float) -> None:
        """`what` starts now and should take `expected_s`; the whole study needs `left_s` more."""

    def count(self, done: int) -> None:
        """So many items of the current step are done (files scanned, evicted, read)."""

    def end(self, *, took_s: float) -> None:
        """The current step is over."""
