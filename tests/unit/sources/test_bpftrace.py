"""bpftrace's JSON, and the program that prints it: started, looked at, ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ioprof.sources.bpftrace import ALL, Bpftrace, Prints, Why, script, usable
from ioprof.sources.program import ProgramError
from ioprof.sources.source import Roots
from tests.processes import child_of_killed, ends
from tests.unit.sources.fakebpftrace import failing, program, tracepoints

SAMPLE = (Path(__file__).parents[2] / "data" / "fuse" / "bpftrace_maps.json").read_bytes()
TIME = b'{"type": "printf", "data": "23341276315292\\n"}'
SUMS = '{"type": "map", "data": {"@n": {"15": 512, "1": 3}}}'


def fed(*lines: bytes):
    """All prints that the lines make."""
    prints = Prints()
    return [made for line in lines if (made := prints.feed(line)) is not None]


def test_the_maps_of_a_print_and_its_time():
    (made,) = fed(*SAMPLE.splitlines(), TIME)
    assert made.t_s == pytest.approx(23341.276315292)
    assert made.maps == {
        "@n": {"42,15": 512, "42,14": 1, "42,1": 1},
        "@bytes": {"42,15": 67_117_056, "42,14": 32, "42,1": 144},
        "@ns": {"42,15": 260_000_000, "42,14": 180_000, "42,1": 400_000},
    }
    # 512 answers with a header of 16 bytes each.
    assert made.maps["@bytes"]["42,15"] - 512 * 16 == 64 * 2**20


def test_a_map_without_keys_has_one_sum():
    (made,) = fed(b'{"type": "map", "data": {"@bytes": 67108864}}', TIME)
    assert made.maps == {"@bytes": {ALL: 67_108_864}}


def test_an_empty_line_for_an_empty_map_is_passed_over():
    (made,) = fed(b"", TIME)
    assert made.maps == {}


def test_a_print_that_lacks_a_message_is_not_handed_on_and_counted():
    lost = b'{"type": "lost_events", "data": {"events": 3}}'
    (before, after) = fed(SUMS.encode(), TIME, SUMS.encode(), lost, TIME, SUMS.encode(), TIME)
    assert (before.lost_events, after.lost_events) == (0, 3)


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"[]", b"7", b'"map"', b"null", b'{"type": "map"}', b'{"type": "map", "data": [1]}',
        b'{"type": "printf", "data": "begin"}', b'{"type": "printf", "data": 7}',
        b'{"type": "time", "data": "12"}', b"\xff\xfe", b"[" * 100_000,
    ],
)  # fmt: skip
def test_another_line_is_passed_over(line):
    assert fed(line) == []


@pytest.mark.parametrize("value", ["-1", "1.5", "true", '"7"', "null", "[]", str(2**64)])
def test_what_is_no_sum_is_left_out(value):
    text = f'{{"type": "map", "data": {{"@n": {{"1": {value}, "2": 5}}}}}}'
    (made,) = fed(text.encode(), TIME)
    assert made.maps == {"@n": {"2": 5}}


def test_a_look_waits_for_a_print_that_began_after_it(tmp_path):
    traced = Bpftrace(program(tmp_path, SUMS), "")
    for _ in range(3):
        asked_s = time.monotonic()
        made = traced.look()
        assert asked_s <= made.t_s <= time.monotonic()
        assert made.maps == {"@n": {"15": 512, "1": 3}}
    traced.close()


def test_the_time_asleep_is_taken_off(tmp_path, monkeypatch):
    """`nsecs` is the time since boot: a laptop that slept an hour must not be an hour ahead."""
    awake = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: awake(clock) + 3600)
    traced = Bpftrace(program(tmp_path), "")
    assert traced._monotonic_s(time.monotonic() + 3600) == pytest.approx(time.monotonic(), abs=1)
    assert traced._monotonic_s(time.monotonic()) == pytest.approx(time.monotonic(), abs=1)
    traced.close()


def test_one_that_fails_says_why_each_time_it_is_looked_at(tmp_path):
    traced = Bpftrace(failing(tmp_path, "ERROR: tracepoint not found: fuse:x"), "")
    for _ in range(2):
        with pytest.raises(ProgramError, match="bpftrace ended: ERROR: tracepoint not found"):
            traced.look()
    traced.close()


def test_one_that_is_not_there_says_so(tmp_path):
    traced = Bpftrace(tmp_path / "gone", "")
    with pytest.raises(ProgramError):
        traced.look()
    traced.close()


def test_closing_ends_it(tmp_path):
    traced = Bpftrace(program(tmp_path), "")
    traced.look()
    process = traced._process
    assert process is not None
    traced.close()
    assert not Path(f"/proc/{process.pid}").exists()


def test_it_ends_with_a_process_that_is_killed(tmp_path):
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from ioprof.sources.bpftrace import Bpftrace\n"
        f"traced = Bpftrace(Path({str(program(tmp_path))!r}), '')\n"
        "traced.look()\nprint(traced._process.pid, flush=True)\ntime.sleep(60)\n"
    )
    assert ends(child_of_killed(code))


def test_a_script_prints_its_maps_ten_times_a_second_and_then_the_time():
    assert script("PROBES", "n", "bytes").split("\n") == [
        "PROBES",
        'interval:ms:100 { print(@n); print(@bytes); printf("%llu\\n", nsecs); }',
        "",
    ]


@pytest.fixture
def as_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_it_is_usable_by_root_with_the_tracepoint_and_the_program(tmp_path, monkeypatch, as_root):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    roots = Roots(sys=tmp_path / "sys", root=tmp_path)
    why = usable("fuse/fuse_request_end", since="Linux 6.12", roots=roots)
    assert why == Why(
        reason="the kernel's tracing files are not mounted",
        remedy=f"mount -t tracefs tracefs {tmp_path}/sys/kernel/tracing",
    )
    tracepoints(roots.sys, "block/block_rq_complete")
    assert usable("fuse/fuse_request_end", since="Linux 6.12", roots=roots) == Why(
        reason="this kernel has no tracepoint fuse:fuse_request_end", remedy="use Linux 6.12"
    )
    why = usable("block/block_rq_complete", since="", roots=roots)
    assert why == Why(reason="bpftrace is not installed", remedy="apt-get install bpftrace")
    found = program(tmp_path / "bin")
    assert usable("block/block_rq_complete", since="", roots=roots) == found


def test_the_old_place_of_the_tracing_files_will_do(tmp_path, monkeypatch, as_root):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = program(tmp_path / "bin")
    folder = tmp_path / "sys/kernel/debug/tracing/events/block/block_rq_complete"
    folder.mkdir(parents=True)
    assert usable("block/block_rq_complete", since="", roots=Roots(sys=tmp_path / "sys")) == found


def test_who_is_not_root_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    tracepoints(tmp_path / "sys", "fuse/fuse_request_end")
    why = usable("fuse/fuse_request_end", since="", roots=Roots(sys=tmp_path / "sys"))
    assert why == Why(reason="tracepoints are for root alone", remedy="run ioprof as root")
