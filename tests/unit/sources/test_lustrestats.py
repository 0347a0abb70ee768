"""The texts of Lustre clients, of three versions."""

from pathlib import Path

import pytest

from ioprof.sources.lustrestats import (
    app_counters,
    fast_read_counters,
    metadata_counters,
    parse_cache,
    parse_rpc_sizes,
    parse_stats,
    readahead_counters,
    wire_counters,
)

DATA = Path(__file__).parents[2] / "data" / "lustre"


def stats(name):
    return parse_stats((DATA / name).read_bytes())


def test_2_10_counts_calls_and_bytes_and_keeps_no_times():
    found = stats("llite_stats_2.10.txt")
    assert app_counters(found) == {
        "requested_bytes_total": 2_684_354_560,
        "read_calls_total": 2560,
        "read_time_seconds_total": None,
        "write_bytes_total": 10_485_760,
        "write_calls_total": 10,
        "page_fault_calls_total": None,
        "page_fault_time_seconds_total": None,
    }
    assert metadata_counters(found) == {
        "open_operations_total": 136,
        "getattr_operations_total": 41,
        "readdir_operations_total": 0,  # what was never counted is not printed
        "metadata_operations_total": 177,
        "metadata_time_seconds_total": None,
    }
    assert found.age_s is None
    assert fast_read_counters(found) is None


def test_2_15_times_every_operation():
    found = stats("llite_stats_2.15.txt")
    assert app_counters(found) == {
        "requested_bytes_total": 10_737_418_240,
        "read_calls_total": 10_240,
        "read_time_seconds_total": pytest.approx(20.48),
        "write_bytes_total": 4_194_304,
        "write_calls_total": 4,
        "page_fault_calls_total": 16_384,
        "page_fault_time_seconds_total": pytest.approx(3.2768),
    }
    assert metadata_counters(found) == {
        "open_operations_total": 1281,
        "getattr_operations_total": 1290,
        "readdir_operations_total": 60,
        "metadata_operations_total": 2631,
        "metadata_time_seconds_total": pytest.approx(0.186011),  # 128,100 + 23,170 + 34,741 us
    }
    assert found.age_s == pytest.approx(9783.271040288)


def test_2_17_tells_fast_reads_and_writes_usecs():
    found = stats("llite_stats_2.17.txt")
    counters = app_counters(found)
    assert counters["requested_bytes_total"] == 10_737_418_240
    assert counters["read_time_seconds_total"] == pytest.approx(20.48)
    assert counters["write_bytes_total"] == 0
    assert fast_read_counters(found) == {
        "cache_hit_bytes_total": 2_147_483_648,
        "cache_hits_total": 2048,
    }
    assert found.age_s == pytest.approx(10_000.271040288)


def test_the_wire_is_counted_for_each_ost():
    assert wire_counters(stats("osc_stats.txt")) == {
        "read_bytes_total": 10_737_418_240,
        "read_operations_total": 10_240,
        "read_time_seconds_total": pytest.approx(20.48),
        "write_bytes_total": 0,
        "write_operations_total": 0,
    }


def test_pages_found_and_missed():
    assert readahead_counters(stats("read_ahead_stats.txt")) == {
        "page_hits_total": 2_490_368,
        "page_misses_total": 131_072,
        "readahead_pages_total": 2_490_368,
    }


def test_the_cache_is_in_mebibytes():
    assert parse_cache((DATA / "max_cached_mb.txt").read_bytes()) == {
        "cache_used_bytes": 5_364_514_816,  # 5,116 MiB
        "cache_limit_bytes": 33_621_540_864,  # 32,064 MiB
    }
    assert parse_cache(b"128\n") == {"cache_used_bytes": None, "cache_limit_bytes": None}


def test_request_sizes_are_pages_of_this_machine():
    text = (DATA / "osc_rpc_stats.txt").read_bytes()
    counts = parse_rpc_sizes(text, page_bytes=4096)
    assert {name: n for name, n in counts.items() if n} == {
        "read_requests_up_to_4096_total": 240,
        "read_requests_up_to_1048576_total": 10_000,
    }
    large = parse_rpc_sizes(text, page_bytes=65_536)
    assert large["read_requests_up_to_16777216_total"] == 10_000
    with pytest.raises(ValueError, match="no table"):
        parse_rpc_sizes(b"read RPCs in flight: 0\n", page_bytes=4096)


def test_sizes_beyond_the_largest_bucket_are_added_up():
    text = b"pages per rpc  rpcs\n8192:  3 1 1 | 0 0 0\n16384:  4 1 1 | 0 0 0\n"
    assert parse_rpc_sizes(text, page_bytes=4096)["read_requests_above_16777216_total"] == 7


def test_rows_of_bytes_and_of_times_are_told_apart():
    """DDNStorage/LustrePerfMon#26, pcpiela/collectl-lustre#1: read_bytes was taken for read."""
    found = parse_stats(
        b"snapshot_time             1602841753.046578144 secs.nsecs\n"
        b"read_bytes                10556773 samples [bytes] 1 16777216 41809545646900\n"
        b"write_bytes               29461907 samples [bytes] 1 8388608 12108075547325\n"
        b"read                      9322645 samples [usec] 0 2452935 439997359929\n"
        b"ioctl                     13327 samples [reqs]\n"
        b"open                      67055484 samples [usecs] 2 83685 1927837166 345604934246\n"
    )
    counters = app_counters(found)
    assert counters["requested_bytes_total"] == 41_809_545_646_900
    assert counters["read_calls_total"] == 10_556_773
    assert counters["read_time_seconds_total"] == pytest.approx(439_997.359929)
    assert metadata_counters(found)["open_operations_total"] == 67_055_484
    assert found.rows[b"ioctl"].total is None


@pytest.mark.parametrize("unit", [b"usec", b"usecs"])
@pytest.mark.parametrize("more", [b"", b" 345604934246"])
@pytest.mark.parametrize("colon", [b"", b":"])
@pytest.mark.parametrize("kind", [b"secs.nsecs", b"secs.usecs"])
def test_units_columns_and_times_of_every_version_are_read(unit, more, colon, kind):
    """whamcloud/lustrefs-exporter#53 and #103, ovis-hpc/ldms#1648 and #1649."""
    text = (
        b"snapshot_time%(colon)s  1602841753.5 %(kind)s\n"
        b"start_time%(colon)s  1602841750.0 %(kind)s\n"
        b"open  10 samples [%(unit)s] 2 83685 3000000%(more)s\n"
    ) % {b"colon": colon, b"kind": kind, b"unit": unit, b"more": more}
    found = parse_stats(text)
    assert found.age_s == pytest.approx(3.5)
    counters = metadata_counters(found)
    assert counters["open_operations_total"] == 10
    assert counters["metadata_time_seconds_total"] == pytest.approx(3.0)


def test_nothing_read_yet_is_zero_in_a_whole_text_only():
    fresh = app_counters(parse_stats(b"snapshot_time 1.5 secs.nsecs\n"))
    assert fresh["requested_bytes_total"] == 0
    assert fresh["read_time_seconds_total"] is None, "this version may keep no times"
    assert set(app_counters(parse_stats(b"")).values()) == {None}


def test_a_torn_number_is_none():
    found = parse_stats(
        b"snapshot_time 1.5 secs.nsecs\n"
        b"read_bytes 12 samples [bytes] 1 2 3x\n"
        b"open 1x samples [reqs]\n"
    )
    assert app_counters(found)["requested_bytes_total"] is None
    assert app_counters(found)["read_calls_total"] == 12
    assert metadata_counters(found)["metadata_operations_total"] is None
