"""Requests of a FUSE mount, by what bpftrace prints of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.record.sizes import bucket, names
from ioprof.sources.aside import look
from ioprof.sources.bpftrace import Print
from ioprof.sources.fuse import counters, find, is_fuse, probes
from ioprof.sources.source import Roots, Target
from tests.unit.sources.fakebpftrace import program, tracepoints
from tests.unit.sources.fakesys import mount_of

MIB = 2**20
LINES = (Path(__file__).parents[2] / "data" / "fuse" / "tracepoint_lines.txt").read_text()
PRINTED = Print(
    t_s=1.0,
    maps={
        # LOOKUP 1, GETATTR 3, OPEN 14, READ 15, RELEASE 18, OPENDIR 27, READDIR 28, CREATE 35,
        # READDIRPLUS 44, STATX 52
        "@requests": {
            "1": 5, "3": 7, "14": 11, "15": 512, "16": 2, "18": 99, "27": 13, "28": 17, "35": 1,
            "44": 19, "52": 23,
        },
        "@time": {"15": 260_000_000, "14": 180_000, "1": 400_000, "18": 1_000_000},
        "@bytes": {"": 64 * MIB},
        "@sizes": {"0": 1, "8": 510, "16": 1},
        "@unmatched": {"": 4},
    },
)  # fmt: skip


@pytest.fixture
def roots(tmp_path, monkeypatch):
    """A machine of root's with FUSE tracepoints and a bpftrace that has seen one whole file."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    tracepoints(tmp_path / "sys", "fuse/fuse_request_end")
    program(
        tmp_path / "bin",
        '{"type": "map", "data": {"@requests": {"15": 512, "14": 1, "1": 1}}}',
        '{"type": "map", "data": {"@time": {"15": 260000000, "14": 180000, "1": 400000}}}',
        '{"type": "map", "data": {"@bytes": 67108864}}',
        '{"type": "map", "data": {"@sizes": {"8": 512}}}',
    )
    return Roots(proc=tmp_path / "proc", sys=tmp_path / "sys", root=tmp_path)


def seek(roots, *, filesystem="fuse.sshfs", number="0:42"):
    mount = mount_of("/mnt/data", filesystem=filesystem, number=number)
    return find(Target(root_pid=1, mount=mount), roots=roots)


def test_requests_by_kind():
    values = counters(PRINTED)
    assert values["read_operations_total"] == 512
    assert values["write_operations_total"] == 2
    assert values["lookup_operations_total"] == 5
    assert values["getattr_operations_total"] == 30  # 7 + 23
    assert values["open_operations_total"] == 12  # 11 + 1
    assert values["readdir_operations_total"] == 49  # 13 + 17 + 19
    assert values["metadata_operations_total"] == 96  # 5 + 30 + 12 + 49
    assert values["unmatched_operations_total"] == 4


def test_bytes_and_seconds():
    values = counters(PRINTED)
    assert values["read_bytes_total"] == 67_108_864
    assert values["read_time_seconds_total"] == pytest.approx(0.260)
    assert values["metadata_time_seconds_total"] == pytest.approx(0.000_580)


def test_sizes_of_answers():
    values = counters(PRINTED)
    sizes = {name: values[name] for name in names() if values[name]}
    assert sizes == {
        "read_requests_up_to_512_total": 1,
        "read_requests_up_to_131072_total": 510,
        "read_requests_above_16777216_total": 1,
    }


def test_before_the_first_request_everything_is_a_counted_zero():
    assert set(counters(Print(t_s=1.0, maps={})).values()) == {0}


@pytest.mark.parametrize(
    "size",
    [0, 1, 511, 512, 513, 1024, 1025, 4096, 131_072, 131_073, 2**24 - 1, 2**24, 2**24 + 1, 2**31],
)
def test_the_number_of_a_bucket_in_the_script_is_its_place_among_the_names(size):
    sectors, number = max(size - 1, 0) >> 9, 0
    for _ in range(16):
        if sectors > 0:
            number, sectors = number + 1, sectors >> 1
    assert names()[number] == bucket(size)


def test_the_script_counts_one_connection_alone():
    text = probes(42)
    assert text.count("/args->connection == 42") == text.count("tracepoint:") == 2


@pytest.mark.parametrize(
    "filesystem", ["fuse", "fuseblk", "fuse.sshfs", "fuse.juicefs", "fuse.glusterfs"]
)
def test_every_fuse_mount_is_one(filesystem):
    assert is_fuse(mount_of("/x", filesystem=filesystem))


@pytest.mark.parametrize("filesystem", ["ext4", "fusectl", "nfs4", "fusefs", "virtiofs"])
def test_another_filesystem_has_no_such_source(roots, filesystem):
    assert seek(roots, filesystem=filesystem) == []


def test_without_a_mount_there_is_none(roots):
    assert find(Target(root_pid=1), roots=roots) == []


def test_one_look_at_a_mount(roots):
    waiting = roots.sys / "fs/fuse/connections/42/waiting"
    waiting.parent.mkdir(parents=True)
    waiting.write_text("3\n")
    (source,) = seek(roots)
    *_, reading = look(source)
    source.close()
    assert (reading.source, reading.instance) == ("fuse.requests", "/mnt/data")
    assert (reading.layer, reading.scope) == (Layer.CLIENT, Scope.MOUNT)
    assert reading.counters["read_bytes_total"] == 67_108_864
    assert reading.counters["read_operations_total"] == 512
    assert reading.counters["metadata_operations_total"] == 2
    assert reading.gauges == {"in_flight": 3, "lost_events": 0}


def test_the_files_of_a_connection_bear_its_whole_device_number(roots):
    """Of a fuseblk mount on 7:1 that is 7 << 20 | 1."""
    waiting = roots.sys / "fs/fuse/connections/7340033/waiting"
    waiting.parent.mkdir(parents=True)
    waiting.write_text("1\n")
    (source,) = seek(roots, filesystem="fuseblk", number="7:1")
    *_, reading = look(source)
    source.close()
    assert reading.gauges["in_flight"] == 1


@pytest.mark.parametrize("text", ["", "many", "-1"])
def test_a_number_in_flight_that_is_none_is_none(roots, text):
    waiting = roots.sys / "fs/fuse/connections/42/waiting"
    waiting.parent.mkdir(parents=True)
    waiting.write_text(text)
    (source,) = seek(roots)
    *_, reading = look(source)
    source.close()
    assert reading.gauges["in_flight"] is None


def test_finding_it_starts_nothing(roots, tmp_path):
    (tmp_path / "bin/bpftrace").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (source,) = seek(roots)
    source.close()
    assert not (tmp_path / "started").exists()


def test_a_kernel_before_6_12_says_what_is_missing(roots, tmp_path):
    """rook/rook#15752, cloudflare/ebpf_exporter#543: a FUSE mount has no statistics of its own."""
    (tmp_path / "sys/kernel/tracing/events/fuse/fuse_request_end").rmdir()
    (silent,) = seek(roots)
    assert isinstance(silent, Unavailable)
    assert silent.source == "fuse.requests"
    assert silent.reason == "this kernel has no tracepoint fuse:fuse_request_end"
    assert silent.remedy == "use Linux 6.12 or later"


def test_who_is_not_root_is_told_so(roots, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (silent,) = seek(roots)
    assert isinstance(silent, Unavailable)
    assert silent.reason == "tracepoints are for root alone"


def test_the_kernels_own_lines_of_a_read_and_a_look_up():
    """What ftrace prints of two requests, and what bpftrace sums up of the same two."""
    sent = re.findall(r"send: connection (\d+) req \d+ opcode (\d+) \((\w+)\)", LINES)
    assert sent == [("42", "15", "FUSE_READ"), ("42", "1", "FUSE_LOOKUP")]
    answers = re.findall(r"end: connection 42 req \d+ len (\d+) error 0", LINES)
    assert answers == ["131088", "144"]
    for field in ("args->connection == 42", "args->unique", "args->opcode", "args->len - 16"):
        assert field in probes(42)
    values = counters(
        Print(
            t_s=100.001,
            maps={
                "@requests": {"15": 1, "1": 1},
                # 100.000420 - 100.000010 s and 100.000800 - 100.000500 s
                "@time": {"15": 410_000, "1": 300_000},
                "@bytes": {"": 131_088 - 16},
                "@sizes": {"8": 1},
            },
        )
    )
    assert values["read_bytes_total"] == 128 << 10
    assert values[bucket(128 << 10)] == values["read_operations_total"] == 1
    assert values["read_time_seconds_total"] == pytest.approx(410e-6)
    assert values["lookup_operations_total"] == values["metadata_operations_total"] == 1
    assert values["metadata_time_seconds_total"] == pytest.approx(300e-6)
