"""BeeGFS, behind stand-ins for the commands of version 7 and 8."""

from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources.aside import look
from ioprof.sources.beegfs import find
from ioprof.sources.beegfsstats import (
    counters,
    local_addresses,
    parse_queues,
    parse_v7,
    parse_v8,
)
from ioprof.sources.source import Roots, Target
from tests.unit.sources.fakesys import mount_of

DATA = Path(__file__).parents[2] / "data" / "beegfs"
V7_BYTES = (DATA / "ctl_v7_clientstats_storage_B.txt").read_bytes()
V7_MIB = (DATA / "ctl_v7_clientstats_storage_MiB.txt").read_bytes()
V8 = (DATA / "v8_stats_client_storage.ndjson").read_bytes()
QUEUES = (DATA / "proc_status.txt").read_bytes()
V7_META = (
    b"192.0.2.20           7 [sum]  0 [ack]  10 [close]  488 [rddir]  11 [open]  30911 [stat]  "
    b"3 [lookLI]  7723 [statLI]  17468 [revalLI]  4 [openLI]  0 [createLI]\n"
)
HOST = ("192.0.2.20",)
FIB = """Main:
  +-- 0.0.0.0/0 3 0 5
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
     +-- 192.0.2.0/24 2 0 2
        |-- 192.0.2.0
           /24 link UNICAST
        |-- 192.0.2.20
           /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
        |-- 198.51.100.20
           /32 host LOCAL
"""
INET6 = """00000000000000000000000000000001 01 80 10 80 lo
20010db8000000000000000000000014 02 40 00 80 ib0
"""


def test_version_7_in_bytes():
    assert counters("storage", parse_v7(V7_BYTES), addresses=HOST) == {
        "read_bytes_total": 10_737_418_240,
        "read_operations_total": 10_240,
        "write_bytes_total": 0,
        "write_operations_total": 0,
    }


def test_version_7_in_mebibytes_without_the_line_of_sums():
    rows = parse_v7(V7_MIB)
    assert set(rows) == {"192.0.2.20"}
    assert counters("storage", rows, addresses=HOST) == {
        "read_bytes_total": pytest.approx(328_770_519.04),  # 313.54 x 1,048,576
        "read_operations_total": 22_385,
        "write_bytes_total": 88_080_384,
        "write_operations_total": 21_504,
    }


def test_version_7_writes_large_amounts_with_an_exponent():
    rows = parse_v7(b"192.0.2.20  1 [sum]  3 [ops-rd]  1.07374e+10 [B-rd]  2 [MiB-rd/s]\n")
    made = counters("storage", rows, addresses=HOST)
    assert made["read_bytes_total"] == 10_737_400_000
    assert made["write_bytes_total"] is None, "what is not told is not zero"


def test_a_rate_is_no_counter():
    rows = parse_v7(b"192.0.2.20  1 [sum]  3 [ops-rd]  12.5 [MiB-rd/s]\n")
    assert counters("storage", rows, addresses=HOST)["read_bytes_total"] is None


def test_version_8_says_zero_with_nothing():
    assert counters("storage", parse_v8(V8), addresses=HOST) == {
        "read_bytes_total": 10_737_418_240,
        "read_operations_total": 10_240,
        "write_bytes_total": 0,
        "write_operations_total": 0,
    }


def test_an_amount_that_version_8_rounded_is_not_taken():
    rows = parse_v8(V8.replace(b'"10737418240"', b'"10Gi"'))
    made = counters("storage", rows, addresses=HOST)
    assert made["read_bytes_total"] is None
    assert made["read_operations_total"] == 10_240


def test_metadata_operations_of_both_versions():
    wanted = {
        "open_operations_total": 15,
        "getattr_operations_total": 38_634,
        "lookup_operations_total": 17_471,
        "readdir_operations_total": 488,
        "metadata_operations_total": 56_608,
    }
    assert counters("meta", parse_v7(V7_META), addresses=HOST) == wanted
    row = (
        b'{"client":"192.0.2.20","close":"10","rddir":"488","open":"11","stat":"30911",'
        b'"lookli":"3","statli":"7723","revalli":"17468","openli":"4","createli":""}\n'
    )
    assert counters("meta", parse_v8(b"------- 0s -------\n" + row), addresses=HOST) == wanted


def test_a_host_with_several_addresses_has_several_rows():
    rows = parse_v7(V7_BYTES + V7_BYTES.replace(b"192.0.2.20", b"198.51.100.20"))
    made = counters("storage", rows, addresses=("192.0.2.20", "198.51.100.20"))
    assert made["read_bytes_total"] == 21_474_836_480
    assert counters("storage", rows, addresses=HOST)["read_bytes_total"] == 10_737_418_240


def test_another_host_s_rows_are_not_ours():
    made = counters("storage", parse_v7(V7_BYTES), addresses=("192.0.2.2",))
    assert set(made.values()) == {None}


def test_the_addresses_of_this_host():
    found = local_addresses(FIB, INET6)
    assert found == {"192.0.2.20", "198.51.100.20", "2001:db8::14"}


def test_queues_of_the_client():
    assert parse_queues(QUEUES) == {
        "available_message_buffers": 65,
        "delayed_closes": 0,
        "delayed_entry_unlocks": 0,
        "delayed_range_unlocks": 0,
        "enqueued_acknowledgements": 0,
        "flush_references": 0,
    }
    assert set(parse_queues(b"numDelayedClose 3\n").values()) == {None}


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host with addresses and no command of BeeGFS."""
    net = tmp_path / "proc" / "net"
    net.mkdir(parents=True)
    (net / "fib_trie").write_text(FIB)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path


def program(host, name, script):
    folder = host / "opt" / "beegfs" / "sbin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def text(host, name, answer):
    (host / name).write_bytes(answer)
    return host / name


def seek(host, *, filesystem="beegfs"):
    mount = mount_of("/mnt/beegfs", filesystem=filesystem, source="beegfs_nodev")
    return find(
        Target(root_pid=1, mount=mount),
        roots=Roots(proc=host / "proc", sys=host / "sys", root=host),
    )


def readings(found):
    made: dict[str, Reading] = {}
    for source in found:
        assert not isinstance(source, Unavailable), source
        made |= {r.source: r for r in look(source)}
        source.close()
    return made


def test_the_command_of_version_7_is_asked_for_both_kinds(host):
    storage, meta = text(host, "storage", V7_BYTES), text(host, "meta", V7_META)
    program(
        host,
        "beegfs-ctl",
        'case "$*" in\n'
        '"--clientstats --interval=0 --allstats --perinterval --rwunit=B --nodetype=storage") '
        f"cat {storage};;\n*--nodetype=meta) cat {meta};;\n*) exit 2;;\nesac",
    )
    made = readings(seek(host))
    assert set(made) == {"beegfs.storage", "beegfs.metadata"}
    reading = made["beegfs.storage"]
    assert (reading.layer, reading.scope) == (Layer.WIRE, Scope.HOST)
    assert reading.instance == "/mnt/beegfs"
    assert reading.counters["read_bytes_total"] == 10_737_418_240
    assert made["beegfs.metadata"].counters["metadata_operations_total"] == 56_608


@pytest.mark.parametrize("knows", ["--with-empty", "nothing"])
def test_the_command_of_version_8_is_asked_as_it_can_be(host, knows):
    answer = text(host, "answer", V8)
    program(
        host,
        "beegfs",
        'case "$*" in *--with-empty*) [ '
        f'{knows} = --with-empty ] || {{ echo "unknown flag: --with-empty" >&2; exit 1; }};; esac\n'
        f"cat {answer}",
    )
    made = readings(seek(host))
    assert made["beegfs.storage"].counters["read_bytes_total"] == 10_737_418_240


def test_without_any_command_one_line_says_what_sees_the_reads(host):
    (unavailable,) = seek(host)
    assert isinstance(unavailable, Unavailable)
    assert unavailable.reason == "neither beegfs nor beegfs-ctl is on this node"
    assert unavailable.remedy is not None
    assert "process.block" in unavailable.remedy


def test_commands_that_fail_are_named_with_their_words(host):
    program(host, "beegfs", "echo no secret >&2; exit 1")
    program(host, "beegfs-ctl", "echo ' '")
    (unavailable,) = seek(host)
    assert unavailable.reason == (
        "the servers' counters cannot be had: beegfs ended with status 1: no secret; "
        "beegfs-ctl tells no client"
    )


def test_a_server_that_started_again_is_handed_on_as_it_is(host):
    answer = text(host, "answer", V8)
    program(host, "beegfs", f"cat {answer}")
    source, _ = seek(host)
    assert look(source)[0].counters["read_operations_total"] == 10_240
    answer.write_bytes(V8.replace(b"10240", b"3"))
    assert look(source)[0].counters["read_operations_total"] == 3
    answer.write_bytes(b"------- 0s -------\n")
    (forgotten,) = look(source)
    assert set(forgotten.counters.values()) == {None}
    source.close()


@pytest.mark.parametrize("name", ["status", ".status"])
def test_queues_are_read_of_the_only_mount(host, name):
    file = host / "proc" / "fs" / "beegfs" / "1A2B-5F3C2D1E-node1" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(QUEUES)
    _, queues = seek(host)
    (reading,) = queues.read()
    assert (reading.layer, reading.scope) == (Layer.CLIENT, Scope.MOUNT)
    assert reading.gauges["available_message_buffers"] == 65
    file.unlink()
    assert list(queues.read()) == []
    other = file.parent.parent / "2B3C-5F3C2D1E-node1" / name
    other.parent.mkdir()
    for each in (file, other):
        each.write_bytes(QUEUES)
    assert len(seek(host)) == 1, "of two nothing tells which is the mount's"


def test_another_filesystem_has_nothing_to_do_with_it(host):
    assert seek(host, filesystem="xfs") == []
    assert find(Target(root_pid=1)) == []
