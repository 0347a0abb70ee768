"""How often a difference is found where there is none, and where there is one."""

import numpy as np
import pytest

from ioprof.analysis.resample import relative_difference

BLOCKS = 60


def run(dice, *, rate=600.0, spread=0.06, alike=0.5, blocks=BLOCKS):
    """Samples/s of the blocks of a cell: each is like the one before it, as in a real run."""
    noise = np.empty(blocks)
    last = dice.normal()
    for index in range(blocks):
        last = alike * last + np.sqrt(1 - alike**2) * dice.normal()
        noise[index] = last
    return rate * (1 + spread * noise)


def differs(first, other):
    _, low, high = relative_difference(first, other)
    assert low is not None and high is not None
    return not low <= 0 <= high


def test_a_run_and_itself_again_raise_a_false_alarm_in_at_most_2_of_40():
    dice = np.random.default_rng(1)
    alarms = sum(differs([run(dice)], [run(dice)]) for _ in range(40))
    assert alarms <= 2


def test_a_run_that_is_slower_by_a_tenth_is_found_in_at_least_19_of_20():
    dice = np.random.default_rng(2)
    found = sum(differs([run(dice)], [run(dice, rate=540.0)]) for _ in range(20))
    assert found >= 19


def test_the_scatter_from_run_to_run_is_in_the_interval_of_repeats():
    # Each repeat is steady in itself, and they lie 10 % apart: neither side is the faster one.
    dice = np.random.default_rng(3)
    first = [run(dice, rate=rate, spread=0.001) for rate in (560.0, 600.0, 640.0)]
    other = [run(dice, rate=rate, spread=0.001) for rate in (570.0, 620.0, 650.0)]
    assert not differs(first, other)
    assert differs([first[1]], [other[1]])


def test_the_difference_is_of_the_means():
    found = relative_difference([np.full(10, 200.0)], [np.full(10, 150.0)])
    assert list(found) == pytest.approx([-0.25] * 3)


def test_few_observations_have_a_difference_and_no_interval():
    value, low, high = relative_difference([np.full(4, 200.0)], [np.full(10, 150.0)])
    assert value == pytest.approx(-0.25)
    assert low is None and high is None


def test_the_same_data_always_give_the_same_interval():
    dice = np.random.default_rng(4)
    first, other = [run(dice)], [run(dice)]
    assert relative_difference(first, other) == relative_difference(first, other)


def test_a_days_seconds_fit_in_memory_and_keep_their_mean():
    day = np.tile([100.0, 300.0], 43_200)
    value, low, high = relative_difference([day], [day * 1.1])
    assert value == pytest.approx(0.1)
    assert low == pytest.approx(0.1, abs=0.01) and high == pytest.approx(0.1, abs=0.01)
