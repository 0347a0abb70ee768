from pathlib import Path

import pytest

from ioprof.record.reading import Unavailable
from ioprof.sources.pressure import find, parse
from ioprof.sources.source import Roots, Target

DATA = Path(__file__).parents[2] / "data" / "proc"


def look(*arguments, **named):
    return find(*arguments, **named)


def test_totals_are_seconds():
    assert parse((DATA / "pressure_io.txt").read_bytes()) == {
        "stall_some_seconds_total": 6.353180,
        "stall_full_seconds_total": 5.523946,
    }


def test_an_old_kernel_has_no_full_line_for_the_cpu():
    assert parse((DATA / "pressure_cpu_old_kernel.txt").read_bytes()) == {
        "stall_some_seconds_total": 14.036781,
        "stall_full_seconds_total": None,
    }


def test_a_line_without_a_total_is_none():
    assert parse(b"some avg10=0.00\nfull total=x\n") == {
        "stall_some_seconds_total": None,
        "stall_full_seconds_total": None,
    }


def test_each_resource_is_a_source_of_its_own(tmp_path):
    folder = tmp_path / "pressure"
    folder.mkdir()
    for name in ("io", "cpu", "memory"):
        (folder / name).write_bytes((DATA / "pressure_io.txt").read_bytes())
    found = look(Target(root_pid=1), roots=Roots(proc=tmp_path))
    assert [s.name for s in found] == ["pressure.io", "pressure.cpu", "pressure.memory"]
    for source in found:
        (reading,) = source.read()
        assert reading.source == source.name
        source.close()


def test_a_kernel_without_it_says_what_would_help(tmp_path):
    found = look(Target(root_pid=1), roots=Roots(proc=tmp_path))
    assert all(isinstance(one, Unavailable) for one in found)
    assert "psi=1" in found[0].remedy


def test_a_file_that_cannot_be_read_says_so(tmp_path):
    (tmp_path / "pressure" / "io").mkdir(parents=True)
    io, *_ = look(Target(root_pid=1), roots=Roots(proc=tmp_path))
    assert isinstance(io, Unavailable)
    assert "Is a directory" in io.reason


@pytest.mark.skipif(not Path("/proc/pressure/io").exists(), reason="this kernel keeps no PSI")
def test_this_kernel_is_read():
    io, *_ = look(Target(root_pid=1))
    (first,) = io.read()
    assert first.counters["stall_some_seconds_total"] >= 0
    io.close()
