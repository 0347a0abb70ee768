"""Rates between two looks, worked out by hand; what is not known is None with a reason."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from ioprof.live.headline import headline
from ioprof.live.looks import STALE_S, Look, Looks, Pair
from ioprof.live.processes import Processes, Reader, Top
from ioprof.live.view import View, view
from ioprof.record.reading import Layer, Reading, Role, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.source import Roots

NOBODY = Top(readers=())


class FakeClock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.t_s = 100.0

    def now_s(self) -> float:
        return self.t_s

    def sleep_until(self, deadline_s: float) -> None:
        self.t_s = max(self.t_s, deadline_s)


class FakeSource:
    """Gives, look by look, what it was made with; raises it when that is an error."""

    every_ticks = 1

    def __init__(self, name: str, *looks: list[Reading] | OSError) -> None:
        self.name = name
        self.closed = False
        self._looks = list(looks)

    def read(self):
        said = self._looks.pop(0)
        if isinstance(said, OSError):
            raise said
        return said

    def close(self) -> None:
        self.closed = True


def reading(
    source="block.diskstats",
    instance="vda",
    layer=Layer.WIRE,
    scope=Scope.DEVICE,
    role=Role.TOP,
    gauges=None,
    t_s=None,
    **counters,
):
    return Reading(
        source=source,
        instance=instance,
        layer=layer,
        scope=scope,
        role=role,
        counters=counters,
        gauges=gauges or {},
        t_s=t_s,
    )


def nfs(instance="/mnt/a", *, t_s=None, **counters):
    return reading("nfs.wire", instance, scope=Scope.MOUNT, role=None, t_s=t_s, **counters)


def asked(**counters):
    return reading("nfs.app", "/mnt/a", Layer.APP, Scope.MOUNT, None, **counters)


def tree(unreadable=0, **counters):
    gauges = {"unreadable_processes": unreadable}
    return reading("process.io", "tree", Layer.APP, Scope.PROCESS, None, gauges, **counters)


def seen(*pairs, silent=None):
    """A look two seconds after the one before."""

    def at(t_s, one):
        return msgspec.structs.replace(one, t_s=t_s)

    return Look(
        t_s=12.0,
        pairs=tuple(
            Pair(before=None if before is None else at(10.0, before), now=at(12.0, now))
            for before, now in pairs
        ),
        silent=silent or {},
    )


def every_none_is_explained(shown: View) -> bool:
    names = [n for n in shown.__struct_fields__ if not n.endswith(("_source", "_layer", "_link"))]
    return {n for n in names if getattr(shown, n) is None} == set(shown.reasons)


class TestRates:
    """One look two seconds after another."""

    def test_of_storage_by_hand(self):
        before = reading(
            read_bytes_total=1_000_000, read_operations_total=10, read_time_seconds_total=0.5
        )
        now = reading(
            read_bytes_total=9_000_000, read_operations_total=210, read_time_seconds_total=1.5
        )
        shown = view(seen((before, now)), NOBODY)
        assert shown.storage_read_bytes_per_s == 4_000_000.0
        assert shown.reads_per_s == 100.0
        assert shown.read_request_bytes == 40_000.0
        assert shown.read_latency_s == pytest.approx(0.005)
        assert shown.storage_read_source == "block.diskstats vda (wire, whole device)"
        assert shown.storage_read_layer is Layer.WIRE
        assert every_none_is_explained(shown)

    def test_a_rest_is_a_measured_zero_and_has_no_mean(self):
        still = reading(read_bytes_total=7, read_operations_total=1, read_time_seconds_total=0.25)
        shown = view(seen((still, still)), NOBODY)
        assert shown.storage_read_bytes_per_s == 0.0
        assert shown.reads_per_s == 0.0
        assert shown.read_request_bytes is None
        assert shown.read_latency_s is None
        assert shown.reasons["read_latency_s"] == "nothing was read in this interval"

    @pytest.mark.parametrize(
        ("before", "now"),
        [
            (reading(read_bytes_total=500), reading(read_bytes_total=499)),
            (
                reading(read_bytes_total=500, gauges={"age_seconds": 900.0}),
                reading(read_bytes_total=800, gauges={"age_seconds": 1.0}),
            ),
        ],
        ids=["fell", "younger"],
    )
    def test_a_counter_that_began_anew_has_no_rate(self, before, now):
        shown = view(seen((before, now)), NOBODY)
        assert shown.storage_read_bytes_per_s is None
        assert shown.reasons["storage_read_bytes_per_s"] == (
            "block.diskstats vda began to count anew"
        )
        assert every_none_is_explained(shown)

    def test_what_was_seen_once_has_no_rate(self):
        shown = view(seen((None, reading(read_bytes_total=500))), NOBODY)
        assert shown.storage_read_bytes_per_s is None
        assert "seen once" in shown.reasons["storage_read_bytes_per_s"]

    def test_what_the_kernel_does_not_keep_is_not_zero(self):
        before, now = (reading(read_bytes_total=b, read_operations_total=None) for b in (1, 3))
        shown = view(seen((before, now)), NOBODY)
        assert shown.storage_read_bytes_per_s == 1.0
        assert shown.reads_per_s is None
        assert shown.reasons["reads_per_s"] == (
            "block.diskstats does not count read operations here"
        )

    def test_parts_of_one_mount_are_added_up_and_one_unknown_part_makes_the_sum_unknown(self):
        one = (nfs("/mnt/a x", read_bytes_total=0), nfs("/mnt/a x", read_bytes_total=200))
        two = (nfs("/mnt/a y", read_bytes_total=50), nfs("/mnt/a y", read_bytes_total=100))
        assert view(seen(one, two), NOBODY).storage_read_bytes_per_s == 125.0
        assert view(seen(one, two[::-1]), NOBODY).storage_read_bytes_per_s is None

    def test_a_source_of_its_own_pace_has_its_own_interval(self):
        before, now = nfs(read_bytes_total=0), nfs(read_bytes_total=300)
        pair = Pair(
            before=msgspec.structs.replace(before, t_s=7.0),
            now=msgspec.structs.replace(now, t_s=10.0),
        )
        shown = view(Look(t_s=12.0, pairs=(pair,)), NOBODY)
        assert shown.storage_read_bytes_per_s == 100.0

    def test_of_the_node(self):
        host = {"layer": Layer.HOST, "scope": Scope.HOST, "role": None}
        cpu = [
            reading("cpu", "cpus", busy_seconds_total=b, total_seconds_total=t, **host)
            for b, t in ((10, 100), (11, 104))
        ]
        gpus = [
            (None, reading("nvml", str(n), gauges={"gpu_kernel_busy": busy}, **host))
            for n, busy in enumerate((0.5, 1.0))
        ]
        link = {"layer": Layer.LINK, "scope": Scope.HOST, "role": None}
        links = [
            tuple(
                reading("net", name, receive_bytes_total=b, transmit_bytes_total=0, **link)
                for b in (0, total)
            )
            for name, total in (("lo", 999), ("eth0", 10), ("eth1", 40))
        ]
        shown = view(seen(tuple(cpu), *gpus, *links), NOBODY)
        assert shown.cpu_busy == 0.25
        assert shown.gpu_kernel_busy == 0.75
        assert [gpu.gpu_kernel_busy for gpu in shown.gpus] == [0.5, 1.0]
        assert (shown.receive_link, shown.receive_bytes_per_s) == ("eth1", 20.0)
        assert [one.name for one in shown.links] == ["eth0", "eth1"], "loopback is no link"
        assert every_none_is_explained(shown)

    def test_one_silent_gpu_makes_the_mean_unknown(self):
        host = {"layer": Layer.HOST, "scope": Scope.DEVICE, "role": None}
        gpus = [
            (None, reading("nvml", str(n), gauges={"gpu_kernel_busy": busy}, **host))
            for n, busy in enumerate((0.5, None))
        ]
        shown = view(seen(*gpus), NOBODY)
        assert shown.gpu_kernel_busy is None
        assert every_none_is_explained(shown)

    def test_metadata_of_the_narrowest_scope(self):
        wide = [
            reading("zfs.arc", "host", Layer.CACHE, Scope.HOST, None, metadata_operations_total=n)
            for n in (0, 999)
        ]
        narrow = [nfs(metadata_operations_total=n) for n in (10, 30)]
        shown = view(seen(tuple(wide), tuple(narrow)), NOBODY)
        assert (shown.metadata_ops_per_s, shown.metadata_ops_source) == (10.0, "nfs.wire")

    def test_of_an_empty_look_nothing_is_known_and_everything_is_explained(self):
        silent = {
            "block.diskstats": "fuse.x has no block device under it",
            "process.io": "/proc/1/io cannot be read: Permission denied",
            "nvml": "there is no NVIDIA driver here",
        }
        shown = view(seen(silent=silent), Top(readers=None, reason="not looked at"))
        assert shown.reasons["storage_read_bytes_per_s"] == (
            "no counter here tells what storage delivers: fuse.x has no block device under it"
        )
        assert shown.reasons["cache_served"].endswith("Permission denied")
        assert shown.reasons["gpu_kernel_busy"] == "there is no NVIDIA driver here"
        assert shown.reasons["processes"] == "not looked at"
        assert every_none_is_explained(shown)


class TestCacheServed:
    """1 - storage ÷ asked for."""

    @staticmethod
    def shown(*, delivered: int, by_mount: int | None = None, by_all: int = 0, unreadable: int = 0):
        pairs = [
            (nfs(read_bytes_total=0), nfs(read_bytes_total=delivered)),
            (
                tree(unreadable, requested_bytes_total=0),
                tree(unreadable, requested_bytes_total=by_all),
            ),
        ]
        if by_mount is not None:
            pairs.append((asked(requested_bytes_total=0), asked(requested_bytes_total=by_mount)))
        return view(seen(*pairs), NOBODY)

    def test_of_what_the_mount_itself_counted(self):
        shown = self.shown(delivered=250, by_mount=1000, by_all=5000)
        assert shown.cache_served == 0.75
        assert shown.cache_served_source == "nfs.app (app, whole mount)"

    def test_else_of_what_every_process_asked_for(self):
        shown = self.shown(delivered=250, by_all=500)
        assert shown.cache_served == 0.5
        assert "too high" in (shown.cache_served_source or "")

    @pytest.mark.parametrize(
        ("numbers", "says"),
        [
            ({"delivered": 2, "by_all": 1}, "storage delivered more than"),
            ({"delivered": 0, "by_all": 0}, "nothing was asked for"),
            ({"delivered": 1, "by_all": 9, "unreadable": 3}, "3 processes of other users"),
        ],
    )
    def test_unknown_with_the_reason(self, numbers, says):
        shown = self.shown(**numbers)
        assert shown.cache_served is None
        assert says in shown.reasons["cache_served"]


class TestHeadline:
    """By layer and scope, where nothing was calibrated."""

    def test_the_wire_of_the_mount_comes_before_devices(self):
        found = headline([reading(read_bytes_total=1), nfs(read_bytes_total=1)])
        assert found is not None
        assert (found.source, found.instances) == ("nfs.wire", ("/mnt/a",))

    def test_the_client_of_the_mount_stands_in(self):
        fuse = reading("fuse", "/mnt", Layer.CLIENT, Scope.MOUNT, None, read_bytes_total=1)
        assert headline([fuse, tree(requested_bytes_total=9)]) is not None

    @pytest.mark.parametrize(
        "other",
        [
            reading("process.block", "tree", Layer.CLIENT, Scope.PROCESS, None, read_bytes_total=0),
            reading("net", "eth0", Layer.LINK, Scope.HOST, None, receive_bytes_total=5),
            reading(role=Role.LEAF, read_bytes_total=5),
            reading(read_bytes_total=None),
        ],
        ids=["of some processes", "a link", "a leaf", "not kept"],
    )
    def test_what_is_no_storage_is_never_taken_for_it(self, other):
        assert headline([other]) is None

    def test_all_tops_of_a_stack_together(self):
        found = headline([reading(instance=name, read_bytes_total=1) for name in ("sda", "sdb")])
        assert found is not None
        assert found.instances == ("sda", "sdb")


class TestLooks:
    """What is kept from look to look."""

    def test_a_pair_is_the_last_look_and_the_one_before(self):
        clock = FakeClock()
        looks = [[reading(read_bytes_total=n)] for n in (0, 10, 40)]
        with Looks([FakeSource("block", *looks)], clock=clock) as every:
            assert every.take().pairs[0].before is None
            clock.t_s += 2
            assert every.take().pairs[0].rate("read_bytes_total").value == 5.0
            clock.t_s += 1
            assert every.take().pairs[0].rate("read_bytes_total").value == 30.0

    def test_an_instance_that_was_unplugged_is_left_out_and_begins_again(self):
        clock = FakeClock()
        source = FakeSource(
            "block", [reading(read_bytes_total=5)], [], [reading(read_bytes_total=9)]
        )
        with Looks([source], clock=clock) as every:
            assert len(every.take().pairs) == 1
            assert every.take().pairs == ()
            assert every.take().pairs[0].before is None
        assert source.closed

    def test_a_source_that_fails_is_silent_with_the_reason_and_asked_again(self):
        source = FakeSource("block", OSError(5, "Input/output error"), [reading()])
        missing = Unavailable(source="nvml", reason="no driver")
        with Looks([source, missing], clock=FakeClock()) as every:
            look = every.take()
            assert look.pairs == ()
            assert look.silent == {
                "nvml": "no driver",
                "block": "block cannot be read now: [Errno 5] Input/output error",
            }
            assert every.take().silent == {"nvml": "no driver"}

    def test_a_slow_source_keeps_its_last_look_until_it_is_stale(self, monkeypatch):
        clock = FakeClock()
        slow = Aside(FakeSource("weka", []))
        said = [[nfs(t_s=100.0)], [], []]
        monkeypatch.setattr(slow, "read", lambda: said.pop(0))
        with Looks([slow], clock=clock) as every:
            assert every.take().pairs[0].now.t_s == 100.0
            clock.t_s += STALE_S
            assert every.take().pairs[0].now.t_s == 100.0
            clock.t_s += 1
            look = every.take()
        assert look.pairs == ()
        assert "weka has not answered" in look.silent["weka"]


class Machine:
    """A /proc of some processes."""

    def __init__(self, proc: Path) -> None:
        self.roots = Roots(proc=proc)
        self.uptime(1000)

    def uptime(self, seconds: float) -> None:
        (self.roots.proc / "uptime").write_text(f"{seconds:.2f} 1.00\n")

    def process(self, pid: int, rchar: int, *, name: str = "x", ppid: int = 1, start_s: int = 5):
        folder = self.roots.proc / str(pid)
        folder.mkdir(exist_ok=True)
        fields = ["S", ppid, *([0] * 17), start_s * os.sysconf("SC_CLK_TCK"), 0, 0]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, fields))}\n")
        keys = ("wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes")
        lines = [f"rchar: {rchar}", *(f"{key}: 0" for key in keys)]
        (folder / "io").write_text("\n".join(lines) + "\n")

    def end(self, pid: int) -> None:
        for file in ("stat", "io"):
            (self.roots.proc / str(pid) / file).unlink()
        (self.roots.proc / str(pid)).rmdir()


class TestProcesses:
    """Who asks for the most."""

    @pytest.fixture
    def machine(self, tmp_path: Path) -> Machine:
        return Machine(tmp_path)

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def processes(self, machine: Machine, clock: FakeClock) -> Processes:
        return Processes(clock=clock, roots=machine.roots, own_pid=77)

    def later(self, machine: Machine, clock: FakeClock) -> None:
        clock.t_s += 2
        machine.uptime(1002)

    def test_the_five_that_asked_for_the_most_of_the_readable(self, machine, clock, processes):
        for pid in range(10, 18):
            machine.process(pid, 1_000, name=f"w) {pid}")
        machine.process(77, 0)
        assert processes.top().readers is None
        for pid in range(10, 18):
            machine.process(pid, 1_000 + 200 * (pid - 10), name=f"w) {pid}")
        machine.process(77, 10**9, name="ioprof itself")
        self.later(machine, clock)
        top = processes.top()
        assert top.readers is not None
        assert [r.pid for r in top.readers] == [17, 16, 15, 14, 13]
        assert top.readers[0] == Reader(pid=17, name="w) 17", requested_bytes_per_s=700.0)

    def test_between_two_scans_the_last_answer_stands(self, machine, clock, processes):
        machine.process(10, 0)
        processes.top()
        self.later(machine, clock)
        first = processes.top()
        clock.t_s += 1
        assert processes.top() is first
        assert processes.top(fresh=True) is not first

    def test_a_new_process_counts_from_its_birth(self, machine, clock, processes):
        processes.top()
        machine.process(10, 600, start_s=1001)
        machine.process(11, 600, start_s=3)
        self.later(machine, clock)
        readers = processes.top().readers
        assert readers is not None
        assert [r.pid for r in readers] == [10], "11 was there before, and could not be read"

    def test_a_pid_that_is_used_again_is_another_process(self, machine, clock, processes):
        machine.process(10, 5_000, name="old")
        processes.top()
        machine.process(10, 300, name="new", start_s=1001)
        self.later(machine, clock)
        assert processes.top().readers == (Reader(pid=10, name="new", requested_bytes_per_s=150.0),)

    def test_what_a_parent_takes_over_from_a_child_is_no_burst(self, machine, clock, processes):
        machine.process(10, 100, name="sh")
        machine.process(20, 9_000, name="cat", ppid=10)
        processes.top()
        machine.end(20)
        machine.process(10, 100 + 9_400, name="sh")
        self.later(machine, clock)
        readers = processes.top().readers
        assert readers is not None
        assert [r.requested_bytes_per_s for r in readers] == [200.0]

    def test_without_a_list_of_processes_it_says_why(self, tmp_path, clock):
        nowhere = Processes(clock=clock, roots=Roots(proc=tmp_path / "none"))
        top = nowhere.top()
        assert top.readers is None
        assert "No such file" in (top.reason or "")

    def test_a_process_of_another_user_is_counted_and_not_read(
        self, machine, processes, monkeypatch
    ):
        def refused(path):
            if path.endswith("/10/io"):
                raise PermissionError(13, "Permission denied")
            return Path(path).read_bytes()

        monkeypatch.setattr("ioprof.live.processes.read_once", refused)
        machine.process(10, 1)
        machine.process(11, 1)
        assert processes.top().unreadable == 1
