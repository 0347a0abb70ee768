"""Sources that are slow, fail or hang, read in a thread of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

import pytest

from ioprof.record.reading import Layer, Number, Reading, Scope
from ioprof.sources.aside import Aside, look


class Slow:
    """Takes as long, or fails as often, as a test wants."""

    name = "slow"
    every_ticks = 1

    def __init__(self, *, takes_s: float = 0.0, fails: Exception | None = None) -> None:
        self.takes_s = takes_s
        self.fails = fails
        self.looks = 0
        self.closed = False
        self.let_go = threading.Event()

    def read(self) -> list[Reading]:
        self.let_go.wait(self.takes_s)
        self.looks += 1
        if self.fails is not None:
            raise self.fails
        return [
            Reading(
                source="slow",
                instance="one",
                layer=Layer.CLIENT,
                scope=Scope.MOUNT,
                counters={"looks_total": self.looks},
            )
        ]

    def close(self) -> None:
        self.closed = True


def values(readings: Iterable[Reading]) -> list[Number | None]:
    return [reading.counters["looks_total"] for reading in readings]


def test_the_first_look_is_waited_for_and_bears_its_own_time():
    began_s = time.monotonic()
    aside = Aside(Slow(takes_s=0.05), period_s=60)
    (reading,) = aside.read()
    assert reading.t_s is not None
    assert began_s <= reading.t_s <= time.monotonic()
    aside.close()


def test_later_looks_are_taken_without_waiting():
    source = Slow()
    aside = Aside(source, period_s=0.01)
    list(aside.read())
    source.takes_s = 30.0
    time.sleep(0.1)
    began_s = time.monotonic()
    list(aside.read())
    assert list(aside.read()) == []
    assert time.monotonic() - began_s < 1
    source.let_go.set()
    aside.close()


def test_a_look_now_begins_after_it_was_asked_for():
    source = Slow()
    aside = Aside(source, period_s=60)
    assert values(aside.read()) == [1]
    asked_s = time.monotonic()
    found = look(aside)
    assert found[-1].t_s is not None
    assert found[-1].t_s >= asked_s
    assert values(found) == [2]
    aside.close()
    assert source.closed


def test_a_source_that_hangs_is_given_up_at_the_deadline_and_left_behind():
    source = Slow(takes_s=60)
    aside = Aside(source, period_s=1)
    began_s = time.monotonic()
    with pytest.raises(TimeoutError, match=r"slow did not answer within 0\.2 s"):
        aside.now(deadline_s=0.2)
    aside.close()
    assert time.monotonic() - began_s < 3
    assert not source.closed, "its files are in use by the thread that hangs"
    source.let_go.set()


@pytest.mark.parametrize("error", [OSError(5, "broken"), ValueError("torn"), LookupError("gone")])
def test_what_the_source_raises_is_raised_to_whoever_looks(error):
    aside = Aside(Slow(fails=error), period_s=60)
    with pytest.raises(type(error)):
        aside.read()
    aside.close()


def test_a_quick_source_is_looked_at_directly():
    assert values(look(Slow())) == [1]
