from pathlib import Path

import pytest

from ioprof.sources.pidio import ZERO, parse_io, sum_io

DATA = Path(__file__).parents[2] / "data" / "proc"


def test_the_seven_counters_of_a_recorded_file():
    assert parse_io((DATA / "pid_io.txt").read_bytes()) == (
        323934931,
        323929600,
        632687,
        632675,
        67108864,
        323932160,
        0,
    )


def test_blank_and_unknown_lines_are_passed_over():
    """giampaolo/psutil#1004: a blank line at the end was a ValueError."""
    text = (DATA / "pid_io.txt").read_bytes()
    odd = b"\n" + text.replace(b"wchar:", b"new_counter: 7\nodd line\nwchar:") + b"\n\n"
    assert parse_io(odd) == parse_io(text)


def test_a_missing_counter_is_named():
    with pytest.raises(ValueError, match="syscr"):
        parse_io(b"rchar: 1\nwchar: 1\n")


def test_many_processes_are_added_counter_by_counter():
    text = (DATA / "pid_io.txt").read_bytes()
    assert sum_io([text, text, text]) == tuple(3 * value for value in parse_io(text))


def test_odd_texts_among_many_add_what_they_can():
    text = (DATA / "pid_io.txt").read_bytes()
    assert sum_io([text, b"\n" + text + b"more: 1\n", b"", b"rchar: 5\n"]) == tuple(
        2 * value for value in parse_io(text)
    )


def test_a_torn_number_among_many_is_left_out():
    text = (DATA / "pid_io.txt").read_bytes()
    assert sum_io([text, text.replace(b"632687", b"632H")]) == parse_io(text)


def test_no_process_is_zero():
    assert sum_io([]) == ZERO
