"""The sampler on a clock of the test's own, and as the process it is in use."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ioprof.clock import MonotonicClock
from ioprof.errors import MeasureError
from ioprof.record.header import ClockAnchor, NodeHeader
from ioprof.record.nodefile import Recording
from ioprof.record.reading import Layer, Reading, Scope, Series, Tick, Unavailable
from ioprof.record.store import node_lines, read_node
from ioprof.sampler import Sampler, SamplerSpec, find_sources
from ioprof.samplerprocess import SamplerProcess, _environment

HEADER = NodeHeader(
    format_version=1,
    node=0,
    hostname="h",
    boot_id="b",
    pid=1,
    clock=ClockAnchor(monotonic_s=100.0, wall_s=1.7e9),
    interval_s=0.1,
    data_path=None,
    cpus=(0,),
)


class FakeClock:
    """Time moves when somebody sleeps, or when a source says that it took some."""

    def __init__(self, now_s=100.0):
        self.time_s = now_s

    def now_s(self):
        return self.time_s

    def sleep_until(self, deadline_s):
        self.time_s = max(self.time_s, deadline_s)


class FakeSource:
    """Hands out the next of its looks; each look is a dict of instance → bytes."""

    name = "fake"

    def __init__(self, looks, *, every_ticks=1, effect=lambda n: None):
        self.looks = looks
        self.every_ticks = every_ticks
        self.effect = effect
        self.reads = 0
        self.closed = False

    def read(self):
        self.effect(self.reads)
        look = self.looks[min(self.reads, len(self.looks) - 1)]
        self.reads += 1
        for instance, value in look.items():
            yield Reading(
                source=self.name,
                instance=instance,
                layer=Layer.WIRE,
                scope=Scope.DEVICE,
                counters={"read_bytes_total": value},
                gauges={"in_flight": None},
            )

    def close(self):
        self.closed = True


def sample(tmp_path, *found, ticks, clock=None, interval_s=0.1):
    """Run a sampler for `ticks` grid points and the last one after the stop; read it back."""
    clock = clock or FakeClock()
    path = tmp_path / "node-0.jsonl"
    visits = iter(range(10**6))
    readies = []
    cpu = iter((1.0, 1.25))
    with path.open("wb") as file:
        recording = Recording(file, header=HEADER)
        sampler = Sampler(
            recording, found, interval_s=interval_s, clock=clock, cpu_s=lambda: next(cpu)
        )
        sampler.run(
            stopped=lambda: next(visits) >= ticks, ready=lambda: readies.append(clock.now_s())
        )
        sampler.close()
    assert readies == [100.0]
    lines = list(node_lines(path))
    of = {kind: [line for line in lines if isinstance(line, kind)] for kind in map(type, lines)}
    return SimpleNamespace(
        series=of.get(Series, []),
        ticks=of.get(Tick, []),
        unavailable=tuple(of.get(Unavailable, [])),
        end=lines[-1],
    )


def test_ticks_sit_on_the_grid_and_the_end_says_the_cost(tmp_path):
    source = FakeSource([{"vda": 1}, {"vda": 2}, {"vda": 3}])
    node = sample(tmp_path, source, ticks=3)
    assert [t.t_s for t in node.ticks] == pytest.approx([100.0, 100.1, 100.2, 100.3])
    assert [t.values[0].counters for t in node.ticks] == [(1,), (2,), (3,), (3,)]
    assert node.ticks[0].values[0].gauges == (None,)
    assert node.end.ticks == 4
    assert node.end.missed_ticks == 0
    assert node.end.cpu_s == 0.25
    assert source.closed


def test_missed_grid_points_are_counted_and_the_grid_does_not_drift(tmp_path):
    clock = FakeClock()

    def slow_once(read):
        if read == 1:
            clock.time_s += 0.35  # from 100.1 to 100.45: 100.2 and 100.3 are missed

    node = sample(tmp_path, FakeSource([{"vda": 1}], effect=slow_once), ticks=4, clock=clock)
    assert [t.t_s for t in node.ticks] == pytest.approx([100.0, 100.1, 100.45, 100.5, 100.6])
    assert node.end.missed_ticks == 2


def test_an_instance_that_comes_later_is_declared_later(tmp_path):
    node = sample(tmp_path, FakeSource([{"a": 1}, {"a": 2, "b": 7}]), ticks=2)
    assert [(s.id, s.instance) for s in node.series] == [(0, "a"), (1, "b")]
    assert [len(t.values) for t in node.ticks] == [1, 2, 2]
    lines = (tmp_path / "node-0.jsonl").read_text().splitlines()
    assert ['"instance":"b"' in line for line in lines].index(True) > 2


def test_an_instance_that_is_gone_leaves_a_gap_and_keeps_its_series(tmp_path):
    node = sample(tmp_path, FakeSource([{"a": 1, "b": 5}, {"a": 2}, {"a": 3, "b": 6}]), ticks=3)
    assert [[v.id for v in t.values] for t in node.ticks] == [[0, 1], [0], [0, 1], [0, 1]]
    assert len(node.series) == 2


def test_a_source_may_be_read_at_every_nth_tick(tmp_path):
    node = sample(tmp_path, FakeSource([{"a": 1}]), FakeSource([{"g": 1}], every_ticks=3), ticks=5)
    # Ticks 0 and 3, and the last one, at which everything is read.
    assert [len(t.values) for t in node.ticks] == [2, 1, 1, 2, 1, 2]


@pytest.mark.parametrize(
    ("interval_s", "reads"), [(0.05, [2, 1, 1, 1, 2, 2]), (0.2, [2] * 6), (1.0, [2] * 6)]
)
def test_a_rare_source_is_read_as_often_in_time_on_any_grid(tmp_path, interval_s, reads):
    rare = FakeSource([{"g": 1}], every_ticks=2)
    node = sample(tmp_path, FakeSource([{"a": 1}]), rare, ticks=5, interval_s=interval_s)
    assert [len(t.values) for t in node.ticks] == reads


def test_a_source_may_change_its_pace_while_it_is_read(tmp_path):
    source = FakeSource([{"g": 1}])

    def grow(read):
        source.every_ticks = 1 if read < 2 else 3

    source.effect = grow
    node = sample(tmp_path, source, ticks=7)
    # Ticks 0, 1 and 2, of which the last changed it; 3, 6, and the one after the stop.
    assert [len(t.values) for t in node.ticks] == [1, 1, 1, 1, 0, 0, 1, 1]


def test_a_rare_source_whose_turn_was_missed_is_read_at_the_next_tick(tmp_path):
    clock = FakeClock()

    def slow_once(read):
        if read == 2:
            clock.time_s += 0.25  # tick 3 is missed, tick 4 is late

    quick = FakeSource([{"a": 1}], effect=slow_once)
    node = sample(tmp_path, quick, FakeSource([{"g": 1}], every_ticks=3), ticks=4, clock=clock)
    assert [len(t.values) for t in node.ticks] == [2, 1, 1, 2, 2]


def test_what_is_unavailable_is_written_with_its_reason(tmp_path):
    node = sample(tmp_path, Unavailable(source="nvml", reason="no driver"), ticks=1)
    assert node.unavailable == (Unavailable(source="nvml", reason="no driver"),)
    assert len(node.ticks) == 2


def test_a_source_that_fails_says_so_once_and_takes_no_other_with_it(tmp_path):
    def fail(read):
        raise OSError(5, "Input/output error")

    broken, sound = FakeSource([{"x": 1}], effect=fail), FakeSource([{"a": 1}])
    broken.name = "broken"
    node = sample(tmp_path, broken, sound, ticks=3)
    assert [u.source for u in node.unavailable] == ["broken"]
    assert "Input/output error" in node.unavailable[0].reason
    assert [len(t.values) for t in node.ticks] == [1, 1, 1, 1]


def test_lines_reach_the_file_at_the_first_tick_and_every_second():
    class Counting(io.BytesIO):
        flushes = 0

        def flush(self):
            self.flushes += 1

    file = Counting()
    recording = Recording(file, header=HEADER)
    for tenth in range(25):
        recording.tick(100.0 + tenth / 10, ())
    assert file.flushes == 3  # 100.0, 101.0, 102.0


def spec_of(tmp_path, **changes):
    facts = {
        "node": 0,
        "interval_s": 0.02,
        "path": tmp_path / "node-0.jsonl",
        "data_path": tmp_path,
        "root_pid": os.getpid(),
        "cpus": tuple(sorted(os.sched_getaffinity(0))),
    }
    return SamplerSpec(**{**facts, **changes})


def test_the_process_takes_its_last_tick_after_the_stop(tmp_path):
    data = tmp_path / "data"
    data.write_bytes(bytes(1_000_003))
    clock = MonotonicClock()
    with SamplerProcess.start(spec_of(tmp_path)) as process:
        clock.sleep_until(clock.now_s() + 0.1)
        fd = os.open(data, os.O_RDONLY)
        for _ in range(7):
            assert len(os.pread(fd, 2_000_000, 0)) == 1_000_003
        os.close(fd)
        process.stop()
        assert process.failure is None
    node = read_node(tmp_path / "node-0.jsonl")
    assert node.end is not None
    (asked,) = (c for c in node.columns if c.series.source == "process.io")
    column = asked.series.counters.index("requested_bytes_total")
    values = [row.counters[column] for _, row in asked.rows()]
    assert values[0] == 0
    assert values[-1] == pytest.approx(7 * 1_000_003, rel=0.01)
    # Sources that are read at times of their own, where there are any, add ticks of theirs.
    assert node.ticks >= node.end.ticks >= 3
    assert node.end.cpu_s > 0
    assert node.header.pid == process.pid != os.getpid()
    assert node.header.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_the_process_outlives_interrupt_and_terminate(tmp_path):
    clock = MonotonicClock()
    with SamplerProcess.start(spec_of(tmp_path)) as process:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(process.pid, number)
        clock.sleep_until(clock.now_s() + 0.1)
        assert os.getsid(process.pid) == process.pid
    assert process.failure is None
    assert read_node(tmp_path / "node-0.jsonl").end is not None


def test_the_process_ends_by_itself_when_its_recorder_dies(tmp_path):
    recorder = (
        "import os, sys; from ioprof.sampler import SamplerSpec\n"
        "from ioprof.samplerprocess import SamplerProcess\n"
        "spec = SamplerSpec.decode(sys.argv[1].encode())\n"
        "print(SamplerProcess.start(spec).pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    spec = spec_of(tmp_path).encode().decode()
    ran = subprocess.run(
        [sys.executable, "-c", recorder, spec],
        stdout=subprocess.PIPE,
        env=_environment(),
    )
    assert ran.returncode == -9
    clock = MonotonicClock()
    deadline_s = clock.now_s() + 10
    while clock.now_s() < deadline_s:
        node = read_node(tmp_path / "node-0.jsonl")
        if node.end is not None:
            break
        clock.sleep_until(clock.now_s() + 0.05)
    assert node.end is not None


def test_a_killed_process_leaves_a_readable_file_and_says_so(tmp_path):
    with SamplerProcess.start(spec_of(tmp_path)) as process:
        MonotonicClock().sleep_until(MonotonicClock().now_s() + 1.2)
        os.kill(process.pid, signal.SIGKILL)
        process.stop()
        assert process.failure == "exit status -9"
    node = read_node(tmp_path / "node-0.jsonl")
    assert node.truncated
    assert node.ticks > 10


def test_a_process_that_cannot_write_says_why(tmp_path):
    with pytest.raises(MeasureError, match=r"No such file or directory: .*nowhere"):
        SamplerProcess.start(spec_of(tmp_path, path=tmp_path / "nowhere" / "node-0.jsonl"))


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    (tmp_path / "node-0.jsonl").write_text("precious")
    with pytest.raises(MeasureError, match="File exists"):
        SamplerProcess.start(spec_of(tmp_path))
    assert (tmp_path / "node-0.jsonl").read_text() == "precious"


def test_a_data_path_whose_mount_cannot_be_told_costs_a_line_and_no_tick(tmp_path):
    found = find_sources(spec_of(tmp_path, data_path=tmp_path / "gone"), sampler_pid=0)
    reasons = [one for one in found if isinstance(one, Unavailable) and one.source == "mount"]
    assert len(reasons) == 1
    assert any(not isinstance(one, Unavailable) and one.name == "process" for one in found)
    for one in found:
        if not isinstance(one, Unavailable):
            one.close()


def test_the_sampler_process_loads_nothing_heavy():
    code = (
        "import sys, ioprof.sampler, ioprof.sources.registry, ioprof.sources.mount\n"
        "heavy = {'numpy', 'rich', 'typer', 'matplotlib', 'scipy', 'psutil', 'torch', 'pynvml'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        env=_environment(),
    )
    assert ran.returncode == 0, ran.stderr.decode()
