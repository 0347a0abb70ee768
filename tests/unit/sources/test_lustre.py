"""Lustre clients of several versions, in folders and behind stand-ins for lctl and lfs."""

import os
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside, look
from ioprof.sources.lustre import filesystem_of, find
from ioprof.sources.lustreparams import sections
from ioprof.sources.source import Roots, Target
from tests.unit.sources.fakesys import mount_of

DATA = Path(__file__).parents[2] / "data" / "lustre"
CLIENT = "train-ffff9a3b10e0f800"
OTHER = "train-ffff9a3b77777777"
SOURCE = "192.0.2.7@tcp:192.0.2.8@tcp:/train"


def text(name):
    return (DATA / name).read_bytes()


def seek(folder, *, source=SOURCE, filesystem="lustre", path="/mnt/train"):
    mount = mount_of(path, filesystem=filesystem, source=source)
    roots = Roots(proc=folder / "proc", sys=folder / "sys", root=folder)
    return find(Target(root_pid=1, mount=mount), roots=roots)


@pytest.fixture(autouse=True)
def _no_lustre_on_the_path(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def client(tree, name=CLIENT, *, stats="llite_stats_2.15.txt", osts=("OST0000", "OST0001")):
    """What a kernel shows of one mount, under /proc/fs/lustre or the like."""
    fs, _, number = name.rpartition("-")
    folder = tree / "llite" / name
    folder.mkdir(parents=True)
    (folder / "stats").write_bytes(text(stats))
    (folder / "read_ahead_stats").write_bytes(text("read_ahead_stats.txt"))
    (folder / "max_cached_mb").write_bytes(text("max_cached_mb.txt"))
    for ost in osts:
        folder = tree / "osc" / f"{fs}-{ost}-osc-{number}"
        folder.mkdir(parents=True)
        (folder / "stats").write_bytes(text("osc_stats.txt"))
        (folder / "rpc_stats").write_bytes(text("osc_rpc_stats.txt"))


def program(folder, name, script):
    path = folder / "usr" / "sbin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def lctl(folder, tree):
    """Tells what lies in `tree`, as the real one does."""
    program(
        folder,
        "lctl",
        f"""cd {tree} || exit 1
shift
if [ "$1" = -N ]; then ls -d $(echo "$2" | tr . /) | tr / . ; exit; fi
for p in "$@"; do
  f=$(echo "$p" | sed 's/\\./\\//g'); [ -f "$f" ] || exit 2
  echo "$p="; cat "$f"
done""",
    )


def readings(found):
    made: dict[tuple[str, str], Reading] = {}
    for source in found:
        assert not isinstance(source, Unavailable), source
        made |= {(r.source, r.instance): r for r in look(source)}
        source.close()
    return made


@pytest.mark.parametrize("tree", ["proc/fs/lustre", "sys/kernel/debug/lustre"])
def test_every_layer_of_a_mount_is_read_where_this_version_has_it(tmp_path, tree):
    client(tmp_path / tree)
    made = readings(seek(tmp_path))
    layers = {name: (r.layer, r.scope) for (name, _), r in made.items()}
    assert layers == {
        "lustre.llite": (Layer.APP, Scope.MOUNT),
        "lustre.metadata": (Layer.CLIENT, Scope.MOUNT),
        "lustre.osc": (Layer.WIRE, Scope.MOUNT),
        "lustre.readahead": (Layer.CACHE, Scope.MOUNT),
        "lustre.cache": (Layer.CACHE, Scope.MOUNT),
        "lustre.rpcs": (Layer.WIRE, Scope.MOUNT),
    }
    assert {instance for name, instance in made if name == "lustre.osc"} == {
        "/mnt/train OST0000",
        "/mnt/train OST0001",
    }
    llite = made["lustre.llite", "/mnt/train"]
    assert llite.counters["requested_bytes_total"] == 10_737_418_240
    assert llite.gauges["age_seconds"] == pytest.approx(9783.271040288)
    osc = made["lustre.osc", "/mnt/train OST0001"]
    assert osc.counters["read_bytes_total"] == 10_737_418_240
    rpcs = made["lustre.rpcs", "/mnt/train OST0000"]
    assert sum(rpcs.counters.values()) == 10_240
    assert rpcs.gauges["age_seconds"] == pytest.approx(9783.787901292)
    assert made["lustre.cache", "/mnt/train"].gauges["cache_used_bytes"] == 5116 << 20


def test_2_17_has_fast_reads_too(tmp_path):
    client(tmp_path / "sys" / "kernel" / "debug" / "lustre", stats="llite_stats_2.17.txt")
    fast = readings(seek(tmp_path))["lustre.fastread", "/mnt/train"]
    assert fast.layer is Layer.CACHE
    assert fast.counters["cache_hit_bytes_total"] == 2_147_483_648


def test_parameters_may_lie_in_different_trees(tmp_path):
    client(tmp_path / "sys" / "kernel" / "debug" / "lustre")
    (tmp_path / "sys" / "fs" / "lustre" / "llite" / CLIENT).mkdir(parents=True)
    moved = tmp_path / "proc" / "fs" / "lustre" / "llite" / CLIENT
    moved.mkdir(parents=True)
    old = tmp_path / "sys" / "kernel" / "debug" / "lustre" / "llite" / CLIENT / "max_cached_mb"
    old.rename(moved / "max_cached_mb")
    assert ("lustre.cache", "/mnt/train") in readings(seek(tmp_path))


def test_of_two_mounts_of_one_filesystem_lfs_tells_which(tmp_path):
    tree = tmp_path / "proc" / "fs" / "lustre"
    client(tree)
    client(tree, OTHER, stats="llite_stats_2.10.txt", osts=("OST0000",))
    (unavailable,) = seek(tmp_path)
    assert isinstance(unavailable, Unavailable)
    assert unavailable.reason.startswith("2 mounts of this filesystem may be /mnt/train")
    program(tmp_path, "lfs", f"echo {OTHER} $2")
    made = readings(seek(tmp_path))
    assert made["lustre.llite", "/mnt/train"].counters["requested_bytes_total"] == 2_684_354_560
    assert [instance for name, instance in made if name == "lustre.osc"] == ["/mnt/train OST0000"]
    program(tmp_path, "lfs", "echo cannot get name >&2; exit 1")
    (unavailable,) = seek(tmp_path)
    assert "status 1: cannot get name" in unavailable.reason


def test_other_filesystems_of_the_node_are_not_taken(tmp_path):
    tree = tmp_path / "proc" / "fs" / "lustre"
    client(tree)
    client(tree, "train-b-ffff9a3b10e0f800")
    client(tree, "train2-ffff9a3b10e0f811", osts=("OST0000", "OST0007"))
    made = readings(seek(tmp_path))
    assert len([name for name, _ in made if name == "lustre.osc"]) == 2


def test_files_that_may_not_be_read_are_asked_of_lctl(tmp_path):
    hidden = tmp_path / "hidden"
    client(hidden)
    # Not even the instances are listed: as debugfs is to a user who is not root.
    lctl(tmp_path, hidden)
    (source,) = seek(tmp_path)
    assert isinstance(source, Aside)
    made = {(r.source, r.instance): r for r in look(source)}
    assert made["lustre.osc", "/mnt/train OST0001"].counters["read_operations_total"] == 10_240
    assert made["lustre.llite", "/mnt/train"].t_s is not None
    assert len(made) == 8
    source.close()


def test_a_parameter_that_lctl_does_not_have_costs_the_others_nothing(tmp_path):
    client(tmp_path / "hidden")
    (tmp_path / "hidden" / "llite" / CLIENT / "max_cached_mb").unlink()
    lctl(tmp_path, tmp_path / "hidden")
    made = readings(seek(tmp_path))
    assert ("lustre.osc", "/mnt/train OST0000") in made
    assert ("lustre.cache", "/mnt/train") not in made


def test_without_a_client_one_line_says_so(tmp_path):
    """GSI-HPC/lustre_exporter#36: a missing lctl was complained of at every look."""
    (unavailable,) = seek(tmp_path)
    assert isinstance(unavailable, Unavailable)
    assert unavailable.reason.startswith("no client of the filesystem train is in ")
    assert unavailable.reason.endswith("lctl is not on this node")
    assert unavailable.remedy is not None
    assert "as root" in unavailable.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_statistics_of_root_alone_are_named_as_such(tmp_path):
    client(tmp_path / "proc" / "fs" / "lustre")
    (tmp_path / "proc" / "fs" / "lustre" / "llite" / CLIENT / "stats").chmod(0)
    (unavailable,) = seek(tmp_path)
    assert "may not be read by this user" in unavailable.reason


def test_statistics_that_are_not_there_are_named_as_such(tmp_path):
    """As they look to a user who may list /sys/fs/lustre and not debugfs."""
    (tmp_path / "sys" / "fs" / "lustre" / "llite" / CLIENT).mkdir(parents=True)
    (unavailable,) = seek(tmp_path)
    assert unavailable.reason.startswith(f"the statistics of {CLIENT} and its OSTs may not be read")


def test_nothing_is_written_and_cleared_counters_are_handed_on(tmp_path):
    tree = tmp_path / "proc" / "fs" / "lustre"
    client(tree)
    file = tree / "llite" / CLIENT / "stats"
    before = file.stat().st_mtime_ns
    main, _ = seek(tmp_path)
    first = {(r.source, r.instance): r for r in main.read()}
    assert file.stat().st_mtime_ns == before
    file.write_bytes(
        b"snapshot_time 1710759800.0 secs.nsecs\nstart_time 1710759798.0 secs.nsecs\n"
        b"elapsed_time 2.0 secs.nsecs\nread_bytes 1 samples [bytes] 4096 4096 4096 16777216\n"
    )
    second = {(r.source, r.instance): r for r in main.read()}
    key = ("lustre.llite", "/mnt/train")
    assert second[key].counters["requested_bytes_total"] == 4096
    assert second[key].gauges["age_seconds"] < first[key].gauges["age_seconds"]


def test_an_unmount_leaves_its_readings_out(tmp_path):
    tree = tmp_path / "proc" / "fs" / "lustre"
    client(tree)
    main, detail = seek(tmp_path)
    assert len(list(main.read())) == 4
    for file in sorted(tree.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    assert [*main.read(), *detail.read()] == []


def test_a_text_longer_than_a_page_is_read_to_its_end(tmp_path):
    tree = tmp_path / "proc" / "fs" / "lustre"
    client(tree)
    head, tail = text("llite_stats_2.15.txt").split(b"read_bytes", 1)
    many = b"".join(b"other%05d 1 samples [reqs]\n" % n for n in range(4000))
    (tree / "llite" / CLIENT / "stats").write_bytes(head + many + b"read_bytes" + tail)
    made = readings(seek(tmp_path))
    assert made["lustre.llite", "/mnt/train"].counters["requested_bytes_total"] == 10_737_418_240


def test_many_osts_are_read_less_often(tmp_path):
    client(tmp_path / "proc" / "fs" / "lustre", osts=[f"OST{n:04x}" for n in range(130)])
    main, detail = seek(tmp_path)
    assert (main.every_ticks, detail.every_ticks) == (3, 10)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("192.0.2.7@tcp:/train", "train"),
        ("192.0.2.7@tcp1,198.51.100.7@o2ib:192.0.2.8@tcp:/train/set:/a", "train"),
        ("mgs@tcp:/", None),
        ("/dev/sdb", None),
    ],
)
def test_the_filesystem_is_named_after_the_servers(source, name):
    assert filesystem_of(mount_of("/x", filesystem="lustre", source=source)) == name


def test_a_server_s_own_target_is_no_client(tmp_path):
    (unavailable,) = seek(tmp_path, source="/dev/mapper/ost0")
    assert "names no Lustre filesystem" in unavailable.reason


def test_another_filesystem_has_nothing_to_do_with_it(tmp_path):
    assert seek(tmp_path, filesystem="xfs") == []
    assert find(Target(root_pid=1)) == []


def test_sections_of_an_answer():
    wanted = frozenset([b"llite.a.stats", b"llite.a.max_cached_mb"])
    answer = b"llite.a.stats=\nx=1\ny\nllite.a.max_cached_mb=128\nllite.a.stats.other=\n"
    assert sections(answer, wanted) == {
        "llite.a.stats": b"x=1\ny\n",
        "llite.a.max_cached_mb": b"128\nllite.a.stats.other=\n",
    }
