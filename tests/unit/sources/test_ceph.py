"""The kernel client's metrics, one file (Linux 5.8) and a folder of files (5.16)."""

import shutil
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources import ceph
from ioprof.sources.ceph import FACTS, find, parse
from ioprof.sources.program import ProgramError
from ioprof.sources.source import Roots, Target
from tests.unit.sources.fakesys import mount_of

DATA = Path(__file__).parents[2] / "data" / "ceph"
OLD = (DATA / "kernel_5.8_metrics.txt").read_bytes()
PARTS = ("file", "latency", "size", "caps")
FSID = "11111111-2222-3333-4444-555555555555"
OTHER = "99999999-2222-3333-4444-555555555555"
# As Linux 5.14 and 5.15 print it: one file, with sizes.
MIDDLE = b"""item                               total
------------------------------------------
opened files  / total inodes       0 / 4
pinned i_caps / total inodes       5 / 4

item          total       avg_lat(us)     min_lat(us)     max_lat(us)     stdev(us)
-----------------------------------------------------------------------------------
read          3           250             100             400             90
metadata      79          12856           1572            114572          13262

item          total       avg_sz(bytes)   min_sz(bytes)   max_sz(bytes)  total_sz(bytes)
----------------------------------------------------------------------------------------
read          3           4096            4096            4096            12288

item          total           miss            hit
-------------------------------------------------
d_lease       11              0               29
caps          5               68              10702
"""


@pytest.fixture
def roots(tmp_path):
    return Roots(sys=tmp_path / "sys")


def old_kernel(roots, *, fsid=FSID, number=4235, text=OLD):
    folder = roots.sys / "kernel" / "debug" / "ceph" / f"{fsid}.client{number}"
    folder.mkdir(parents=True)
    (folder / "metrics").write_bytes(text)
    return folder


def new_kernel(roots, *, fsid=FSID, number=4235):
    folder = roots.sys / "kernel" / "debug" / "ceph" / f"{fsid}.client{number}" / "metrics"
    folder.mkdir(parents=True)
    for part in PARTS:
        shutil.copy(DATA / f"kernel_5.16_metrics_{part}.txt", folder / part)
    return folder.parent


def look(roots, *, source="192.0.2.90:6789:/", options=("rw",), filesystem="ceph"):
    mount = mount_of("/mnt/ceph", filesystem=filesystem, source=source, options=options)
    return find(Target(root_pid=1, mount=mount), roots=roots)


def test_a_folder_of_files_tells_bytes_requests_and_means(roots):
    new_kernel(roots)
    (source,) = look(roots)
    wire, caps = source.read()
    assert (wire.source, wire.instance, wire.layer, wire.scope) == (
        "ceph.wire", "/mnt/ceph", Layer.WIRE, Scope.MOUNT,
    )  # fmt: skip
    assert wire.counters == {
        "read_bytes_total": 10_737_418_240,
        "read_operations_total": 2560,
        "write_bytes_total": 0,
        "write_operations_total": 0,
        "metadata_operations_total": 60,
    }
    assert wire.gauges == {
        "read_mean_seconds": pytest.approx(0.001890),
        "write_mean_seconds": None,
        "metadata_mean_seconds": pytest.approx(0.000410),
    }
    assert (caps.source, caps.layer) == ("ceph.caps", Layer.CACHE)
    assert caps.counters == {
        "caps_hits_total": 9021,
        "caps_misses_total": 2,
        "lease_hits_total": 310,
        "lease_misses_total": 1,
    }
    source.close()


def test_the_first_kernels_with_metrics_keep_no_bytes(roots):
    old_kernel(roots)
    (source,) = look(roots)
    wire, caps = source.read()
    assert wire.counters == {
        "read_bytes_total": None,
        "read_operations_total": 2560,
        "write_bytes_total": None,
        "write_operations_total": 0,
        "metadata_operations_total": None,
    }
    assert wire.gauges["read_mean_seconds"] == pytest.approx(0.001890)
    assert caps.counters["caps_hits_total"] == 9021


def test_names_with_blanks_are_split_from_the_right():
    found = parse(MIDDLE)
    assert found.counters["read_bytes_total"] == 12_288
    assert found.counters["metadata_operations_total"] == 79
    assert found.caps["caps_misses_total"] == 68
    odd = parse(b"item total miss hit\nbig caps 1 2 3\n")
    assert odd.caps["caps_hits_total"] is None, "another item that ends alike"


def test_the_mean_is_a_gauge_and_the_time_is_no_counter():
    assert not any("seconds_total" in counter for fact in FACTS for counter in fact.counters)


@pytest.mark.parametrize("text", [b"", b"item", b"read 1 2 3", b"item total\nread", b"\xff"])
def test_torn_text_is_none_and_never_zero(text):
    found = parse(text)
    values = (*found.counters.values(), *found.means.values(), *found.caps.values())
    assert set(values) == {None}


def test_the_new_mount_syntax_tells_which_cluster(roots):
    old_kernel(roots, fsid=OTHER, number=1, text=MIDDLE.replace(b"12288", b"1"))
    old_kernel(roots, fsid=FSID, number=2, text=MIDDLE)
    (source,) = look(roots, source=f"admin@{FSID}.cephfs=/data")
    wire, _ = source.read()
    assert wire.counters["read_bytes_total"] == 12_288
    (source,) = look(roots, options=("rw", f"fsid={OTHER}"))
    wire, _ = source.read()
    assert wire.counters["read_bytes_total"] == 1


def test_clients_of_block_images_are_not_asked(roots):
    (roots.sys / "kernel" / "debug" / "ceph" / f"{FSID}.client7").mkdir(parents=True)
    old_kernel(roots)
    (source,) = look(roots, options=(f"fsid={'0' * 8}-0000-0000-0000-{'0' * 12}",))
    assert len(list(source.read())) == 2


def test_of_two_clients_of_one_cluster_the_mount_says_which(roots, monkeypatch):
    old_kernel(roots, number=5)
    new_kernel(roots, number=4235)
    asked = []

    def answer(command):
        asked.append(command)
        return b"client4235\n"

    monkeypatch.setattr(ceph, "ask", answer)
    (source,) = look(roots)
    wire, _ = source.read()
    assert wire.counters["read_bytes_total"] == 10_737_418_240
    assert asked[0][-1] == "/mnt/ceph"


def test_where_the_mount_does_not_say_nothing_is_guessed(roots, monkeypatch):
    old_kernel(roots, number=5)
    old_kernel(roots, number=6)

    def refuse(command):
        raise ProgramError("No data available")

    monkeypatch.setattr(ceph, "ask", refuse)
    (found,) = look(roots)
    assert isinstance(found, Unavailable)
    assert found.reason == "2 ceph clients may be the one of /mnt/ceph"


def test_a_cluster_that_has_no_client_here_is_said(roots):
    old_kernel(roots, fsid=OTHER)
    (found,) = look(roots, source=f"admin@{FSID}.cephfs=/")
    assert isinstance(found, Unavailable)
    assert FSID in found.reason


def test_an_unmount_is_a_gap(roots):
    folder = new_kernel(roots)
    (source,) = look(roots)
    assert len(list(source.read())) == 2
    shutil.rmtree(folder)
    assert list(source.read()) == []


def test_without_debugfs_or_metrics_it_says_so(roots):
    (found,) = look(roots)
    assert isinstance(found, Unavailable)
    assert "No such file" in found.reason
    assert "root" in (found.remedy or "")
    (roots.sys / "kernel" / "debug" / "ceph" / f"{FSID}.client7").mkdir(parents=True)
    (found,) = look(roots)
    assert "keeps metrics" in found.reason
    assert "5.8" in (found.remedy or "")


def test_another_filesystem_has_nothing_to_do_with_it(roots):
    old_kernel(roots)
    assert look(roots, filesystem="fuse.ceph-fuse") == []
    assert find(Target(root_pid=1), roots=roots) == []
