"""GPFS, behind a stand-in for mmpmon."""

from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.aside import look
from ioprof.sources.gpfs import counters, find, parse
from ioprof.sources.source import Roots, Target
from tests.unit.sources.fakesys import mount_of

DATA = Path(__file__).parents[2] / "data" / "gpfs"
FILESYSTEMS = (DATA / "mmpmon_fs_io_s.txt").read_bytes()
NONE = (DATA / "mmpmon_fs_io_s_nofs.txt").read_bytes()
SUMMED = (DATA / "mmpmon_io_s.txt").read_bytes()


@pytest.fixture
def mmpmon(tmp_path, monkeypatch):
    """Installs a program that answers fs_io_s, and nothing else, with a text."""

    def install(answer, *, status=0):
        folder = tmp_path / "usr" / "lpp" / "mmfs" / "bin"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "answer").write_bytes(answer)
        script = folder / "mmpmon"
        script.write_text(
            f'#!/bin/sh\nread asked\n[ "$asked $*" = "fs_io_s -p -s" ] || exit 9\n'
            f"cat {folder}/answer\nexit {status}\n"
        )
        script.chmod(0o755)

    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return install


def seek(tmp_path, *, source="fs1", filesystem="gpfs"):
    mount = mount_of("/gpfs/fs1", filesystem=filesystem, source=source)
    return find(Target(root_pid=1, mount=mount), roots=Roots(root=tmp_path))


def test_each_filesystem_has_its_own_line():
    found = parse(FILESYSTEMS)
    assert set(found) == {b"fs1", b"fs2"}
    assert counters(found[b"fs1"]) == {
        "read_bytes_total": 10_737_418_240,
        "write_bytes_total": 0,
        "read_operations_total": 10_240,
        "write_operations_total": 0,
        "open_operations_total": 1281,
        "readdir_operations_total": 60,
        "metadata_operations_total": 1341,  # 1,281 opened + 60 listed
    }
    assert counters(found[b"fs2"])["metadata_operations_total"] == 5


def test_no_filesystem_is_none_and_the_sum_of_all_is_nobody_s():
    assert parse(NONE) == {}
    assert parse(SUMMED) == {}


def test_a_value_that_is_missing_does_not_move_the_others():
    """treydock/gpfs_exporter#71, performancecopilot/pcp#1038, influxdata/telegraf#5687: keys and
    values were paired by their places."""
    line = b"_fs_io_s_ _n_ 192.0.2.1 _nn_ _rc_ 0 _cl_ _fs_ fs1 _d_ 4 _br_ 7 _bw_ _oc_ 1 _dir_ 2 x\n"
    found = counters(parse(line)[b"fs1"])
    assert found["read_bytes_total"] == 7
    assert found["write_bytes_total"] is None
    assert found["read_operations_total"] is None
    assert found["metadata_operations_total"] == 3


def test_keys_are_read_by_name_in_any_order():
    line = b"_fs_io_s_ _br_ 7 _new_ 3 _fs_ fs1 _rc_ 0\n"
    assert counters(parse(line)[b"fs1"])["read_bytes_total"] == 7


def test_two_lines_of_one_name_are_nobody_s():
    line = b"_fs_io_s_ _rc_ 0 _cl_ %s _fs_ fs1 _br_ 7\n"
    assert parse(line % b"a" + line % b"b") == {}


@pytest.mark.parametrize("source", ["fs1", "/dev/fs1"])
def test_the_mount_s_own_filesystem_is_read_aside(tmp_path, mmpmon, source):
    mmpmon(FILESYSTEMS)
    (found,) = seek(tmp_path, source=source)
    (reading,) = look(found)
    assert (reading.source, reading.instance) == ("gpfs", "/gpfs/fs1")
    assert (reading.layer, reading.scope) == (Layer.CLIENT, Scope.MOUNT)
    assert reading.counters["read_bytes_total"] == 10_737_418_240
    assert reading.t_s is not None
    mmpmon(NONE)
    assert look(found) == [], "it is mounted no more"
    mmpmon(b"_fs_io_s_ _rc_ 0 _fs_ fs1 _br_ 5\n")
    (reading,) = look(found)
    assert reading.counters["read_bytes_total"] == 5, "a restarted daemon is handed on as it is"
    found.close()


def test_why_there_is_nothing_is_one_sentence(tmp_path, mmpmon):
    (absent,) = seek(tmp_path)
    assert isinstance(absent, Unavailable)
    assert absent.reason == "the command mmpmon is not on this node"
    mmpmon(FILESYSTEMS)
    (other,) = seek(tmp_path, source="scratch")
    assert other.reason == "mmpmon tells the filesystems fs1, fs2, and scratch is not there"
    mmpmon(NONE)
    (none,) = seek(tmp_path)
    assert none.reason.startswith("mmpmon tells the filesystems none,")
    mmpmon(b"mmpmon: not root\n", status=1)
    (failed,) = seek(tmp_path)
    assert failed.reason == "mmpmon ended with status 1: mmpmon: not root"
    assert "as root" in failed.remedy


def test_another_filesystem_has_nothing_to_do_with_it(tmp_path):
    assert seek(tmp_path, filesystem="xfs") == []
    assert find(Target(root_pid=1)) == []
