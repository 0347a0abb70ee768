"""JuiceFS' statistics, in a folder that stands in for its mount."""

from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.aside import look
from ioprof.sources.juicefs import JuiceFsSource, find, parse
from ioprof.sources.source import Roots, Target
from tests.unit.sources.fakesys import mount_of

SAMPLE = (Path(__file__).parents[2] / "data" / "juicefs" / "stats.txt").read_bytes()


@pytest.fixture
def mountpoint(tmp_path):
    path = tmp_path / "jfs"
    path.mkdir()
    return path


def seek(tmp_path, path, *, filesystem="fuse.juicefs", root="/", mountinfo=""):
    (tmp_path / "proc" / "self").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc" / "self" / "mountinfo").write_text(mountinfo)
    mount = mount_of(path, filesystem=filesystem, source="JuiceFS:v", number="0:61", root=root)
    return find(Target(root_pid=1, mount=mount), roots=Roots(proc=tmp_path / "proc"))


def test_the_client_the_cache_and_the_object_store_are_told_apart():
    stats = parse(SAMPLE)
    assert stats.client == {
        "read_bytes_total": 10_737_418_240,
        "read_operations_total": 10_240,
        "write_bytes_total": None,
        "write_operations_total": None,
        "metadata_operations_total": 1900,
        "metadata_time_seconds_total": pytest.approx(1.9),
    }
    assert stats.cache == {
        "cache_hits_total": 1024,
        "cache_misses_total": 9216,
        "cache_hit_bytes_total": 1_073_741_824,
        "cache_miss_bytes_total": 9_663_676_416,
    }
    assert stats.store == {
        "read_bytes_total": 9_663_676_416,
        "read_operations_total": 2304,
        "read_time_seconds_total": pytest.approx(92.16),
        "write_bytes_total": None,
        "write_operations_total": None,
        "write_time_seconds_total": None,
    }
    assert stats.age_s == 3600


def test_hits_and_what_was_fetched_make_up_what_was_asked_for():
    stats = parse(SAMPLE)
    hits, fetched = stats.cache["cache_hit_bytes_total"], stats.store["read_bytes_total"]
    assert hits is not None and fetched is not None
    assert hits + fetched == stats.client["read_bytes_total"]


def test_lines_whose_labels_vanished_are_added_up():
    text = b"juicefs_blockcache_hits 3\njuicefs_blockcache_hits 4\njuicefs_blockcache_miss 1\n"
    assert parse(text).cache["cache_hits_total"] == 7
    torn = parse(text + b"juicefs_blockcache_hits N/A\n")
    assert torn.cache["cache_hits_total"] is None, "a sum without one of its parts would fall"
    assert torn.cache["cache_misses_total"] == 1


def test_a_name_is_the_whole_word():
    text = b"juicefs_blockcache_hits_other 5\nx_juicefs_blockcache_hits 6\n"
    assert parse(text).cache["cache_hits_total"] is None


def test_a_store_that_was_never_asked_is_zero_where_the_text_says_so():
    fresh = b"juicefs_object_request_errors 0\njuicefs_uptime 5\n"
    assert parse(fresh).store["read_bytes_total"] == 0
    assert parse(fresh[:-18]).store["read_bytes_total"] is None, "cut before the end of the names"
    assert parse(b"juicefs_uptime 5\n").store["read_bytes_total"] is None, "it keeps no such lines"


def test_the_mount_is_read_aside(tmp_path, mountpoint):
    (mountpoint / ".stats").write_bytes(SAMPLE)
    (source,) = seek(tmp_path, mountpoint)
    readings = {reading.source: reading for reading in look(source)}
    layers = {name: (r.layer, r.scope, r.instance) for name, r in readings.items()}
    mount = str(mountpoint)
    assert layers == {
        "juicefs.client": (Layer.CLIENT, Scope.MOUNT, mount),
        "juicefs.cache": (Layer.CACHE, Scope.MOUNT, mount),
        "juicefs.object": (Layer.WIRE, Scope.MOUNT, mount),
    }
    assert all(r.t_s is not None and r.gauges == {"age_seconds": 3600} for r in readings.values())
    source.close()


def test_where_it_is_hidden_it_has_another_name(tmp_path, mountpoint):
    """juicedata/juicefs#87 asked where a mount's numbers are: a user's own .stats is not them."""
    (mountpoint / ".stats").write_bytes(b"mine 1\n")
    (mountpoint / ".jfs.stats").write_bytes(SAMPLE)
    (source,) = seek(tmp_path, mountpoint)
    assert look(source)[0].counters["read_operations_total"] == 10_240
    source.close()


def test_what_is_another_program_s_is_refused(mountpoint):
    (mountpoint / ".stats").write_bytes(b"mine 1\n")
    source = JuiceFsSource([mountpoint / ".stats"], mount_path=str(mountpoint))
    with pytest.raises(ValueError, match="not the text of this filesystem"):
        list(source.read())


def test_without_the_file_it_says_where_it_looked(mountpoint):
    source = JuiceFsSource([mountpoint / ".stats"], mount_path=str(mountpoint))
    with pytest.raises(FileNotFoundError, match="there is no"):
        list(source.read())


def test_an_unmount_is_a_gap_and_a_remount_starts_again(mountpoint):
    file = mountpoint / ".stats"
    file.write_bytes(SAMPLE)
    source = JuiceFsSource([file], mount_path=str(mountpoint))
    assert len(list(source.read())) == 3
    file.unlink()
    assert list(source.read()) == []
    file.write_bytes(b"user's own\n")
    assert list(source.read()) == []
    file.write_bytes(b"juicefs_fuse_read_size_bytes_sum 4096\njuicefs_uptime 1\n")
    client, *_ = source.read()
    assert client.counters["read_bytes_total"] == 4096
    assert client.gauges == {"age_seconds": 1}


def test_a_text_longer_than_one_read_is_read_whole(mountpoint):
    padding = b"juicefs_padding 1\n" * 8000  # 144,000 bytes
    (mountpoint / ".stats").write_bytes(padding + SAMPLE)
    source = JuiceFsSource([mountpoint / ".stats"], mount_path=str(mountpoint))
    client, *_ = source.read()
    assert client.counters["read_operations_total"] == 10_240


def test_of_a_bind_mount_the_root_is_looked_for(tmp_path, mountpoint):
    (mountpoint / ".stats").write_bytes(SAMPLE)
    line = f"54 22 0:61 / {mountpoint} rw - fuse.juicefs JuiceFS:v rw\n"
    (source,) = seek(tmp_path, "/data", root="/train", mountinfo=line)
    assert look(source)[0].instance == "/data"
    source.close()
    (found,) = seek(tmp_path, "/data", root="/train")
    assert isinstance(found, Unavailable)
    assert "not mounted here" in found.reason


def test_another_filesystem_has_nothing_to_do_with_it(tmp_path, mountpoint):
    assert seek(tmp_path, mountpoint, filesystem="fuse.sshfs") == []
    assert find(Target(root_pid=1)) == []
