"""Looks at every counter before and after a reading, and what each saw of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from ioprof.clock import Clock
from ioprof.record.headline import Access, Candidate, Trial
from ioprof.record.reading import Layer, Reading, Role, Scope, Unavailable
from ioprof.sources.aside import look
from ioprof.sources.source import Found, Source

_COUNTERS = {
    Layer.WIRE: "read_bytes_total",
    Layer.CLIENT: "read_bytes_total",
    Layer.LINK: "receive_bytes_total",
    Layer.APP: "requested_bytes_total",
}
"""The counter that tells bytes read, by layer; other layers tell none."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """All counters of bytes at one moment."""

    t_s: float
    readings: tuple[Reading, ...]


class Looks:
    """The sources that can be read here. Leaving the context closes them."""

    def __init__(self, found: Iterable[Found], *, clock: Clock) -> None:
        self._sources: list[Source] = [one for one in found if not isinstance(one, Unavailable)]
        self._clock = clock

    def take(self) -> Look:
        """Read every source once. One that fails is left out from then on."""
        t_s = self._clock.now_s()
        readings: list[Reading] = []
        for source in tuple(self._sources):
            try:
                # Of several looks that it took meanwhile, the last one is now.
                latest = {(r.source, r.instance): r for r in look(source)}
                readings += latest.values()
            except (OSError, ValueError, LookupError):
                self._sources.remove(source)
                source.close()
        return Look(t_s=t_s, readings=tuple(r for r in readings if _counter(r) is not None))

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


def candidates(
    pairs: Sequence[tuple[Trial, Look, Look]], *, idle: tuple[Look, Look]
) -> tuple[Candidate, ...]:
    """Every counter of bytes, with the share of each trial that it saw, in the order of reading."""
    seconds = idle[1].t_s - idle[0].t_s
    found: list[Candidate] = []
    for group in _groups(idle[0].readings):
        moved = _moved(group, *idle)
        background = None if moved is None or seconds <= 0 else moved / seconds
        ratios: dict[Access, float | None] = {
            trial.access: _ratio(group, trial, before, after, background=background or 0.0)
            for trial, before, after in pairs
        }
        first = group[0]
        found.append(
            Candidate(
                source=first.source,
                instances=tuple(reading.instance for reading in group),
                layer=first.layer,
                scope=first.scope,
                counter=_COUNTERS[first.layer],
                ratios=ratios,
                background_bytes_per_s=background,
                note=first.note,
            )
        )
    return tuple(found)


def _counter(reading: Reading) -> str | None:
    name = _COUNTERS.get(reading.layer)
    return name if name in reading.counters else None


def _groups(readings: Iterable[Reading]) -> list[list[Reading]]:
    """Readings whose bytes are added up: the parts of one mount, the devices on top of the stack.

    On a whole host every interface and port stands for itself.
    """
    groups: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        if reading.role not in (None, Role.TOP):
            continue
        alone = reading.instance if reading.scope is Scope.HOST else ""
        groups.setdefault((reading.source, alone), []).append(reading)
    return list(groups.values())


def _moved(group: list[Reading], before: Look, after: Look) -> float | None:
    """What a group grew by; None when a part is missing, unknown or fell."""
    old = {(r.source, r.instance): r for r in before.readings}
    new = {(r.source, r.instance): r for r in after.readings}
    total = 0.0
    for reading in group:
        key = (reading.source, reading.instance)
        name = _COUNTERS[reading.layer]
        was = old[key].counters.get(name) if key in old else None
        now = new[key].counters.get(name) if key in new else None
        if was is None or now is None or now < was:
            return None
        total += now - was
    return total


def _ratio(
    group: list[Reading], trial: Trial, before: Look, after: Look, *, background: float
) -> float | None:
    moved = _moved(group, before, after)
    if moved is None or not trial.read_bytes:
        return None
    return (moved - background * (after.t_s - before.t_s)) / trial.read_bytes
