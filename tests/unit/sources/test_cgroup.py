"""cgroup files of both versions, laid out as mounted under /sys/fs/cgroup."""

from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Role, Scope, Unavailable
from ioprof.sources.cgroup import find, parse_io_stat, parse_throttle
from ioprof.sources.source import BlockDevice, BlockStack, Target
from tests.unit.sources.fakesys import FakeSys

DATA = Path(__file__).parents[2] / "data" / "cgroup"
V1 = (DATA / "v1_blkio.throttle.io_service_bytes.txt").read_bytes()
V2 = (DATA / "v2_io.stat.txt").read_bytes()
MEMORY = (DATA / "v2_memory.stat.txt").read_bytes()


class FakeCgroup(FakeSys):
    """A node with nvme0n1 under dm-0, and the disk sda with a partition."""

    def __init__(self, folder):
        super().__init__(folder)
        self.disk("nvme0n1", "259:0", dev="259:0")
        self.disk("dm-0", "253:0", dev="253:0", slaves=("nvme0n1",))
        self.disk("sda", "8:0", dev="8:0")
        self.partition("sda1", "8:1", disk="sda")
        self.member("0::/job\n")

    def member(self, table):
        (self.roots.proc / "10").mkdir(exist_ok=True)
        (self.roots.proc / "10" / "cgroup").write_text(table)

    def file(self, path, text):
        file = self.roots.sys / "fs" / "cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)
        return file

    def look(self, *tops):
        devices = tuple(BlockDevice(name=name, role=Role.TOP) for name in tops)
        stack = BlockStack(devices=devices) if devices else None
        return {
            found.source if isinstance(found, Unavailable) else found.name: found
            for found in find(Target(root_pid=10, stack=stack), roots=self.roots)
        }


@pytest.fixture
def fake(tmp_path):
    return FakeCgroup(tmp_path)


def test_the_devices_of_io_stat_with_what_belongs_to_each():
    assert parse_io_stat(V2) == {
        "259:0": {
            "read_bytes_total": 67_190_784,
            "read_operations_total": 35,
            "write_bytes_total": 0,
            "write_operations_total": 0,
        },
        "253:0": {
            "read_bytes_total": 67_190_784,
            "read_operations_total": 35,
            "write_bytes_total": 4096,
            "write_operations_total": 1,
        },
    }


@pytest.mark.parametrize("text", [b"252:0 ", b"", b"252:0", b"252:0 \n", b"252:0 rbytes=", b"252"])
def test_a_torn_line_is_no_row_and_never_zero(text):
    """green-coding-solutions/green-metrics-tool#1837: six bytes were taken for a counter at 0."""
    assert parse_io_stat(text) == {}


def test_while_the_line_is_torn_the_device_is_left_out_and_then_goes_on(fake):
    """green-coding-solutions/green-metrics-tool#1837"""
    file = fake.file("job/io.stat", V2)
    source = fake.look("dm-0")["cgroup.io"]
    assert [r.counters["read_bytes_total"] for r in source.read()] == [67_190_784]
    file.write_bytes(b"253:0 ")
    assert list(source.read()) == []
    file.write_bytes(b"253:0 rbytes=67190790 wbytes=4096 rios=36 wios=1 dbytes=0 dios=0\n")
    assert [r.counters["read_bytes_total"] for r in source.read()] == [67_190_790]
    source.close()


def test_unknown_devices_are_passed_over_and_the_others_read():
    """canonical/lxd#18609, arianvp/cgroup-exporter#23, containerd/cgroups#393, openzfs/zfs#13662"""
    unknown = b"(unknown) rbytes=0 wbytes=0 rios=6 wios=0 dbytes=0 dios=0\n"
    known = b"8:0 rbytes=352256 wbytes=0 rios=6 wios=0 dbytes=0 dios=0\n"
    assert parse_io_stat(unknown + known + unknown) == parse_io_stat(known)
    assert parse_io_stat(known)["8:0"]["read_bytes_total"] == 352_256
    rows = parse_throttle(b"(unknown) Read 7\n8:0 Read 4096\n(unknown) Read 0\n", b"")
    assert list(rows) == ["8:0"]


def test_totals_of_version_1_are_passed_over():
    """google/cadvisor#1669, #2881, #1946, #2656: the sum of all rows was twice the bytes."""
    assert parse_throttle(V1, b"254:0 Read 40\n254:0 Total 40\nTotal 40\n") == {
        "254:0": {
            "read_bytes_total": 67_190_784,
            "read_operations_total": 40,
            "write_bytes_total": 0,
            "write_operations_total": None,
        }
    }


def test_of_a_stack_only_what_the_mount_names_is_given(fake):
    """google/cadvisor#1669: dm and the disk below it both have rows of the same bytes."""
    fake.member("7:blkio:/job\n0::/\n")
    both = (
        b"253:0 Read 4096\n253:0 Write 0\n253:0 Total 4096\n"
        b"8:0 Read 4096\n8:0 Write 0\n8:0 Total 4096\n(unknown) Read 0\nTotal 8192\n"
    )
    fake.file("blkio/job/blkio.throttle.io_service_bytes", both)
    fake.file("blkio/job/blkio.throttle.io_serviced", both.replace(b"4096", b"1"))
    source = fake.look("dm-0")["cgroup.io"]
    (reading,) = source.read()
    assert reading.instance == "/job 253:0"
    assert reading.counters == {
        "read_bytes_total": 4096,
        "read_operations_total": 1,
        "write_bytes_total": 0,
        "write_operations_total": 0,
    }
    assert (reading.layer, reading.scope) == (Layer.CLIENT, Scope.DEVICE)
    assert "cgroup /job alone" in (reading.note or "")
    source.close()


def test_files_of_a_scheduler_that_is_not_in_use_are_never_read(fake):
    """opencontainers/runc#2967, google/cadvisor#2881: CFQ's and BFQ's stay 0 under the others."""
    fake.member("7:blkio:/job\n")
    for name in ("blkio.io_service_bytes", "blkio.bfq.io_service_bytes"):
        fake.file(f"blkio/job/{name}", b"8:0 Read 0\nTotal 0\n")
    found = fake.look("sda")["cgroup.io"]
    assert isinstance(found, Unavailable)
    fake.file("blkio/job/blkio.throttle.io_service_bytes", b"8:0 Read 4096\nTotal 4096\n")
    fake.file("blkio/job/blkio.throttle.io_serviced", b"8:0 Read 1\nTotal 1\n")
    source = fake.look("sda")["cgroup.io"]
    assert [r.counters["read_bytes_total"] for r in source.read()] == [4096]
    source.close()


@pytest.mark.parametrize("where", ["", "unified/"])
def test_without_the_io_controller_it_is_not_available_and_not_zero(fake, where):
    """opencontainers/runc#2967: a hybrid or v2 host without the controller has no io.stat."""
    fake.file(f"{where}job/cgroup.controllers", b"cpu memory\n")
    found = fake.look("sda")["cgroup.io"]
    assert isinstance(found, Unavailable)
    assert found.reason == "the io controller is not switched on for the tree's cgroup (/job)"
    assert "+io" in (found.remedy or "")


def test_a_partition_is_counted_at_its_disk(fake):
    fake.file("job/io.stat", b"8:0 rbytes=512 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n")
    source = fake.look("sda1")["cgroup.io"]
    assert [(r.instance, r.counters["read_bytes_total"]) for r in source.read()] == [
        ("/job 8:0", 512)
    ]
    source.close()


def test_in_a_container_the_top_of_what_is_mounted_is_its_own_group(fake):
    fake.member("0::/system.slice/docker-1234.scope\n")
    fake.file("io.stat", b"8:0 rbytes=512\n")
    source = fake.look("sda")["cgroup.io"]
    (reading,) = source.read()
    assert reading.instance == "/ 8:0"
    assert reading.counters["write_bytes_total"] is None
    source.close()


def test_a_group_outside_of_the_namespace_is_not_guessed(fake):
    fake.member("0::/../other\n")
    fake.file("io.stat", b"8:0 rbytes=512\n")
    assert isinstance(fake.look("sda")["cgroup.io"], Unavailable)


def test_the_page_cache_of_the_group(fake):
    fake.file("job/memory.stat", MEMORY)
    source = fake.look()["cgroup.memory"]
    (reading,) = source.read()
    assert reading.counters == {"refault_file_pages_total": 120, "page_faults_major_total": 16_384}
    assert reading.gauges == {"page_cache_bytes": 1_073_741_824}
    assert (reading.instance, reading.layer) == ("/job", Layer.CACHE)
    source.close()


def test_the_page_cache_of_a_version_1_group_and_those_below_it(fake):
    fake.member("4:memory:/job\n0::/\n")
    text = b"cache 1\npgmajfault 2\ntotal_cache 513540096\ntotal_pgmajfault 3\n"
    fake.file("memory/job/memory.stat", text)
    source = fake.look()["cgroup.memory"]
    (reading,) = source.read()
    assert reading.counters == {"refault_file_pages_total": None, "page_faults_major_total": 3}
    assert reading.gauges == {"page_cache_bytes": 513_540_096}
    source.close()


def test_refaults_before_linux_5_9_have_the_shorter_name(fake):
    fake.file("job/memory.stat", b"file 1\nworkingset_refault 9\npgmajfault 2\n")
    source = fake.look()["cgroup.memory"]
    assert [r.counters["refault_file_pages_total"] for r in source.read()] == [9]
    source.close()


def test_a_file_that_cannot_be_read_is_a_reason(fake):
    fake.file("job/io.stat/x", b"")  # a folder in its place
    found = fake.look("sda")["cgroup.io"]
    assert isinstance(found, Unavailable)
    assert "cannot be read: Is a directory" in found.reason


def test_a_device_whose_number_is_not_told_is_a_reason(fake):
    fake.file("job/io.stat", V2)
    found = fake.look("nbd0")["cgroup.io"]
    assert isinstance(found, Unavailable)
    assert "the numbers of nbd0" in found.reason


def test_without_block_devices_there_is_no_io_to_look_for(fake):
    assert list(fake.look()) == ["cgroup.memory"]


def test_a_tree_without_a_cgroup_says_so(fake):
    (fake.roots.proc / "10" / "cgroup").unlink()
    (found,) = fake.look("sda").values()
    assert "in no cgroup" in found.reason
