import math

import pytest

from ioprof.analysis.estimate import estimate, pooled


def test_median_and_deviation_are_those_of_the_values():
    # Sorted 1 2 4 7 100: median 4; distances 3 2 0 3 96, sorted 0 2 3 3 96: median 3.
    found = estimate([7.0, 1.0, 100.0, 2.0, 4.0])
    assert found is not None
    assert (found.median, found.mad, found.n) == (4.0, 3.0, 5)


def test_the_interval_encloses_the_median_and_stays_among_the_values():
    found = estimate([1.0, 2.0, 4.0, 7.0, 100.0])
    assert found is not None and found.low is not None and found.high is not None
    assert 1.0 <= found.low < 4.0 < found.high <= 100.0


def test_the_interval_of_many_values_is_narrow_and_where_theory_puts_it():
    # Of 0…100 the 95 % interval of the median lies near the ranks 50 ± 1.96·√101/2 = 50 ± 9.85.
    found = estimate([float(i) for i in range(101)])
    assert found is not None
    assert found.low == pytest.approx(40.15, abs=2.0)
    assert found.high == pytest.approx(59.85, abs=2.0)


def test_the_same_values_always_give_the_same_interval():
    values = [0.21, 0.2, 0.25, 0.19, 0.22, 0.3]
    assert estimate(values) == estimate(values)


def test_equal_values_have_no_spread():
    found = estimate([0.4] * 6)
    assert found is not None
    assert (found.median, found.mad, found.low, found.high) == (0.4, 0.0, 0.4, 0.4)


@pytest.mark.parametrize("values", [[5.0], [4.0, 6.0]])
def test_one_or_two_values_give_a_median_and_no_interval(values):
    found = estimate(values)
    assert found is not None
    assert (found.median, found.n, found.low, found.high) == (5.0, len(values), None, None)


def test_no_values_give_no_estimate():
    assert estimate([]) is None


def test_values_that_are_no_numbers_are_left_out():
    found = estimate([math.nan, 3.0, math.inf])
    assert found is not None
    assert (found.median, found.n) == (3.0, 1)
    assert estimate([math.nan]) is None


def test_repeats_are_pooled_value_by_value():
    # 1 2 | 3 4 5 → 1 2 3 4 5, and not the median of two medians (1.5 and 4 → 2.75).
    found = pooled([[1.0, 2.0], [3.0, 4.0, 5.0]])
    assert found is not None
    assert (found.median, found.n) == (3.0, 5)
