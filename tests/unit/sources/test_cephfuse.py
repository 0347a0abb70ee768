"""ceph-fuse, with a real socket that answers as its daemon does."""

import json
import socket
import threading
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources import cephfuse
from ioprof.sources.aside import look
from ioprof.sources.cephfuse import CephFuseSource, ask_daemon, find, mount_point, parse
from ioprof.sources.source import Roots, Target
from tests.unit.sources.fakesys import mount_of

DATA = Path(__file__).parents[2] / "data" / "ceph"
DUMP = (DATA / "ceph_fuse_perf_dump.json").read_bytes()
STATUS = (DATA / "ceph_fuse_status.json").read_bytes()


class Daemon:
    """Listens at an admin socket and answers each request with what it was given."""

    def __init__(self, path, answers):
        self.asked = []
        self.answers = answers
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(4)
        self._path = path
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        while True:
            connection, _ = self._listener.accept()
            with connection:
                request = b""
                while not request.endswith(b"\0"):
                    more = connection.recv(1024)
                    if not more:
                        break
                    request += more
                if not request:
                    return
                prefix = json.loads(request[:-1])["prefix"]
                self.asked.append(prefix)
                answer = self.answers.get(prefix)
                if answer is None:
                    connection.recv(1)  # until the one who asks gives up
                    continue
                head = answer if answer.startswith(b"raw") else len(answer).to_bytes(4, "big")
                connection.sendall(head.removeprefix(b"raw"))
                if not answer.startswith(b"raw"):
                    for at in range(0, len(answer), 700):
                        connection.sendall(answer[at : at + 700])

    def close(self):
        if self._path.exists():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last:
                last.connect(str(self._path))
            self._thread.join()
        self._path.unlink(missing_ok=True)
        self._listener.close()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "var" / "run" / "ceph"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def daemons(folder):
    started = []

    def start(name, **answers):
        by_prefix = {key.replace("_", " "): value for key, value in answers.items()}
        started.append(Daemon(folder / name, by_prefix))
        return started[-1]

    yield start
    for daemon in started:
        daemon.close()


def seek(tmp_path, *, path="/mnt/cephfuse", filesystem="fuse.ceph-fuse", mountinfo="", root="/"):
    (tmp_path / "proc" / "self").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc" / "self" / "mountinfo").write_text(mountinfo)
    mount = mount_of(path, filesystem=filesystem, source="ceph-fuse", number="0:57", root=root)
    return find(Target(root_pid=1, mount=mount), roots=Roots(root=tmp_path, proc=tmp_path / "proc"))


def test_bytes_are_what_all_messenger_workers_received():
    assert parse(DUMP).wire == {
        "read_bytes_total": 67_238_698,  # 67,235,004 + 3,694
        "read_operations_total": 512,
        "write_operations_total": 18,
        "metadata_operations_total": 2,
        "metadata_time_seconds_total": pytest.approx(0.0088),
    }


def test_reads_of_the_kernel_are_those_whose_latency_was_taken():
    assert parse(DUMP).client == {
        "read_operations_total": 19_264,
        "read_time_seconds_total": pytest.approx(0.404668),
        "write_operations_total": 512,
        "write_time_seconds_total": pytest.approx(0.10296),
    }


def test_counters_known_to_be_wrong_are_never_given():
    dump = parse(DUMP)
    given = {*dump.wire.values(), *dump.client.values()}
    assert 80_077_651_968 not in given, "cache_bytes_hit says 80 GB of 0.4 GB read"
    assert 818_278_400 not in given, "data_read has cache hits in it"
    assert dump.client["read_operations_total"] != 512, "rdops leaves out most reads"


def test_what_is_absent_or_odd_is_none_and_never_zero():
    odd = {
        "AsyncMessenger::Worker-0": {"msgr_recv_bytes": 5},
        "AsyncMessenger::Worker-1": {"msgr_recv_bytes": "many"},
        "client": {"rdlat": 7, "lat": {"avgcount": True, "sum": -1}},
    }
    dump = parse(json.dumps(odd).encode())
    assert {*dump.wire.values(), *dump.client.values()} == {None}


def test_a_reply_that_is_no_object_is_an_error():
    with pytest.raises(ValueError, match="no object"):
        parse(b"[]")


def test_status_names_the_mount_point():
    assert mount_point(STATUS) == "/mnt/cephfuse"
    assert mount_point(b'{"cluster_fsid": "x", "whoami": 0}') is None, "an object server"


def test_the_socket_of_the_mount_is_found_among_others(tmp_path, daemons):
    daemons("a-osd.0.asok", status=b'{"whoami": 0}', perf_dump=b"{}")
    other = STATUS.replace(b"/mnt/cephfuse", b"/mnt/other")
    daemons("b-client.1.asok", status=other, perf_dump=b"{}")
    mine = daemons("c-client.2.asok", status=STATUS, perf_dump=DUMP)
    (source,) = seek(tmp_path)
    wire, client = look(source)
    assert (wire.source, wire.instance) == ("cephfuse.wire", "/mnt/cephfuse")
    assert (wire.layer, wire.scope) == (Layer.WIRE, Scope.MOUNT)
    assert wire.counters["read_bytes_total"] == 67_238_698
    assert wire.t_s is not None
    assert (client.source, client.layer) == ("cephfuse.client", Layer.CLIENT)
    assert client.counters["read_operations_total"] == 19_264
    assert set(mine.asked) == {"status", "perf dump"}, "never a reset"
    source.close()


def test_a_bind_mount_is_found_by_the_filesystem_it_is_of(tmp_path, daemons):
    daemons("c-client.2.asok", status=STATUS, perf_dump=DUMP)
    lines = (
        "50 22 0:57 / /mnt/cephfuse rw - fuse.ceph-fuse ceph-fuse rw\n"
        "51 22 0:57 /train /data rw - fuse.ceph-fuse ceph-fuse rw\n"
    )
    (source,) = seek(tmp_path, path="/data", root="/train", mountinfo=lines)
    assert not isinstance(source, Unavailable)
    assert look(source)[0].instance == "/data"
    source.close()


def test_a_daemon_that_does_not_answer_is_waited_for_only_so_long(tmp_path, daemons, monkeypatch):
    monkeypatch.setattr(cephfuse, "_FIND_DEADLINE_S", 0.2)
    daemons("hung.asok")
    (found,) = seek(tmp_path)
    assert isinstance(found, Unavailable)
    assert "none of 1 admin sockets" in found.reason
    assert "hung.asok: timed out" in found.reason


def test_an_answer_cut_short_or_absurdly_long_is_an_error(folder, daemons):
    daemons("x.asok", short=b"raw\0\0\0\x09{}", long=b"raw\xff\xff\xff\xff")
    with pytest.raises(OSError, match="hung up before its answer was whole"):
        ask_daemon(folder / "x.asok", "short")
    with pytest.raises(OSError, match="4294967295 bytes"):
        ask_daemon(folder / "x.asok", "long")


def test_a_daemon_that_is_gone_is_a_gap(folder, daemons):
    daemon = daemons("c-client.2.asok", status=STATUS, perf_dump=DUMP)
    source = CephFuseSource(folder / "c-client.2.asok", mount_path="/mnt/cephfuse")
    assert len(list(source.read())) == 2
    daemon.close()
    assert list(source.read()) == []
    source.close()


def test_without_a_socket_it_says_so(tmp_path):
    (found,) = seek(tmp_path)
    assert isinstance(found, Unavailable)
    assert "no admin socket" in found.reason


def test_another_filesystem_has_nothing_to_do_with_it(tmp_path):
    assert seek(tmp_path, filesystem="ceph") == []
    assert find(Target(root_pid=1)) == []
