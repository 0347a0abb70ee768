"""The run directory: what was written comes back, and what is broken says how."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ioprof.errors import (
    FutureRunError,
    NotARunError,
    RunFileError,
    TruncatedRunError,
    UsageError,
)
from ioprof.record.ceiling import StorageCeiling
from ioprof.record.header import ClockAnchor, NodeHeader
from ioprof.record.reading import (
    Layer,
    Role,
    SamplerEnd,
    Scope,
    Series,
    SeriesValues,
    Tick,
    Unavailable,
)
from ioprof.record.store import (
    FORMAT_VERSION,
    RunDirectory,
    node_lines,
    read_json,
    read_node,
    read_rank,
    write_json,
)
from ioprof.record.study import Study

HEADER = NodeHeader(
    format_version=FORMAT_VERSION,
    node=0,
    hostname="n1",
    boot_id="b",
    pid=42,
    clock=ClockAnchor(monotonic_s=10.0, wall_s=1e9),
    interval_s=0.1,
    data_path="/data",
    cpus=(0, 1),
)
SERIES = Series(
    id=1,
    source="block.diskstats",
    instance="vda",
    layer=Layer.WIRE,
    scope=Scope.DEVICE,
    counters=("read_bytes_total", "read_operations_total"),
    gauges=("in_flight",),
    role=Role.TOP,
)
TICK = Tick(t_s=10.1, values=(SeriesValues(id=1, counters=(4096, None), gauges=(2,)),))
END = SamplerEnd(t_s=10.2, ticks=1, missed_ticks=0, cpu_s=0.01)
RANK = (
    b'{"type":"rank","format_version":1,"rank":0,"local_rank":0,"world_size":1,"hostname":"n1",'
    b'"boot_id":"b","pid":7,"monotonic_s":1.0,"wall_s":2.0}'
)


def lines(*records: object) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def test_a_node_file_comes_back_as_it_was_written(tmp_path):
    missing = Unavailable(source="nvml", reason="no driver")
    path = tmp_path / "node-0.jsonl"
    path.write_bytes(lines(HEADER, missing, SERIES, TICK, END))
    record = read_node(path)
    assert record.header == HEADER
    (columns,) = record.columns
    assert columns.series == SERIES
    assert list(columns.rows()) == [(TICK.t_s, TICK.values[0])]
    assert (record.ticks, record.first_s, record.last_s) == (1, TICK.t_s, TICK.t_s)
    assert list(node_lines(path)) == [HEADER, missing, SERIES, TICK, END]
    assert record.unavailable == (missing,)
    assert record.end == END
    assert not record.truncated


def test_a_counter_that_the_kernel_does_not_keep_stays_none(tmp_path):
    path = tmp_path / "node-0.jsonl"
    path.write_bytes(lines(HEADER, SERIES, TICK))
    ((_, values),) = read_node(path).columns[0].rows()
    assert values.counters == (4096, None)


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (SeriesValues(id=2, counters=(1, 2), gauges=(0,)), "series 2 has values and was not"),
        (SeriesValues(id=1, counters=(1,), gauges=(0,)), "has not its width"),
    ],
)
def test_a_row_that_fits_no_series_is_damage(tmp_path, values, what):
    path = tmp_path / "node-0.jsonl"
    path.write_bytes(lines(HEADER, SERIES, Tick(t_s=10.1, values=(values,))))
    with pytest.raises(NotARunError, match=what):
        read_node(path)


def test_a_line_cut_short_by_a_kill_is_left_out(tmp_path):
    path = tmp_path / "node-0.jsonl"
    path.write_bytes(lines(HEADER, SERIES, TICK) + b'{"type":"tick","t_s":10.2,"val')
    record = read_node(path)
    assert record.ticks == 1
    assert record.truncated


def test_a_writer_that_is_killed_leaves_a_readable_file(tmp_path):
    path = tmp_path / "node-0.jsonl"
    path.write_bytes(lines(HEADER, SERIES))
    code = (
        "import os, sys\n"
        "file = open(sys.argv[1], 'ab', buffering=0)\n"
        "tick = sys.stdin.buffer.read()\n"
        "print('started', flush=True)\n"
        "while True:\n"
        "    file.write(tick)\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    writer.stdin.write(lines(TICK))
    writer.stdin.close()
    writer.stdout.readline()
    writer.stdout.close()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    record = read_node(path)
    assert {row for _, row in record.columns[0].rows()} <= {TICK.values[0]}
    assert record.truncated


def test_an_empty_file_was_stopped_before_it_began(tmp_path):
    path = tmp_path / "node-0.jsonl"
    path.touch()
    with pytest.raises(TruncatedRunError, match="stopped before it began"):
        read_node(path)


def test_a_file_cut_in_its_first_line_says_so(tmp_path):
    path = tmp_path / "rank-0.jsonl"
    path.write_bytes(RANK[:40])
    with pytest.raises(TruncatedRunError, match="first line"):
        read_rank(path)


@pytest.mark.parametrize("content", [b"hello\nworld\n", b"\x89PNG\r\n\x1a\n\n", b'{"a":1}\n', b"x"])
def test_a_file_of_somebody_else_is_not_ours(tmp_path, content):
    path = tmp_path / "node-0.jsonl"
    path.write_bytes(content)
    with pytest.raises(NotARunError):
        read_node(path)


def test_a_node_file_is_no_rank_file(tmp_path):
    path = tmp_path / "rank-0.jsonl"
    path.write_bytes(lines(HEADER))
    with pytest.raises(NotARunError):
        read_rank(path)


def test_two_runs_in_one_file_are_refused(tmp_path):
    node, rank = tmp_path / "node-0.jsonl", tmp_path / "rank-0.jsonl"
    node.write_bytes(lines(HEADER, HEADER))
    rank.write_bytes(RANK + b"\n" + RANK + b"\n")
    with pytest.raises(NotARunError, match="two headers"):
        read_node(node)
    with pytest.raises(NotARunError, match="two headers"):
        read_rank(rank)


def test_the_line_that_is_wrong_is_named(tmp_path):
    path = tmp_path / "node-0.jsonl"
    path.write_bytes(lines(HEADER, SERIES) + b'{"type":"tick","t_s":"late","values":[]}\n')
    with pytest.raises(NotARunError, match="line 3"):
        read_node(path)


def test_a_file_from_the_future_asks_for_a_newer_ioprof(tmp_path):
    path = tmp_path / "node-0.jsonl"
    path.write_bytes(b'{"type":"node","format_version":99,"whatever":[]}\n')
    with pytest.raises(FutureRunError, match="format version 99"):
        read_node(path)


def test_a_plan_from_the_future_asks_for_a_newer_ioprof(tmp_path):
    path = tmp_path / "study.json"
    path.write_text('{"format_version": 2, "cells": "unlike anything known"}')
    with pytest.raises(FutureRunError, match="Install a newer ioprof"):
        read_json(path, Study)


def test_a_record_comes_back_as_it_was_written(tmp_path):
    ceiling = StorageCeiling(read_bytes_per_s=2.5e9, jobs=4, notes=("a", "b"))
    write_json(tmp_path / "ceiling.json", ceiling)
    assert read_json(tmp_path / "ceiling.json", StorageCeiling) == ceiling
    assert [path.name for path in tmp_path.iterdir()] == ["ceiling.json"]


def test_not_a_number_is_written_as_missing(tmp_path):
    """esnet/iperf 370, redis/memtier_benchmark 271: NaN is no JSON."""
    write_json(tmp_path / "c.json", StorageCeiling(read_bytes_per_s=float("nan")))
    assert read_json(tmp_path / "c.json", StorageCeiling).read_bytes_per_s is None


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", TruncatedRunError),
        (b"  \n", TruncatedRunError),
        (b'{"read_bytes_per_s": 1', TruncatedRunError),
        (b"<html>", NotARunError),
        (b"{}", NotARunError),
        (b'{"read_bytes_per_s": "fast"}', NotARunError),
        (b"\xff\xfe", NotARunError),
    ],
)
def test_a_broken_record_says_how_it_is_broken(tmp_path, content, error):
    path = tmp_path / "ceiling.json"
    path.write_bytes(content)
    with pytest.raises(error, match=r"ceiling\.json"):
        read_json(path, StorageCeiling)


def test_a_run_that_is_not_there_is_no_run(tmp_path):
    with pytest.raises(NotARunError, match=r"holds study\.json"):
        read_json(tmp_path / "study.json", Study)


def test_a_folder_in_place_of_a_file_cannot_be_read(tmp_path):
    with pytest.raises(RunFileError, match="directory"):
        read_json(tmp_path, Study)


def test_a_new_run_directory_has_its_folders(tmp_path):
    run = RunDirectory.create(tmp_path / "deep" / "run", overwrite=False)
    assert sorted(path.name for path in run.root.iterdir()) == ["cells", "figures", "fio"]


def test_a_directory_that_holds_files_is_not_overwritten(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="--force"):
        RunDirectory.create(tmp_path, overwrite=False)


def old_run(root: Path) -> None:
    for name in ("study.json", "summary.json", "report.html", "cells/a/node-0.jsonl", "fio/x.json"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old")


def test_force_removes_a_runs_own_files_and_no_others(tmp_path):
    old_run(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    RunDirectory.create(tmp_path, overwrite=True)
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["notes.txt"]
    assert not (tmp_path / "cells" / "a").exists()


def test_force_does_not_touch_a_folder_that_is_no_run(tmp_path):
    (tmp_path / "thesis.tex").touch()
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "result.png").touch()
    with pytest.raises(UsageError, match="no run directory"):
        RunDirectory.create(tmp_path, overwrite=True)
    assert (tmp_path / "figures" / "result.png").exists()


def test_force_does_not_follow_a_link_out_of_the_run(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "keep.png").touch()
    root = tmp_path / "run"
    old_run(root)
    (root / "figures").symlink_to(elsewhere)
    RunDirectory.create(root, overwrite=True)
    assert (elsewhere / "keep.png").exists()


def test_a_run_cannot_be_made_where_a_file_is(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--out"):
        RunDirectory.create(tmp_path / "file", overwrite=False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_run_cannot_be_made_where_we_may_not_write():
    with pytest.raises(UsageError, match="--out"):
        RunDirectory.create(Path("/proc/run"), overwrite=False)


def test_node_files_are_in_the_order_of_their_numbers(tmp_path):
    run = RunDirectory.create(tmp_path / "run", overwrite=False)
    cell = run.cell("1x1-synthetic")
    cell.mkdir()
    for name in ("node-10.jsonl", "node-2.jsonl", "node-x.jsonl", "rank-0.jsonl"):
        (cell / name).touch()
    assert [p.name for p in run.node_files("1x1-synthetic")] == ["node-2.jsonl", "node-10.jsonl"]
    assert [p.name for p in run.rank_files("1x1-synthetic")] == ["rank-0.jsonl"]
