import pytest

from ioprof.analysis.counters import CounterLog, Growth, total
from ioprof.record.store import NodeRecord, gathered
from tests.unit.analysis.records import GONE, table

DEVICE = ("block.diskstats", "vda")
BYTES = "read_bytes_total"


def device(values, *, times=None, interval_s=1.0, **more) -> NodeRecord:
    """The device's bytes at 0 s, 1 s, 2 s …"""
    times = times or [float(i) for i in range(len(values))]
    return table({DEVICE: {BYTES: values}}, times=times, interval_s=interval_s, **more)


def grown(node, start_s, end_s, *, whole=False, name=BYTES) -> Growth:
    return CounterLog(node).growth(*DEVICE, name, start_s=start_s, end_s=end_s, whole=whole)


def test_a_counter_is_interpolated_to_the_edges_of_the_span():
    # At 0.5 s half of the first 100: 50. At 2.25 s 300 + a quarter of 400: 400. 400 − 50.
    assert grown(device([0, 100, 300, 700]), 0.5, 2.25) == Growth(value=350.0)


def test_edges_on_a_look_need_no_interpolation():
    assert grown(device([5, 105, 305, 705]), 1.0, 3.0).value == 600.0


def test_a_whole_span_reaches_to_the_looks_around_it():
    # From the look at 0 s to the look at 3 s.
    assert grown(device([0, 100, 300, 700]), 0.5, 2.25, whole=True).value == 700.0


def test_a_counter_that_stands_still_grew_by_zero():
    assert grown(device([42, 42, 42, 42]), 0.5, 2.5) == Growth(value=0.0)


def test_a_reset_counter_has_no_growth_and_says_so():
    found = grown(device([1000, 2000, 10, 500]), 0.5, 2.5)
    assert found.value is None
    assert found.reason is not None and "reset" in found.reason


@pytest.mark.parametrize("whole", [False, True])
def test_a_reset_is_seen_even_when_the_counter_ends_higher_than_it_began(whole):
    found = grown(device([1000, 2000, 10, 9000]), 0.0, 3.0, whole=whole)
    assert found.value is None


def test_a_32_bit_counter_that_wraps_is_not_taken_for_a_small_or_negative_growth():
    found = grown(device([2**32 - 4096, 2**32 - 512, 2048, 8192]), 0.0, 3.0)
    assert found.value is None
    assert found.reason is not None and "reset" in found.reason


def test_a_reset_outside_the_span_does_no_harm():
    # It falls between 0 s and 1 s; the span begins at 1 s.
    assert grown(device([9000, 100, 300, 700]), 1.0, 3.0).value == 600.0


def test_a_device_that_was_unplugged_has_no_growth():
    # Seen at 0 … 2 s of 0 … 29 s, and 12 looks missing in a row are no sampler's delay.
    found = grown(device([0, 100, 200] + [GONE] * 27), 0.0, 29.0)
    assert found.value is None
    assert found.reason == "vda was not seen for the whole window"


def test_a_device_that_came_late_has_no_growth():
    found = grown(device([GONE] * 20 + [0.0] * 10), 0.0, 29.0)
    assert found.value is None


def test_a_few_looks_missing_at_the_edge_are_the_samplers_delay():
    assert grown(device([0, 100, 200, 300, GONE, GONE]), 0.0, 5.0).value == 300.0


def test_a_source_that_could_not_be_read_says_why():
    node = device([0, 1], unavailable={"process.io": "permission denied"})
    found = CounterLog(node).growth(
        "process.io", "tree", "requested_bytes_total", start_s=0, end_s=1, whole=True
    )
    assert found == Growth(value=None, reason="permission denied")


def test_a_source_that_nobody_looked_for_was_not_recorded():
    found = CounterLog(device([0, 1])).growth("nfs", "/data", BYTES, start_s=0, end_s=1, whole=True)
    assert found == Growth(value=None, reason="nfs was not recorded")


def test_a_counter_that_this_kernel_does_not_keep_is_named():
    found = grown(device([None, None, None]), 0.0, 2.0)
    assert found.value is None
    assert found.reason is not None and "does not keep read_bytes_total" in found.reason


def test_an_instance_that_was_declared_and_never_read_has_no_growth():
    found = grown(device([GONE, GONE, GONE]), 0.0, 2.0)
    assert found.value is None and found.reason


def test_without_a_tick_nothing_grew_and_nothing_fails():
    node = device([0, 1])
    empty = gathered([node.header, *(columns.series for columns in node.columns)])
    assert grown(empty, 0.0, 1.0).value is None


def test_a_sum_needs_all_its_parts():
    assert total([Growth(value=1.0), Growth(value=2.0)]) == Growth(value=3.0)
    lost = Growth(value=None, reason="vdb was not seen for the whole window")
    assert total([Growth(value=1.0), lost]) == lost
