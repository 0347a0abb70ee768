"""GPUDirect Storage: texts of the driver, and gds_stats as a program in a folder."""

from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.gds import CufileSource, find
from ioprof.sources.gdsstats import parse_cufile, parse_driver
from ioprof.sources.source import Roots, Target

DATA = Path(__file__).parents[2] / "data" / "gpu"
ENABLED = (DATA / "nvidia_fs_stats_enabled.txt").read_bytes()
DISABLED = (DATA / "nvidia_fs_stats_disabled.txt").read_bytes()
CUFILE = (DATA / "gds_stats_l3.txt").read_bytes()


def look(*arguments, **named):
    return find(*arguments, **named)


@pytest.fixture
def roots(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return Roots(proc=tmp_path / "proc", sys=tmp_path / "sys", root=tmp_path)


def driver(roots, text):
    file = roots.proc / "driver" / "nvidia-fs" / "stats"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text)
    return file


def test_reads_are_counted_in_mib_and_the_second_line_is_a_rate():
    """NVIDIA/gds-nvidia-fs#46, #78: what GDS reads shows in no counter of the page cache."""
    stats = parse_driver(ENABLED)
    assert stats.counting
    assert stats.counters == {
        "read_bytes_total": 10_737_418_240,
        "read_operations_total": 10_240,
        "read_errors_operations_total": 0,
        "write_bytes_total": 0,
        "write_operations_total": 0,
    }
    assert stats.gauges == {
        "read_bytes_per_second": 6_304_038_912,
        "read_latency_mean_seconds": pytest.approx(160e-6),
    }


def test_with_statistics_off_nothing_is_zero():
    """NVIDIA/gds-nvidia-fs#78: the short form has errors alone."""
    stats = parse_driver(DISABLED)
    assert not stats.counting
    assert stats.counters == {
        "read_bytes_total": None,
        "read_operations_total": None,
        "read_errors_operations_total": 0,
        "write_bytes_total": None,
        "write_operations_total": None,
    }
    assert set(stats.gauges.values()) == {None}


def test_sparse_reads_are_not_reads():
    text = b"Sparse Reads : n=6 ok=6 readMiB=9\n" + DISABLED
    assert parse_driver(text).counters["read_bytes_total"] is None


@pytest.mark.parametrize("word", [b"N/A", b"[N/A]", b"", b"-1", b"1.5"])
def test_what_is_not_a_number_is_none(word):
    """anderskm/gputil#5: a text in the place of a number is no reading, and no 0."""
    text = ENABLED.replace(b"readMiB=10240", b"readMiB=" + word)
    counters = parse_driver(text).counters
    assert counters["read_bytes_total"] is None
    assert counters["read_operations_total"] == 10_240


def test_the_node_s_reads_past_the_page_cache(roots):
    file = driver(roots, ENABLED)
    (source,) = look(Target(root_pid=1), roots=roots)
    (reading,) = source.read()
    assert (reading.source, reading.instance) == ("gds", "host")
    assert (reading.layer, reading.scope) == (Layer.CLIENT, Scope.HOST)
    assert reading.counters["read_bytes_total"] == 10_737_418_240
    file.write_bytes(DISABLED)
    (reading,) = source.read()
    assert reading.counters["read_bytes_total"] is None
    source.close()


def test_off_it_names_the_switch(roots):
    driver(roots, DISABLED)
    (found,) = look(Target(root_pid=1), roots=roots)
    assert isinstance(found, Unavailable)
    assert "rw_stats_enabled" in (found.remedy or "")


def test_a_file_that_cannot_be_read_is_a_reason(roots):
    (roots.proc / "driver" / "nvidia-fs" / "stats").mkdir(parents=True)
    (found,) = look(Target(root_pid=1), roots=roots)
    assert "cannot be read: Is a directory" in found.reason


def test_without_the_driver_and_the_program_there_is_nothing_to_say(roots):
    assert look(Target(root_pid=1), roots=roots) == []


def test_what_one_process_read_by_gpu():
    assert parse_cufile(CUFILE) == {
        0: {
            "read_bytes_total": 7_656_701_952,
            "read_operations_total": 3651,
            "compat_read_operations_total": 0,
            "read_errors_operations_total": 0,
            "write_bytes_total": 0,
            "write_operations_total": 0,
        }
    }


def process(roots, pid, parent, *, libraries=""):
    folder = roots.proc / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "status").write_text(f"Name:\tx\nTgid:\t{pid}\nPPid:\t{parent}\n")
    (folder / "maps").write_text(libraries)
    return folder


def program(roots, script):
    file = roots.root / "usr/local/cuda/gds/tools/gds_stats"
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def test_the_processes_of_the_tree_that_use_cufile_are_asked(roots):
    program(roots, f'[ "$2" = 12 ] && [ "$4" = 3 ] && exec cat {DATA}/gds_stats_l3.txt')
    mapped = "7f00-7f01 r-xp 00000000 08:01 77 /usr/lib/libcufile.so.0\n"
    process(roots, 10, 1)
    process(roots, 12, 10, libraries=mapped)
    process(roots, 13, 10, libraries=mapped)  # excluded
    process(roots, 14, 1, libraries=mapped)  # not of the tree
    target = Target(root_pid=10, excluded_pids=frozenset((13,)))
    (source,) = look(target, roots=roots)
    (reading,) = source.read()
    source.close()
    assert (reading.source, reading.instance) == ("gds.cufile", "pid 12 gpu 0")
    assert (reading.layer, reading.scope) == (Layer.CLIENT, Scope.PROCESS)
    assert reading.counters["read_bytes_total"] == 7_656_701_952


def test_a_process_that_loads_the_library_later_is_found_and_one_that_ended_left_out(roots):
    tool = program(roots, f"exec cat {DATA}/gds_stats_l3.txt")
    folder = process(roots, 10, 1)
    source = CufileSource(tool, Target(root_pid=10), roots=roots)
    assert list(source.read()) == []
    (folder / "maps").write_text("... /usr/lib/libcufile.so.0\n")
    assert [r.instance for r in source.read()] == ["pid 10 gpu 0"]
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    assert list(source.read()) == []
    source.close()


def test_a_gds_stats_that_fails_says_its_last_words(roots):
    tool = program(roots, 'echo "stats level is 0" >&2; exit 1')
    process(roots, 10, 1, libraries="libcufile.so")
    source = CufileSource(tool, Target(root_pid=10), roots=roots)
    with pytest.raises(OSError, match="stats level is 0"):
        source.read()
    source.close()
