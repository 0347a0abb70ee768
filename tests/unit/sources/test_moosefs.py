"""MooseFS' statistics, in a folder that stands in for its mount."""

from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.aside import look
from ioprof.sources.moosefs import MooseFsSource, find, is_moosefs, parse
from ioprof.sources.mount import parse_mountinfo
from ioprof.sources.source import Roots, Target
from tests.unit.sources.fakesys import mount_of

SAMPLE = (Path(__file__).parents[2] / "data" / "moosefs" / "stats.txt").read_bytes()


def seek(tmp_path, path, *, filesystem="fuse", source="mfs#192.0.2.71:9421", root="/"):
    mount = mount_of(path, filesystem=filesystem, source=source, number="0:62", root=root)
    return find(Target(root_pid=1, mount=mount), roots=Roots(proc=tmp_path / "proc"))


def test_requests_are_counted_and_bytes_are_not():
    assert parse(SAMPLE) == {
        "read_operations_total": 18_816,
        "write_operations_total": 512,
        "open_operations_total": 20,
        "lookup_operations_total": 22,
        "getattr_operations_total": 2,  # 2 + 0 from its cache
        "readdir_operations_total": None,
        "metadata_operations_total": 44,  # 22 + 2 + 20
    }


def test_listings_are_opens_and_reads_of_folders():
    text = SAMPLE + b"fuse_ops.opendir: 3\nfuse_ops.readdir: 4\nfuse_ops.readdirplus: 5\n"
    counters = parse(text)
    assert counters["readdir_operations_total"] == 12
    assert counters["metadata_operations_total"] == 56


def test_a_number_in_brackets_is_a_state_and_no_counter():
    assert parse(b"fuse_ops.read: [7]\n")["read_operations_total"] is None


def test_parents_and_children_are_other_names():
    text = b"fuse_ops: 9\nfuse_ops.read.x: 5\nxfuse_ops.read: 6\nfuse_ops.lookup.master: 21\n"
    assert set(parse(text).values()) == {None}


@pytest.mark.parametrize("text", [b"", b"fuse_ops.read:", b"fuse_ops.read: -1", b"fuse_ops.read"])
def test_torn_text_is_none_and_never_zero(text):
    assert set(parse(text).values()) == {None}


def test_a_mount_is_known_by_its_source_alone():
    line = "55 22 0:62 / /mnt/mfs rw - fuse mfs\\043192.0.2.71:9421 rw,allow_other\n"
    (mount,) = parse_mountinfo(line)
    assert is_moosefs(mount)
    assert not is_moosefs(mount_of("/x", filesystem="fuse", source="ntfs"))
    assert not is_moosefs(mount_of("/x", filesystem="ext4", source="mfs#x"))


def test_the_mount_is_read_aside_and_never_written(tmp_path):
    file = tmp_path / ".stats"
    file.write_bytes(SAMPLE)
    file.chmod(0o444)
    written = file.stat().st_mtime_ns
    (source,) = seek(tmp_path, tmp_path)
    (reading,) = look(source)
    assert (reading.source, reading.instance) == ("moosefs.client", str(tmp_path))
    assert (reading.layer, reading.scope) == (Layer.CLIENT, Scope.MOUNT)
    assert reading.counters["read_operations_total"] == 18_816
    assert reading.t_s is not None
    source.close()
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (SAMPLE, written)


def test_an_unmount_is_a_gap_and_cleared_counters_are_handed_on(tmp_path):
    file = tmp_path / ".stats"
    file.write_bytes(SAMPLE)
    source = MooseFsSource([file], mount_path="/mnt/mfs")
    assert len(list(source.read())) == 1
    file.unlink()
    assert list(source.read()) == []
    file.write_bytes(b"fuse_ops: 1\nfuse_ops.read: 1\n")
    (reading,) = source.read()
    assert reading.counters["read_operations_total"] == 1


def test_of_a_bind_mount_whose_root_is_not_here_it_says_so(tmp_path):
    (found,) = seek(tmp_path, "/data", root="/train")
    assert isinstance(found, Unavailable)
    assert "not mounted here" in found.reason


def test_another_filesystem_has_nothing_to_do_with_it(tmp_path):
    assert seek(tmp_path, tmp_path, source="sshfs") == []
    assert find(Target(root_pid=1)) == []
