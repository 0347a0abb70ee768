"""One process tree laid out as a folder of files."""

import os

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.descendants import Descendants, parse_status
from ioprof.sources.process import ProcessSource, find
from ioprof.sources.source import Roots, Target
from ioprof.sources.tree import Parenting


def look(*arguments, **named):
    return find(*arguments, **named)


class Proc:
    """A /proc with what the source reads of it."""

    def __init__(self, root):
        self.root = root
        self.roots = Roots(proc=root)

    def process(self, pid, parent, rchar=0, read_bytes=0, *, group=None, ignored=0, state="S"):
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "io").write_text(
            f"rchar: {rchar}\nwchar: 1\nsyscr: 2\nsyscw: 3\n"
            f"read_bytes: {read_bytes}\nwrite_bytes: 4\ncancelled_write_bytes: 5\n"
        )
        (folder / "status").write_text(
            f"Name:\tpython\nUmask:\t0022\nState:\t{state} (sleeping)\nTgid:\t{group or pid}\n"
            f"Ngid:\t0\nPid:\t{pid}\nPPid:\t{parent}\nSigIgn:\t{ignored:016x}\n"
        )

    def last_pid(self, pid):
        (self.root / "loadavg").write_text(f"0.00 0.01 0.05 1/92 {pid}\n")


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


def asked(source):
    reading, _ = source.read()
    return reading.counters["requested_bytes_total"]


def test_one_pass_gives_what_was_asked_and_what_was_fetched(proc):
    """ncabatoff/process-exporter#95, shirou/gopsutil#672: two numbers of two layers, never one."""
    proc.process(10, 1, rchar=100, read_bytes=10)
    source = ProcessSource(Target(root_pid=10), roots=proc.roots)
    source.read()
    proc.process(10, 1, rchar=150, read_bytes=30)
    proc.process(11, 10, rchar=7, read_bytes=4096)
    for _ in range(3):  # without a loadavg, /proc is listed at every third look
        app, client = source.read()
    assert (app.source, app.layer, app.scope) == ("process.io", Layer.APP, Scope.PROCESS)
    assert (client.source, client.layer) == ("process.block", Layer.CLIENT)
    assert app.instance == client.instance == "tree"
    assert app.counters == {
        "requested_bytes_total": 57,
        "read_calls_total": 2,
        "written_bytes_total": 1,
    }
    assert client.counters == {
        "read_bytes_total": 20 + 4096,
        "write_bytes_total": 4,
        "cancelled_write_bytes_total": 5,
    }
    assert app.gauges == {"processes": 1, "unreadable_processes": 0}
    assert "FUSE and network" in (client.note or "")
    source.close()


def test_strangers_and_excluded_processes_are_left_out(proc):
    proc.process(1, 0, rchar=10**9)
    proc.process(10, 1)
    source = ProcessSource(Target(root_pid=10, excluded_pids=frozenset((20,))), roots=proc.roots)
    source.read()
    proc.process(20, 10, rchar=1000)
    proc.process(21, 20, rchar=1000)
    proc.process(30, 1, rchar=1000)
    proc.process(40, 10, rchar=5)
    for _ in range(3):
        total = asked(source)
    assert total == 5
    source.close()


def test_a_process_that_may_not_be_read_is_counted_and_the_others_go_on(proc):
    """giampaolo/psutil#1381, #606, snakemake/snakemake#2278:
    one refusal dropped the whole sample."""
    proc.process(10, 1)
    source = ProcessSource(Target(root_pid=10), roots=proc.roots)
    source.read()
    proc.process(11, 10, rchar=5)
    proc.process(12, 10)
    (proc.root / "12" / "io").unlink()
    (proc.root / "12" / "io").mkdir()  # opens, and cannot be read
    for _ in range(3):
        reading, _ = source.read()
    assert reading.counters["requested_bytes_total"] == 5
    assert reading.gauges == {"processes": 2, "unreadable_processes": 1}
    source.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="needs a user who is refused: root is not")
def test_a_root_of_another_user_is_unavailable_with_a_remedy():
    (found,) = look(Target(root_pid=1))
    assert isinstance(found, Unavailable)
    assert "Permission denied" in found.reason


def test_a_root_that_is_gone_is_unavailable(proc):
    (found,) = look(Target(root_pid=10), roots=proc.roots)
    assert isinstance(found, Unavailable)
    assert found.source == "process.io"
    assert "No such file" in found.reason


def test_a_root_without_counters_is_unavailable(proc):
    proc.process(10, 1)
    (proc.root / "10" / "io").write_text("rchar: 1\n")
    (found,) = look(Target(root_pid=10), roots=proc.roots)
    assert isinstance(found, Unavailable)
    assert "wchar" in found.reason


def test_new_processes_are_found_by_the_last_pid_at_once(proc):
    proc.process(10, 1)
    proc.last_pid(10)
    source = ProcessSource(Target(root_pid=10), roots=proc.roots)
    for _ in range(4):
        source.read()
    proc.process(11, 10, rchar=3)
    proc.process(12, 11, rchar=4)
    proc.process(13, 1, rchar=1000, group=10)  # a thread of the root
    proc.last_pid(13)
    assert asked(source) == 7
    source.close()


@pytest.mark.parametrize(("processes", "ticks"), [(0, 1), (64, 1), (80, 2), (512, 12)])
def test_a_large_tree_is_read_as_a_whole_at_fewer_ticks(proc, processes, ticks):
    proc.process(10, 1)
    source = ProcessSource(Target(root_pid=10), roots=proc.roots)
    source.read()
    for pid in range(11, 11 + processes):
        proc.process(pid, 10, rchar=7)
    for _ in range(3):
        total = asked(source)
    assert total == 7 * processes
    assert source.every_ticks == ticks
    source.close()


def test_a_pid_handed_out_before_its_process_shows_is_looked_at_again(proc):
    proc.last_pid(10)
    descendants = Descendants(proc.roots)
    for _ in range(3):
        descendants.new(())
    proc.last_pid(11)
    assert descendants.new(()) == []
    proc.process(11, 10)
    assert descendants.new(()) == [(11, 10)]
    descendants.close()


def test_a_wrapped_pid_makes_it_list_everything(proc):
    proc.last_pid(4_000_000)
    descendants = Descendants(proc.roots)
    for _ in range(3):
        descendants.new(())
    proc.process(301, 10)
    proc.last_pid(301)
    assert descendants.new(()) == [(301, 10)]
    descendants.close()


def test_a_process_whose_parent_just_ended_is_asked_again(proc):
    descendants = Descendants(proc.roots)
    proc.process(12, 11)  # 11 is gone; soon the root adopts 12
    assert descendants.new((10,)) == [(12, 11)]
    proc.process(12, 10)
    found = [descendants.new((10,)) for _ in range(3)]
    assert found[-1] == [(12, 10)]
    descendants.close()


def test_a_folder_that_cannot_be_listed_finds_nothing(tmp_path):
    assert Descendants(Roots(proc=tmp_path / "nothing")).new(()) == []


def test_parenting_is_read_from_the_status(proc):
    proc.process(10, 1)
    proc.process(11, 1, ignored=1 << 16)
    proc.process(12, 1, state="Z")
    descendants = Descendants(proc.roots)
    assert descendants.parenting(10) is Parenting.WAITS
    assert descendants.parenting(11) is Parenting.IGNORES
    assert descendants.parenting(12) is Parenting.DEAD
    assert descendants.parenting(13) is Parenting.DEAD


@pytest.mark.parametrize("text", [b"Name:\tx\nTgid:\t1\n", b"x\nTgid:\t1\nPPid:\tnone\n"])
def test_a_status_without_parent_is_no_status(text):
    assert parse_status(text) is None
