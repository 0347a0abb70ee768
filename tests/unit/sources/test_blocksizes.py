"""Sizes of block reads: whose requests are looked at, and what is made of bpftrace's counts."""

from __future__ import annotations

import os

import msgspec
import pytest

from ioprof.record.reading import Layer, Role, Scope, Unavailable
from ioprof.record.sizes import names
from ioprof.sources.aside import look
from ioprof.sources.blocksizes import Span, counts, find, probes, spans_of
from ioprof.sources.blockstack import find_stack
from ioprof.sources.bpftrace import Print
from ioprof.sources.source import BlockDevice, BlockStack, Target
from tests.unit.sources.fakebpftrace import program, tracepoints
from tests.unit.sources.fakesys import FakeSys, mount_of


class Machine(FakeSys):
    """Its disks make requests, if told so, as those with the folder "mq" do."""

    def disk(self, name, number, *, slaves=(), requests=True, **attributes):
        super().disk(name, number, slaves=slaves, dev=number, **attributes)
        if requests:
            (self.roots.sys / "block" / name / "mq").mkdir()

    def sectors(self, name, *, start, size):
        folder = self.roots.sys / "class" / "block" / name
        (folder / "start").write_text(f"{start}\n")
        (folder / "size").write_text(f"{size}\n")

    def stack(self, number):
        return find_stack(mount_of("/data", number=number), roots=self.roots)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    tracepoints(tmp_path / "sys", "block/block_rq_complete")
    return Machine(tmp_path)


def test_a_disk_is_known_by_its_number(machine):
    machine.disk("nvme0n1", "259:3")
    # 259 << 20 | 3
    assert spans_of(machine.stack("259:3"), roots=machine.roots) == (
        (Span(name="nvme0n1", number=271_581_187),),
        None,
    )


def test_a_partition_is_known_by_its_sectors(machine):
    machine.disk("sda", "8:0")
    machine.partition("sda2", "8:2", disk="sda")
    machine.sectors("sda2", start=2048, size=1_000_000)
    spans, note = spans_of(machine.stack("8:2"), roots=machine.roots)
    assert spans == (Span(name="sda2", number=8_388_608, first_sector=2048, end_sector=1_002_048),)
    assert note is None
    assert "args->sector >= 2048 && args->sector < 1002048" in probes(spans)


def test_a_device_that_makes_no_requests_is_told_by_the_disks_below(machine):
    machine.disk("sda", "8:0")
    machine.disk("sdb", "8:16")
    machine.disk("md0", "9:0", slaves=("sda", "sdb"), requests=False)
    machine.disk("dm-0", "253:0", slaves=("md0",), requests=False)
    spans, note = spans_of(machine.stack("253:0"), roots=machine.roots)
    assert [span.name for span in spans] == ["sda", "sdb"]
    assert note == "of the disks that dm-0 stands on"


def test_an_array_of_a_partition_and_a_disk_has_both_disks(machine):
    machine.disk("sda", "8:0")
    machine.partition("sda1", "8:1", disk="sda")
    machine.sectors("sda1", start=0, size=8)
    machine.disk("sdb", "8:16")
    machine.disk("md0", "9:0", slaves=("sda1", "sdb"), requests=False)
    spans, _ = spans_of(machine.stack("9:0"), roots=machine.roots)
    assert sorted(span.name for span in spans) == ["sda", "sdb"]


def test_of_a_pair_of_tops_of_which_one_makes_no_requests_none_counts_twice(machine):
    machine.disk("sda", "8:0")
    machine.partition("sda1", "8:1", disk="sda")
    machine.sectors("sda1", start=0, size=8)
    machine.disk("sdb", "8:16")
    machine.disk("dm-0", "253:0", slaves=("sdb",), requests=False)
    machine.btrfs("7a1f", "sda1", "dm-0")
    mount = mount_of("/data", filesystem="btrfs", source="/dev/sda1", number="0:40")
    spans, _ = spans_of(find_stack(mount, roots=machine.roots), roots=machine.roots)
    assert sorted(span.name for span in spans) == ["sda", "sdb"]


def test_a_device_in_memory_says_that_it_shows_no_requests(machine):
    machine.disk("pmem0", "259:0", requests=False)
    program(machine.folder / "bin")
    (silent,) = find(Target(root_pid=1, stack=machine.stack("259:0")), roots=machine.roots)
    assert isinstance(silent, Unavailable)
    assert silent.reason == "pmem0 makes no requests that a tracepoint shows"


def test_a_device_that_is_gone_has_no_span(machine):
    stack = BlockStack(devices=(BlockDevice(name="sdz", role=Role.TOP),))
    assert spans_of(stack, roots=machine.roots) == ((), None)


def test_buckets_of_each_device_are_apart():
    made = Print(t_s=1.0, maps={"@sizes": {"3": 7, "16": 1, "32": 5, "40": 512}})
    first = {name: value for name, value in counts(made, place=0) if value}
    second = {name: value for name, value in counts(made, place=1) if value}
    assert first == {
        "read_requests_up_to_4096_total": 7,
        "read_requests_above_16777216_total": 1,
    }
    assert second == {
        "read_requests_up_to_512_total": 5,
        "read_requests_up_to_131072_total": 512,
    }


def test_one_look_gives_each_device_its_own(machine):
    machine.disk("sda", "8:0")
    machine.disk("sdb", "8:16")
    machine.btrfs("7a1f", "sda", "sdb")
    mount = mount_of("/data", filesystem="btrfs", source="/dev/sda", number="0:40")
    stack = find_stack(mount, roots=machine.roots)
    counted = '{"type": "map", "data": {"@sizes": {"8": 512, "40": 3}}}'
    program(machine.folder / "bin", counted)
    (source,) = find(Target(root_pid=1, mount=mount, stack=stack), roots=machine.roots)
    assert not isinstance(source, Unavailable)
    *_, first, second = look(source)
    source.close()
    assert (first.source, first.instance, second.instance) == ("block.sizes", "sda", "sdb")
    assert (first.layer, first.scope, first.note) == (Layer.WIRE, Scope.DEVICE, None)
    assert first.counters["read_requests_up_to_131072_total"] == 512
    assert second.counters["read_requests_up_to_131072_total"] == 3
    assert tuple(first.counters) == names()
    assert first.gauges == {"lost_events": 0}


@pytest.mark.parametrize("stack", [None, BlockStack(devices=(), reason="nfs has none")])
def test_a_mount_without_devices_has_no_such_source(machine, stack):
    assert find(Target(root_pid=1, stack=stack), roots=machine.roots) == []


def test_without_bpftrace_it_says_how_to_have_it(machine):
    machine.disk("sda", "8:0")
    roots = msgspec.structs.replace(machine.roots, root=machine.folder)
    (silent,) = find(Target(root_pid=1, stack=machine.stack("8:0")), roots=roots)
    assert isinstance(silent, Unavailable)
    assert (silent.source, silent.remedy) == ("block.sizes", "apt-get install bpftrace")
