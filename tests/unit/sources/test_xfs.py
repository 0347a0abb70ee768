"""xfs statistics, laid out as sysfs does."""

from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.source import Target
from ioprof.sources.xfs import find, parse
from tests.unit.sources.fakesys import FakeSys, mount_of

DATA = Path(__file__).parents[2] / "data" / "xfs"
SAMPLE = (DATA / "stat.txt").read_bytes()


@pytest.fixture
def fake(tmp_path):
    fake = FakeSys(tmp_path)
    fake.disk("loop0", "7:0")
    return fake


def stats(fake, text=SAMPLE, device="loop0"):
    file = fake.roots.sys / "fs" / "xfs" / device / "stats" / "stats"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text)
    return file


def look(fake, **mount):
    named = {"filesystem": "xfs", "number": "7:0", **mount}
    return find(Target(root_pid=1, mount=mount_of("/mnt/x", **named)), roots=fake.roots)


def test_writes_stand_before_reads_and_bytes_behind_the_extents():
    assert parse(SAMPLE) == {
        "requested_bytes_total": 673_185_792,
        "read_calls_total": 3976,
        "write_bytes_total": 67_108_864,
        "write_calls_total": 512,
        "lookup_operations_total": None,
        "readdir_operations_total": None,
        "metadata_operations_total": None,
    }


def test_a_key_of_two_words_is_not_the_one_it_ends_in():
    assert parse(b"gc xpc 0\n")["requested_bytes_total"] is None
    assert parse(b"gc xpc 0 1 2 3\nxpc 1 2 3\n")["requested_bytes_total"] == 3


def test_as_linux_6_18_prints_it_after_1000_reads_of_16_kib():
    assert parse((DATA / "stat_linux_6.18.txt").read_bytes()) == {
        "requested_bytes_total": 16_384_000,
        "read_calls_total": 1000,
        "write_bytes_total": 67_108_864,
        "write_calls_total": 64,
        "lookup_operations_total": 3,
        "readdir_operations_total": 4,
        "metadata_operations_total": 7,
    }


def test_lookups_and_listings_are_the_metadata_that_is_counted():
    counters = parse(b"dir 100 7 2 5\n")
    assert counters["lookup_operations_total"] == 100
    assert counters["readdir_operations_total"] == 5
    assert counters["metadata_operations_total"] == 105


@pytest.mark.parametrize("text", [b"", b"rw", b"rw 512", b"rw 512 N/A", b"xpc 1 2", b"xpc 1 2 -3"])
def test_what_is_torn_is_none_and_never_zero(text):
    counters = parse(text)
    assert counters["read_calls_total"] is None
    assert counters["requested_bytes_total"] is None


def test_the_mounts_own_device_is_read(fake):
    stats(fake)
    stats(fake, b"xpc 0 0 1\n", device="sda1")
    (source,) = look(fake)
    (reading,) = source.read()
    assert (reading.source, reading.instance) == ("xfs", "/mnt/x")
    assert (reading.layer, reading.scope) == (Layer.APP, Scope.MOUNT)
    assert reading.counters["requested_bytes_total"] == 673_185_792
    source.close()


def test_an_unmount_is_a_gap_and_a_remount_starts_again(fake):
    file = stats(fake)
    (source,) = look(fake)
    file.unlink()
    assert list(source.read()) == []
    stats(fake, b"rw 0 1\nxpc 0 0 4096\n")
    (reading,) = source.read()
    assert reading.counters["requested_bytes_total"] == 4096


def test_another_filesystem_has_nothing_to_do_with_it(fake):
    stats(fake)
    assert look(fake, filesystem="ext4") == []
    assert find(Target(root_pid=1), roots=fake.roots) == []


@pytest.mark.parametrize(
    ("number", "says"), [("7:0", "No such file"), ("7:9", "no device has the number 7:9")]
)
def test_without_statistics_it_says_why(fake, number, says):
    (found,) = look(fake, number=number)
    assert isinstance(found, Unavailable)
    assert says in found.reason
