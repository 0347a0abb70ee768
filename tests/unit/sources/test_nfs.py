"""NFS mounts found in recorded texts."""

import os
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.nfs import FACTS, find
from ioprof.sources.procfile import ProcFile
from ioprof.sources.source import Target
from tests.unit.sources.fakesys import FakeSys, mount_of

DATA = Path(__file__).parents[2] / "data" / "nfs"
TCP = (DATA / "mountstats_v4_tcp_nconnect4.txt").read_bytes()
RDMA = (DATA / "mountstats_v3_rdma.txt").read_bytes()
VAST = (DATA / "vast_debugfs_rpc_clnt_stats.txt").read_bytes()
RPC = b"net 0 0 0 0\nrpc 5000 3 5001\nproc3 22 0 1 0 2 3 0 4096 7\nproc4 3 1 12288 5\n"


@pytest.fixture
def fake(tmp_path):
    return FakeSys(tmp_path)


def mountstats(fake, text):
    file = fake.roots.proc / "self" / "mountstats"
    file.write_bytes(text)
    return file


def rpc(fake, text=RPC):
    file = fake.roots.proc / "net" / "rpc" / "nfs"
    file.parent.mkdir(parents=True)
    file.write_bytes(text)


def look(fake, path="/mnt/nfs4", **mount):
    named = {"filesystem": "nfs4", "source": "192.0.2.10:/export", "number": "0:50", **mount}
    return find(Target(root_pid=1, mount=mount_of(path, **named)), roots=fake.roots)


def look_vast(fake, *options):
    return look(
        fake,
        "/mnt/vast",
        filesystem="nfs",
        source="192.0.2.101:/",
        options=("rw", "vers=3", "proto=rdma", *options),
    )


def test_one_mount_is_read_at_three_places(fake):
    mountstats(fake, TCP)
    (source,) = look(fake)
    app, wire, xprt = source.read()
    source.close()
    assert (app.source, app.layer, app.scope) == ("nfs.app", Layer.APP, Scope.MOUNT)
    assert (wire.source, wire.layer, wire.scope) == ("nfs.wire", Layer.WIRE, Scope.MOUNT)
    assert (xprt.source, xprt.layer, xprt.scope) == ("nfs.xprt", Layer.WIRE, Scope.DEVICE)
    assert {app.instance, wire.instance, xprt.instance} == {"/mnt/nfs4"}
    assert app.counters["requested_bytes_total"] == 11_811_160_064
    assert wire.counters["read_bytes_total"] == 12_884_901_888
    assert app.gauges == wire.gauges == {"age_seconds": 3600}
    assert xprt.gauges == {"connections": 4}
    assert wire.note is None


def test_every_name_has_its_fact(fake):
    mountstats(fake, TCP)
    rpc(fake)
    sources = [*look(fake), *look(fake, "/mnt/none")]
    for source in sources:
        for reading in [] if isinstance(source, Unavailable) else source.read():
            told = {c for fact in FACTS if fact.source == reading.source for c in fact.counters}
            assert told >= set(reading.counters) | set(reading.gauges)


def test_an_unmount_is_a_gap_and_a_remount_has_a_lesser_age(fake):
    mountstats(fake, TCP)
    (source,) = look(fake)
    assert len(list(source.read())) == 3
    mountstats(fake, b"device proc mounted on /proc with fstype proc\n")
    assert list(source.read()) == []
    again = TCP.replace(b"age:\t3600", b"age:\t2").replace(b" 12884901888 0 2883584", b" 4096 0 1")
    mountstats(fake, again)
    _, wire, _ = source.read()
    source.close()
    assert wire.counters["read_bytes_total"] == 4096
    assert wire.gauges == {"age_seconds": 2}


def test_columns_stay_where_lines_come_and_go(fake):
    mountstats(fake, TCP)
    (source,) = look(fake)
    before = list(source.read())
    mountstats(fake, b"".join(TCP.partition(b"\tper-op statistics\n")[:2]))
    after = list(source.read())
    source.close()
    assert [tuple(r.counters) for r in before] == [tuple(r.counters) for r in after]
    assert after[1].counters["read_operations_total"] is None
    assert after[1].counters["read_bytes_total"] == 12_884_901_888


def test_two_mounts_of_one_export_are_told(fake):
    """Both show the same counters, so the bytes of one are those of all."""
    mountstats(fake, TCP)
    fake.mountinfo(
        "40 1 0:50 /train /mnt/nfs4 rw - nfs4 192.0.2.10:/export rw\n"
        "41 1 0:50 /val /mnt/my\\040val rw - nfs4 192.0.2.10:/export rw\n"
        "42 1 0:51 / /mnt/other rw - nfs4 192.0.2.11:/export rw\n"
        "108 53 0:34 / /var/lib/nfs/rpc_pipefs rw,relatime - rpc_pipefs sunrpc rw\n"
    )
    (source,) = look(fake)
    app, wire, _ = source.read()
    source.close()
    assert app.note == wire.note
    assert wire.note.startswith("reads through /mnt/my val are in it too")


def test_a_long_text_is_read_to_its_end_and_more_rarely(fake):
    mountstats(fake, b"device tmpfs mounted on /x with fstype tmpfs\n" * 12_000 + TCP)
    (source,) = look(fake)
    assert source.every_ticks == 3
    assert len(list(source.read())) == 3
    source.close()


def test_a_short_buffer_of_the_kernel_is_not_the_end(tmp_path, monkeypatch):
    """A record that does not fit into the kernel's buffer is left for the next read."""
    file = tmp_path / "mountstats"
    file.write_bytes(TCP)
    kept = ProcFile(file)
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: whole(fd, min(size, 100), at))
    assert kept.read_to_end() == TCP
    kept.close()


@pytest.mark.parametrize(
    ("text", "says"),
    [(None, "No such file"), (b"", "has no statistics"), (RDMA, "has no statistics")],
)
def test_without_statistics_of_the_mount_all_mounts_are_counted(fake, text, says):
    if text is not None:
        mountstats(fake, text)
    rpc(fake)
    silent, source = look(fake)
    assert silent.source == "nfs.wire"
    assert says in silent.reason
    (reading,) = source.read()
    source.close()
    assert (reading.source, reading.instance, reading.scope) == ("nfs.rpc", "v4", Scope.HOST)
    assert reading.counters == {
        "read_operations_total": 12_288,
        "write_operations_total": 5,
        "metadata_operations_total": None,
        "retransmits_total": 3,
    }


@pytest.mark.parametrize(
    ("options", "filesystem", "instance"),
    [(("vers=3",), "nfs", "v3"), (("rw",), "nfs", "v3"), (("vers=4.2",), "nfs4", "v4")],
)
def test_the_counts_are_of_the_mounts_version(fake, options, filesystem, instance):
    rpc(fake)
    _, source = look(fake, options=options, filesystem=filesystem)
    assert [r.instance for r in source.read()] == [instance]
    source.close()


def test_with_neither_file_both_reasons_are_told(fake):
    assert [one.source for one in look(fake)] == ["nfs.wire", "nfs.rpc"]


def test_another_filesystem_has_nothing_to_do_with_it(fake):
    mountstats(fake, TCP)
    assert look(fake, filesystem="ext4") == []
    assert find(Target(root_pid=1), roots=fake.roots) == []


def client(fake, number, text=VAST):
    file = fake.roots.sys / "kernel/debug/sunrpc/rpc_clnt" / number / "stats"
    file.parent.mkdir(parents=True)
    file.write_bytes(text)
    return file


def test_the_paths_of_a_multipath_client_are_detail_below_the_mount(fake):
    mountstats(fake, RDMA)
    client(fake, "5")
    client(fake, "6", VAST.replace(b"100003/3", b"100005/3"))
    client(fake, "7", VAST.replace(b"192.0.2.101", b"192.0.2.201"))
    (fake.roots.sys / "kernel/debug/sunrpc/rpc_clnt/8").mkdir()
    mount, paths = look_vast(fake)
    (first, second) = paths.read()
    paths.close()
    mount.close()
    assert first.source == "nfs.path"
    assert first.instance == "/mnt/vast 192.0.2.25->192.0.2.101"
    assert first.counters == {
        "send_requests_total": 300,
        "receive_requests_total": 300,
        "rdma_reply_bytes_total": 293_601_280,
    }
    assert first.gauges == {"connections": 1, "connected": 1}
    assert second.instance == "/mnt/vast 192.0.2.26->192.0.2.102"
    assert second.gauges == {"connections": 1, "connected": 0}


def test_connections_between_the_same_addresses_are_summed(fake):
    mountstats(fake, RDMA)
    client(fake, "5", VAST.replace(b".26 -> 192.0.2.102", b".25 -> 192.0.2.101") * 2)
    mount, paths = look_vast(fake)
    (reading,) = paths.read()
    paths.close()
    mount.close()
    assert reading.counters["rdma_reply_bytes_total"] == 587_202_560
    assert reading.gauges == {"connections": 4, "connected": 2}


def test_two_clients_of_one_server_are_not_guessed_at(fake):
    mountstats(fake, RDMA)
    client(fake, "5")
    client(fake, "6")
    mount, silent = look_vast(fake)
    mount.close()
    assert silent.source == "nfs.path"
    assert silent.reason.startswith("2 clients of 192.0.2.101")


def test_an_ordinary_client_tells_no_paths_and_is_not_asked_why(fake):
    mountstats(fake, RDMA)
    (mount,) = look_vast(fake)
    mount.close()
    mount, silent = look_vast(fake, "remoteports=192.0.2.101-192.0.2.116")
    mount.close()
    assert silent.source == "nfs.path"
    assert "run as root" in silent.remedy
