"""DAOS' agent, with a real server on loopback that stands in for it."""

import http.server
import threading
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.aside import look
from ioprof.sources.daos import VARIABLE, DaosSource, find
from ioprof.sources.daosstats import Tally, parse
from ioprof.sources.exporter import Exporter
from ioprof.sources.source import Target
from tests.unit.sources.fakesys import mount_of

SAMPLE = (Path(__file__).parents[2] / "data" / "daos" / "agent_client_metrics.prom").read_bytes()


class Agent(http.server.ThreadingHTTPServer):
    text = SAMPLE
    status = 200
    slowness: threading.Event | None = None


class Handler(http.server.BaseHTTPRequestHandler):
    server: Agent

    def do_GET(self):
        if self.server.slowness is not None:
            self.server.slowness.wait(10)
            return
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.text)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def agent(monkeypatch):
    server = Agent(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv(VARIABLE, f"http://127.0.0.1:{server.server_port}/metrics")
    yield server
    if server.slowness is not None:
        server.slowness.set()
    server.shutdown()
    thread.join()
    server.server_close()


def seek(filesystem="fuse.daos"):
    mount = mount_of("/mnt/daos", filesystem=filesystem, source="dfuse")
    return find(Target(root_pid=1, mount=mount))


def line(name, value, *, pid=1):
    return f'{name}{{jobid="train",pid="{pid}",pool="a",container="b"}} {value}\n'.encode()


def test_bytes_are_the_sums_and_not_the_last_size():
    counters = Tally().counters(parse(SAMPLE))
    assert counters == {
        "read_bytes_total": 10_737_418_240,
        "read_operations_total": 10_240,
        "write_bytes_total": None,
        "write_operations_total": None,
        "open_operations_total": 1281,
        "lookup_operations_total": None,
        "getattr_operations_total": None,
        "readdir_operations_total": None,
        "metadata_operations_total": 1281,
    }


def test_processes_are_added_up_and_metadata_is_what_is_counted():
    text = (
        line("client_dfs_ops_read", 3, pid=1)
        + line("client_dfs_ops_read", 4, pid=2)
        + line("client_dfs_ops_stat", 10)
        + line("client_dfs_ops_getsize", 1)
        + line("client_dfs_ops_readdir", 5)
        + line("client_dfs_ops_chmod", 100)
    )
    counters = Tally().counters(parse(text))
    assert counters["read_operations_total"] == 7
    assert counters["getattr_operations_total"] == 11
    assert counters["metadata_operations_total"] == 16


def test_a_process_that_ends_takes_nothing_away():
    tally = Tally()
    tally.counters(parse(line("client_dfs_ops_read", 30) + line("client_dfs_ops_read", 12, pid=2)))
    after = tally.counters(parse(line("client_dfs_ops_read", 31)))
    assert after["read_operations_total"] == 43
    again = tally.counters(parse(line("client_dfs_ops_read", 5, pid=2)))
    assert again["read_operations_total"] == 48, "its pid was given to another, which began at 0"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"client_dfs_ops_read{",
        b"client_dfs_ops_read NaN",
        b"client_dfs_ops_read{} -1",
        b"client_dfs_ops_read_more 5",
        b"client_dfs_read_bytes 1048576",
        b"# HELP client_dfs_ops_read 5",
    ],
)
def test_torn_or_other_lines_are_none_and_never_zero(text):
    assert set(Tally().counters(parse(text)).values()) == {None}


def test_a_line_that_cannot_be_read_takes_no_other_with_it():
    text = b'client_dfs_ops_open{pid="1} 7\n' + line("client_dfs_ops_read", 5)
    assert Tally().counters(parse(text))["read_operations_total"] == 5


def test_the_agent_is_asked_aside(agent):
    (source,) = seek()
    (reading,) = look(source)
    assert (reading.source, reading.instance) == ("daos.dfs", "/mnt/daos")
    assert (reading.layer, reading.scope) == (Layer.WIRE, Scope.DEVICE)
    assert reading.counters["read_bytes_total"] == 10_737_418_240
    assert "not this mount alone" in (reading.note or "")
    assert reading.t_s is not None
    source.close()


def test_an_agent_that_refuses_or_is_gone_is_an_error(agent):
    agent.status = 503
    exporter = Exporter(f"http://127.0.0.1:{agent.server_port}/metrics")
    with pytest.raises(OSError, match="answered 503"):
        list(DaosSource(exporter, mount_path="/mnt/daos").read())
    with pytest.raises(ConnectionRefusedError):
        Exporter("http://127.0.0.1:9/metrics").fetch()


def test_an_agent_that_does_not_answer_is_waited_for_only_so_long(agent):
    agent.slowness = threading.Event()
    exporter = Exporter(f"http://127.0.0.1:{agent.server_port}/metrics")
    with pytest.raises(TimeoutError):
        exporter.fetch(deadline_s=0.1)


@pytest.mark.parametrize(
    "address",
    ["http://192.0.2.1:9191/metrics", "https://127.0.0.1/", "file:///etc/passwd", "9191", "http://127.0.0.1:x/"],
)  # fmt: skip
def test_only_this_machine_is_ever_asked(monkeypatch, address):
    monkeypatch.setenv(VARIABLE, address)
    (found,) = seek()
    assert isinstance(found, Unavailable)
    assert "is not usable" in found.reason


def test_without_an_address_it_says_what_to_set(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    (found,) = seek()
    assert isinstance(found, Unavailable)
    assert "D_CLIENT_METRICS_ENABLE=1" in (found.remedy or "")


def test_another_filesystem_has_nothing_to_do_with_it(agent):
    assert seek("fuse.sshfs") == []
    assert find(Target(root_pid=1)) == []
