"""WekaFS, by its driver's files and a stand-in for its command."""

import json
import os
import re
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.aside import look
from ioprof.sources.source import Roots, Target
from ioprof.sources.weka import find
from ioprof.sources.wekastats import (
    counters,
    frontends,
    means,
    parse_processes,
    parse_rates,
    parse_stat,
)
from tests.unit.sources.fakesys import mount_of

DATA = Path(__file__).parents[2] / "data" / "weka"
STAT = (DATA / "proc_wekafs_stat.txt").read_bytes()
INTERFACE = (DATA / "proc_wekafs_interface.txt").read_bytes()
V3 = (DATA / "api_stats_show_v3.json").read_bytes()
V4 = (DATA / "api_stats_show_v4.json").read_bytes()
PROCESSES = json.dumps(
    [
        {"id": "NodeId<40>", "hostname": "client1", "roles": ["MANAGEMENT"]},
        {"id": "NodeId<41>", "hostname": "client1", "roles": ["FRONTEND"]},
        {"id": "NodeId<90>", "hostname": "client2", "roles": ["FRONTEND"]},
    ]
).encode()


def test_operations_since_the_driver_was_loaded():
    assert counters(parse_stat(STAT)) == {
        "read_operations_total": 1_048_576,
        "write_operations_total": 983_137,
        "lookup_operations_total": 4_079,
        "getattr_operations_total": 1,
        "open_operations_total": 0,
        "readdir_operations_total": 0,
        "metadata_operations_total": 4_080,
    }


def test_large_reads_are_reads_too():
    text = re.sub(rb"(jumbo read: .*) 0\n", rb"\1 24\n", STAT)
    assert counters(parse_stat(text))["read_operations_total"] == 1_048_600


def test_a_lifetime_mean_is_a_gauge_in_the_unit_that_the_text_says():
    assert means(parse_stat(STAT)) == {
        "read_frontend_mean_seconds": pytest.approx(390e-6),
        "read_driver_mean_seconds": pytest.approx(41.2e-6),
    }
    other = means(parse_stat(STAT.replace(b"390 us", b"390 ms").replace(b"41200 ns", b"41200 qs")))
    assert other["read_frontend_mean_seconds"] == pytest.approx(0.39)
    assert other["read_driver_mean_seconds"] is None


def test_a_mean_of_no_reads_is_none():
    text = STAT.replace(b"1048576 (1048570)", b"0")
    assert set(means(parse_stat(text)).values()) == {None}


def test_a_row_that_is_not_there_is_not_zero():
    rows = parse_stat(re.sub(rb"getattr:.*\n", b"", STAT))
    made = counters(rows)
    assert made["getattr_operations_total"] is None
    assert made["metadata_operations_total"] is None
    assert made["lookup_operations_total"] == 4_079


def test_the_frontends_of_each_container():
    assert frontends(INTERFACE) == {"client": 1}
    gone = INTERFACE.replace(b"Connected frontend pid 4081176", b"Frontend is not connected")
    assert frontends(gone) == {}


def test_processes_of_this_host_that_serve_its_mounts():
    assert parse_processes(PROCESSES, hosts={"client1"}) == {41}
    assert parse_processes(PROCESSES, hosts={"client3"}) == frozenset()
    older = b'{"NodeId<41>": {"hostname": "client1", "roles": ["MANAGEMENT", "FRONTEND"]}}'
    assert parse_processes(older, hosts={"client1"}) == {41}
    assert parse_processes(b"not json", hosts={"client1"}) == frozenset()


def test_rates_as_version_3_tells_them():
    assert parse_rates(V3, processes={41}) == {
        "read_bytes_per_second": 102_236_160,
        "reads_per_second": None,
        "read_latency_seconds": None,
    }


def test_rates_as_version_4_tells_them():
    assert parse_rates(V4, processes={41}) == {
        "read_bytes_per_second": 102_236_160,
        "reads_per_second": 97.5,
        "read_latency_seconds": pytest.approx(412.3e-6),
    }


def test_another_hosts_rates_are_not_ours():
    assert set(parse_rates(V4, processes={42}).values()) == {None}
    assert set(parse_rates(V4, processes=()).values()) == {None}


def look_of(when, **stats):
    return {"timestamp": f"2026-01-01T12:{when:02}:00Z", "resolution": 60, "stats": stats}


def test_processes_are_added_up_over_the_last_minute_that_all_of_them_tell():
    answer = {
        "NodeId<1>": {
            "ops_driver": [
                look_of(1, READS=10.0, READ_BYTES=1000.0, READ_LATENCY=100.0),
                look_of(2, READS=99.0, READ_BYTES=9900.0, READ_LATENCY=900.0),
            ]
        },
        "NodeId<2>": {
            "ops_driver": [
                look_of(0, READS=5.0, READ_BYTES=500.0, READ_LATENCY=500.0),
                look_of(1, READS=30.0, READ_BYTES=3000.0, READ_LATENCY=300.0),
            ]
        },
    }
    assert parse_rates(json.dumps(answer).encode(), processes={1, 2}) == {
        "read_bytes_per_second": 4000,
        "reads_per_second": 40,
        # (10 x 100 us + 30 x 300 us) / 40
        "read_latency_seconds": pytest.approx(250e-6),
    }


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host "client1" with the driver loaded and no command."""
    folder = tmp_path / "proc" / "wekafs"
    folder.mkdir(parents=True)
    (folder / "stat").write_bytes(STAT)
    (folder / "interface").write_bytes(INTERFACE)
    name = tmp_path / "proc" / "sys" / "kernel" / "hostname"
    name.parent.mkdir(parents=True)
    name.write_text("client1.cluster.example\n")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path


def program(host, script):
    path = host / "bin" / "weka"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def seek(host, *, filesystem="wekafs", options=()):
    mount = mount_of("/mnt/weka", filesystem=filesystem, source="backend1/default", options=options)
    roots = Roots(proc=host / "proc", sys=host / "sys", root=host)
    return find(Target(root_pid=1, mount=mount), roots=roots)


def reading_of(source):
    assert not isinstance(source, Unavailable), source
    *_, reading = look(source)
    source.close()
    return reading


def test_the_driver_s_counts_and_the_command_s_absence(host):
    """No bytes are made up of counts, means or rates (weka/csi-wekafs 271, 542, 723)."""
    driver, rates = seek(host)
    reading = reading_of(driver)
    assert (reading.source, reading.layer, reading.scope) == (
        "weka.driver", Layer.CLIENT, Scope.HOST,
    )  # fmt: skip
    assert reading.counters["read_operations_total"] == 1_048_576
    assert not any("bytes" in name for name in reading.counters)
    assert reading.gauges["connected_frontends"] == 1
    assert rates.reason == "the command weka is not on this node"
    assert "process.io" in rates.remedy


def test_the_mounts_own_container_is_looked_at(host):
    folder = host / "proc" / "wekafs"
    (folder / "stat").unlink()
    for name, count in (("client", b"1048576"), ("other", b"7")):
        (folder / name).mkdir()
        (folder / name / "stat").write_bytes(STAT.replace(b"1048576 (1048570)", count))
    reading = reading_of(seek(host, options=("rw", "container_name=other"))[0])
    assert reading.counters["read_operations_total"] == 7
    assert reading.gauges["connected_frontends"] == 0
    assert isinstance(seek(host)[0], Unavailable), "of two nothing tells which is the mount's"
    (folder / "other" / "stat").unlink()
    reading = reading_of(seek(host)[0])
    assert reading.counters["read_operations_total"] == 1_048_576


def test_without_the_drivers_files_one_line_says_so(host):
    (host / "proc" / "wekafs" / "stat").unlink()
    driver, _ = seek(host)
    assert driver.reason == "no /proc/wekafs/stat tells what the driver did for this mount"


def test_a_driver_that_hangs_holds_nobody_up(host):
    """Its file blocks while the driver does (weka/csi-wekafs 484)."""
    path = host / "proc" / "wekafs" / "interface"
    path.unlink()
    os.mkfifo(path)
    driver, _ = seek(host)
    with pytest.raises(TimeoutError, match=r"weka\.driver did not answer within 0\.2 s"):
        look(driver, deadline_s=0.2)
    writer = os.open(path, os.O_RDWR)
    driver.close()
    os.close(writer)


def test_an_unloaded_driver_is_no_reading(host):
    driver, _ = seek(host)
    (host / "proc" / "wekafs" / "stat").unlink()
    assert look(driver) == []
    driver.close()


@pytest.mark.parametrize(("listing", "each"), [("process", "process"), ("nodes", "node")])
def test_the_command_of_each_version_is_asked(host, listing, each):
    (host / "processes").write_bytes(PROCESSES)
    (host / "stats").write_bytes(V4)
    program(
        host,
        'case "$*" in\n'
        f'"cluster {listing} --json") cat {host}/processes;;\n'
        f"*READ_BYTES*--json\\ --per-{each}) cat {host}/stats;;\n"
        '*) echo "error: unknown: $*" >&2; exit 2;;\nesac',
    )
    _, rates = seek(host)
    reading = reading_of(rates)
    assert (reading.source, reading.layer, reading.scope) == (
        "weka.rates", Layer.CLIENT, Scope.HOST,
    )  # fmt: skip
    assert reading.counters == {}
    assert reading.gauges["read_bytes_per_second"] == 102_236_160


def test_a_command_that_is_not_logged_in_is_quoted(host):
    program(host, "echo 'error: Authentication failed' >&2; exit 1")
    _, rates = seek(host)
    assert rates.reason == "weka ended with status 1: error: Authentication failed"


def test_a_cluster_that_does_not_know_this_host_is_not_taken_for_it(host):
    program(host, "echo '[]'")
    _, rates = seek(host)
    assert rates.reason == ("weka tells no frontend process of client1 or client1.cluster.example")


def test_another_filesystem_has_nothing_to_do_with_it(host):
    assert seek(host, filesystem="xfs") == []
    assert find(Target(root_pid=1)) == []
