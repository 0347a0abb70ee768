import os

import pytest

from ioprof.record.reading import Unavailable
from ioprof.sources.cpu import find, parse
from ioprof.sources.source import Roots, Target

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
#           user nice system idle iowait irq softirq steal guest guest_nice
STAT = """cpu  400 40 400 4000 40 4 4 40 200 0
cpu0 100 10 100 1000 10 1 1 10 50 0
cpu1 200 0 0 2000 0 0 0 0 0 0
cpu3 100 30 300 1000 30 3 3 30 150 0
intr 12345 0 0
ctxt 99
"""


def look(*arguments, **named):
    return find(*arguments, **named)


@pytest.fixture
def stat(tmp_path):
    path = tmp_path / "stat"
    path.write_text(STAT)
    return path


def source_of(stat, cpus):
    (source,) = look(Target(root_pid=1, cpus=cpus), roots=Roots(proc=stat.parent))
    return source


def counters(source):
    (reading,) = source.read()
    return reading.counters


def test_guest_time_is_inside_user_time_and_not_added():
    # 100 + 10 + 100 + 1 + 1 + 10 busy, 10 waiting, 1000 idle
    assert parse(STAT.encode())[0] == (222, 10, 1000)


def test_a_kernel_without_steal_has_none():
    assert parse(b"cpu0 1 2 3 4\n") == {0: (6, 0, 4)}


def test_only_the_cpus_of_the_target_are_summed(stat):
    source = source_of(stat, (0, 1))
    assert counters(source) == {
        "busy_seconds_total": (222 + 200) / TICKS_PER_S,
        "iowait_seconds_total": 10 / TICKS_PER_S,
        "total_seconds_total": (222 + 200 + 10 + 3000) / TICKS_PER_S,
    }
    source.close()


def test_without_cpus_given_all_are_summed(stat):
    source = source_of(stat, ())
    # the third: 100 + 30 + 300 + 3 + 3 + 30 = 466
    assert counters(source)["busy_seconds_total"] == (222 + 200 + 466) / TICKS_PER_S
    source.close()


def test_idle_and_iowait_that_step_back_do_not_read_as_a_reset(stat):
    source = source_of(stat, (0,))
    before = counters(source)
    stat.write_text("cpu0 101 10 100 999 8 1 1 10 50 0\n")
    after = counters(source)
    assert after["busy_seconds_total"] - before["busy_seconds_total"] == pytest.approx(
        1 / TICKS_PER_S
    )
    assert after["iowait_seconds_total"] == before["iowait_seconds_total"]
    assert after["total_seconds_total"] > before["total_seconds_total"]
    source.close()


def test_a_cpu_that_went_offline_makes_the_sum_none(stat):
    source = source_of(stat, (0, 1))
    stat.write_text("cpu0 101 10 100 1000 10 1 1 10 50 0\n")
    assert set(counters(source).values()) == {None}
    source.close()


@pytest.mark.parametrize("text", [None, "cpu  1 2 3 4\n"])
def test_without_single_cpus_it_is_unavailable(tmp_path, text):
    if text is not None:
        (tmp_path / "stat").write_text(text)
    (found,) = look(Target(root_pid=1), roots=Roots(proc=tmp_path))
    assert isinstance(found, Unavailable)
    assert str(tmp_path / "stat") in found.reason


def test_a_torn_line_is_passed_over_and_the_others_read():
    assert set(parse(b"cpu 1\ncpu0 1 2 x\ncpuN 1 2 3\ncpu1 1 2 3 4\nintr 5\n")) == {1}
