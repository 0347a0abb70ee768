"""ZFS kstats, laid out as OpenZFS does."""

from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.source import Roots, Target
from ioprof.sources.zfs import find, parse_arc, parse_dataset
from tests.unit.sources.fakesys import mount_of

DATA = Path(__file__).parents[2] / "data" / "zfs"
OBJSET = (DATA / "objset.txt").read_bytes()
ARC = (DATA / "arcstats.txt").read_bytes()
TANK = Target(root_pid=1, mount=mount_of("/tank/data", filesystem="zfs", source="tank/data"))


def look(*arguments, **named):
    return find(*arguments, **named)


@pytest.fixture
def roots(tmp_path):
    folder = tmp_path / "spl" / "kstat" / "zfs" / "tank"
    folder.mkdir(parents=True)
    (folder / "objset-0x36").write_bytes(OBJSET.replace(b"tank/data", b"tank"))
    (folder / "objset-0x103").write_bytes(OBJSET)
    (folder / "state").write_text("ONLINE\n")
    (folder.parent / "arcstats").write_bytes(ARC)
    return Roots(proc=tmp_path)


def test_bytes_and_calls_of_the_dataset():
    assert parse_dataset(OBJSET) == {
        "requested_bytes_total": 10_737_418_240,
        "read_calls_total": 10_240,
        "write_bytes_total": 302,
        "write_calls_total": 4,
    }


def test_hits_and_misses_of_the_arc_and_none_for_what_this_version_lacks():
    counters, gauges = parse_arc(ARC)
    assert counters == {
        "cache_hits_total": 8_772_612,
        "cache_misses_total": 604_635,
        "demand_data_hits_total": 7_221_032,
        "demand_data_misses_total": 73_300,
        "prefetch_data_hits_total": 3615,
        "prefetch_data_misses_total": 17_094,
        "l2_hits_total": 0,
        "l2_misses_total": None,
        "l2_read_bytes_total": 0,
    }
    assert gauges == {"arc_size_bytes": 1_603_939_792, "arc_limit_bytes": 8_367_976_448}


def test_the_dataset_is_found_by_its_name_among_those_of_the_pool(roots):
    dataset, arc = look(TANK, roots=roots)
    (reading,) = dataset.read()
    assert (reading.source, reading.instance) == ("zfs.dataset", "/tank/data")
    assert (reading.layer, reading.scope) == (Layer.APP, Scope.MOUNT)
    assert reading.counters["requested_bytes_total"] == 10_737_418_240
    (reading,) = arc.read()
    assert (reading.layer, reading.scope) == (Layer.CACHE, Scope.HOST)
    for source in (dataset, arc):
        source.close()


def test_a_name_with_a_blank_is_a_name(roots):
    folder = roots.proc / "spl" / "kstat" / "zfs" / "tank"
    (folder / "objset-0x200").write_bytes(OBJSET.replace(b"tank/data", b"tank/my set"))
    mount = mount_of("/tank/my set", filesystem="zfs", source="tank/my set")
    dataset, arc = look(Target(root_pid=1, mount=mount), roots=roots)
    assert [r.instance for r in dataset.read()] == ["/tank/my set"]
    arc.close()


def test_an_unmount_is_a_gap_and_a_remount_starts_again(roots):
    dataset, arc = look(TANK, roots=roots)
    arc.close()
    assert len(list(dataset.read())) == 1
    file = roots.proc / "spl" / "kstat" / "zfs" / "tank" / "objset-0x103"
    file.unlink()
    assert list(dataset.read()) == []
    assert list(dataset.read()) == []
    file.write_bytes(OBJSET.replace(b"10737418240", b"4096"))
    (reading,) = dataset.read()
    assert reading.counters["requested_bytes_total"] == 4096


@pytest.mark.parametrize("text", [b"", b"23 1 0x01\n", b"a\nb\nnread 4", b"a\nb\nnread 4 N/A\n"])
def test_what_is_torn_is_none_and_never_zero(text):
    assert parse_dataset(text)["requested_bytes_total"] is None


def test_another_filesystem_has_nothing_to_do_with_it(roots):
    assert find(Target(root_pid=1, mount=mount_of("/x")), roots=roots) == []


def test_without_kstats_it_says_why(tmp_path):
    dataset, arc = look(TANK, roots=Roots(proc=tmp_path))
    assert isinstance(dataset, Unavailable)
    assert isinstance(arc, Unavailable)
    assert "that of the dataset tank/data" in dataset.reason
    assert "No such file" in arc.reason
