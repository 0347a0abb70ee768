"""Read a source in a thread of its own: one that runs a program, or touches a mount that may hang.

The sampler's ticks never wait for it. Each look bears the time at which it was taken. A thread that
sits in a dead mount is left behind; the process that holds it ends all the same, or is abandoned.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable

import msgspec

from ioprof.clock import MonotonicClock
from ioprof.record.reading import Reading
from ioprof.sources.source import Source

DEADLINE_S = 3.0
_Look = list[Reading] | Exception


class Aside:
    """A source whose `read` gives what its thread has seen since it was last asked."""

    every_ticks = 1

    def __init__(
        self, source: Source, *, period_s: float = 1.0, first_s: float = DEADLINE_S
    ) -> None:
        """`period_s` lies between two looks; `first_s` is how long the first one may take."""
        self.name = source.name
        self._first_s = first_s
        self._answered = threading.Event()
        self._source = source
        self._period_s = period_s
        self._clock = MonotonicClock()
        self._looks: queue.SimpleQueue[_Look] = queue.SimpleQueue()
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def read(self) -> Iterable[Reading]:
        """The looks taken since the last call, without waiting, except for the very first."""
        if self._thread is None:
            return self.now()
        return self._taken()

    def now(self, *, deadline_s: float | None = None) -> list[Reading]:
        """A look that begins after this call, and those before it that nobody has asked for.

        TimeoutError when it has not ended by the deadline.
        """
        asked_s = self._clock.now_s()
        if deadline_s is None:
            deadline_s = DEADLINE_S if self._answered.is_set() else self._first_s
        if self._thread is None:
            self.begin()
        else:
            self._wanted.set()
        readings: list[Reading] = []
        while not any(_began(reading, asked_s) for reading in readings):
            left_s = asked_s + deadline_s - self._clock.now_s()
            try:
                look = self._looks.get(timeout=max(left_s, 0.001))
            except queue.Empty:
                why = f"{self.name} did not answer within {deadline_s:g} s"
                raise TimeoutError(0, why) from None
            if isinstance(look, Exception):
                raise look
            if not look:
                break
            readings += look
        return readings

    def _taken(self) -> list[Reading]:
        readings: list[Reading] = []
        while True:
            try:
                look = self._looks.get_nowait()
            except queue.Empty:
                return readings
            if isinstance(look, Exception):
                raise look
            readings += look

    def begin(self) -> None:
        """Start the first look without waiting for it."""
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Wait for the first look, or until it is too late."""
        self._answered.wait(self._first_s)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._wanted.clear()
            t_s = self._clock.now_s()
            try:
                look: _Look = [
                    msgspec.structs.replace(reading, t_s=t_s) if reading.t_s is None else reading
                    for reading in self._source.read()
                ]
            except (OSError, ValueError, LookupError) as error:
                look = error
            self._looks.put(look)
            self._answered.set()
            self._wanted.wait(self._period_s)

    def close(self) -> None:
        """End the thread and close the source; a thread that does not answer is left behind."""
        self._closed.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(timeout=0.5)
            if self._thread.is_alive():
                return
        self._source.close()


def settle(sources: Iterable[Source]) -> None:
    """Let those that are slow to start do so side by side; return when all have looked once."""
    slow = [source for source in sources if isinstance(source, Aside)]
    for source in slow:
        source.begin()
    for source in slow:
        source.settle()


def _began(reading: Reading, asked_s: float) -> bool:
    return reading.t_s is not None and reading.t_s >= asked_s


def look(source: Source, *, deadline_s: float | None = None) -> list[Reading]:
    """One look at a source now, whichever kind it is; OSError when it cannot be had in time."""
    if isinstance(source, Aside):
        return source.now(deadline_s=deadline_s)
    return list(source.read())
