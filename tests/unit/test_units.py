"""Numbers for people: base units in, people's units out, and back."""

from __future__ import annotations

import pytest

from ioprof.errors import UsageError
from ioprof.units import (
    format_bandwidth,
    format_bytes,
    format_memory,
    format_percent,
    format_rate,
    format_seconds,
    parse_duration_s,
    parse_size_bytes,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("4096", 4096),
        ("4k", 4000),
        ("10TB", 10**13),
        ("1TiB", 1_099_511_627_776),
        ("512 MiB", 536_870_912),
        ("1.5GB", 1.5e9),
        ("114660.07", 114660.07),
        ("7B", 7),
    ],
)
def test_a_size_takes_decimal_and_binary_suffixes(text, size_bytes):
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "fast", "-1", "10XB", "1e9", "10 GB/s"])
def test_what_is_no_size_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="512MiB"):
        parse_size_bytes(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("100ms", 0.1), ("30s", 30), ("5m", 300), ("2h", 7200), ("1.5", 1.5)]
)
def test_a_duration_takes_the_four_suffixes(text, seconds):
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "3 days", "-1s", "1m30s"])
def test_what_is_no_duration_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="100ms"):
        parse_duration_s(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (114_660, "115 kB"),
        (12_340_000, "12.3 MB"),
        (9_996_000_000, "10.0 GB"),
        (999_600, "1.00 MB"),
        (1.47e9, "1.47 GB"),
        (-2.5e6, "-2.50 MB"),
        (1e18, "1000 PB"),
    ],
)
def test_bytes_on_disk_are_decimal_with_three_digits(value, text):
    assert format_bytes(value) == text


def test_memory_is_binary_and_says_so():
    assert format_memory(1.5 * 2**30) == "1.50 GiB"
    assert format_memory(10**9) == "954 MiB"
    assert format_memory(None) == "–"


def test_bandwidth_is_bytes_per_second():
    # The worked check of the glossary: batch 400 in 0.224 s at 114,660 B per sample.
    assert format_bandwidth(400 / 0.224 * 114_660) == "205 MB/s"
    assert format_bandwidth(None) == "–"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (1785.7, "1,786"), (99.94, "99.9"), (0.5, "0.5"), (0, "0")]
)
def test_a_rate_has_separators_and_three_digits(value, text):
    assert format_rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.000_042, "42 µs"),
        (0.0123, "12.3 ms"),
        (0.315, "315 ms"),
        (0.9996, "1.00 s"),
        (4.2, "4.20 s"),
        (9.996, "10.0 s"),
        (42, "42.0 s"),
        (119.96, "2 min 0 s"),
        (200, "3 min 20 s"),
        (-200, "-3 min 20 s"),
        (-0.004, "-4.0 ms"),
    ],
)
def test_a_duration_is_shown_at_its_own_scale(value, text):
    assert format_seconds(value) == text


def test_a_fraction_is_shown_as_per_cent():
    assert format_percent(0.714) == "71 %"
    assert format_percent(0.004, digits=1) == "0.4 %"
    assert format_percent(None) == "–"
