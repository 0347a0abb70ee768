"""Look at every source again and again; keep of each instance the last look and the one before."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

import msgspec

from ioprof.clock import Clock
from ioprof.record.reading import Reading, Unavailable
from ioprof.sources.aside import Aside, look
from ioprof.sources.source import Found, Source

STALE_S = 5.0
"""What a source that is read in a thread of its own said so long ago is no longer shown."""
_AGE = "age_seconds"
_Key = tuple[str, str]


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """What a counter grew by per second; None with the reason where that cannot be told."""

    value: float | None
    reason: str | None = None


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two successive looks at one instance of a source. Both readings bear their time."""

    before: Reading | None
    """None when it was seen for the first time."""
    now: Reading

    def rate(self, name: str) -> Rate:
        """Growth per second of one counter; a counter that fell has none for this interval."""
        who = f"{self.now.source} {self.now.instance}"
        value = self.now.counters.get(name)
        if value is None:
            return Rate(value=None, reason=f"{self.now.source} does not count {_words(name)} here")
        if self.before is None:
            return Rate(value=None, reason=f"{who} was seen once: a rate needs two looks")
        was = self.before.counters.get(name)
        if was is None:
            return Rate(value=None, reason=f"{who} did not tell {_words(name)} before")
        seconds = (self.now.t_s or 0.0) - (self.before.t_s or 0.0)
        if value < was or self._younger():
            return Rate(value=None, reason=f"{who} began to count anew")
        if seconds <= 0:
            return Rate(value=None, reason=f"{who} was not looked at again")
        return Rate(value=(value - was) / seconds)

    def _younger(self) -> bool:
        """Whether its counters began anew and grew past what they were."""
        was = None if self.before is None else self.before.gauges.get(_AGE)
        age_s = self.now.gauges.get(_AGE)
        return was is not None and age_s is not None and age_s < was


def total(rates: Iterable[Rate]) -> Rate:
    """The sum; as soon as one part is not known the sum is not."""
    summed = 0.0
    for rate in rates:
        if rate.value is None:
            return rate
        summed += rate.value
    return Rate(value=summed)


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """All counters at one moment, with what they were at the moment before."""

    t_s: float
    pairs: tuple[Pair, ...]
    silent: dict[str, str] = {}
    """Sources that ought to be here and tell nothing, by name, with the reason."""

    def of(self, source: str, instances: Iterable[str]) -> list[Pair]:
        """Some instances of a source; those that are not there are left out."""
        wanted = set(instances)
        return [p for p in self.pairs if p.now.source == source and p.now.instance in wanted]

    def why_missing(self, source: str) -> str:
        """Why nothing is known of a source."""
        near = [why for name, why in self.silent.items() if name.startswith(source)]
        return self.silent.get(source) or next(iter(near), f"no source here is called {source}")


class Looks:
    """The sources that can be read here. Leaving the context closes them."""

    def __init__(self, found: Iterable[Found], *, clock: Clock) -> None:
        self._clock = clock
        self._sources: list[Source] = []
        self._missing: dict[str, str] = {}
        for one in found:
            if isinstance(one, Unavailable):
                self._missing[one.source] = one.reason
            else:
                self._sources.append(one)
        self._pairs: dict[int, dict[_Key, Pair]] = {}

    def take(self, *, fresh: bool = False) -> Look:
        """Look at every source. Without `fresh`, one that is read in a thread of its own gives
        what it saw last, and holds nobody up.
        """
        t_s = self._clock.now_s()
        silent = dict(self._missing)
        for index, source in enumerate(self._sources):
            try:
                readings = look(source) if fresh else list(source.read())
            except (OSError, ValueError, LookupError) as error:
                silent[source.name] = f"{source.name} cannot be read now: {error}"
                self._pairs.pop(index, None)
                continue
            last = self._pairs.get(index, {})
            if readings or not isinstance(source, Aside):
                self._pairs[index] = _paired(last, readings, t_s=t_s)
            elif _is_stale(last, t_s):
                silent[source.name] = f"{source.name} has not answered for {STALE_S:g} s or more"
                self._pairs.pop(index)
        pairs = tuple(pair for found in self._pairs.values() for pair in found.values())
        return Look(t_s=t_s, pairs=pairs, silent=silent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for source in self._sources:
            source.close()


def _paired(last: dict[_Key, Pair], readings: Iterable[Reading], *, t_s: float) -> dict[_Key, Pair]:
    """The newest reading of each instance with the one that was shown before it."""
    pairs: dict[_Key, Pair] = {}
    for reading in readings:
        key = (reading.source, reading.instance)
        timed = reading if reading.t_s is not None else msgspec.structs.replace(reading, t_s=t_s)
        pairs[key] = Pair(before=last[key].now if key in last else None, now=timed)
    return pairs


def _is_stale(last: dict[_Key, Pair], t_s: float) -> bool:
    return bool(last) and all(t_s - (pair.now.t_s or 0.0) > STALE_S for pair in last.values())


def _words(name: str) -> str:
    return name.removesuffix("_total").replace("_", " ")
