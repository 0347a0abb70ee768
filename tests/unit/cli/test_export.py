"""`ioprof export`: to standard output or a whole file, and what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ioprof.cli.main import app
from ioprof.errors import NotARunError, UsageError
from tests.unit.export import recorded


@pytest.fixture
def run(tmp_path):
    made = recorded.write(tmp_path / "run")
    made.recorded.write_text("{}")
    return str(made.root)


def invoke(*arguments):
    return CliRunner().invoke(app, ["export", *arguments])


def test_without_a_file_it_goes_to_standard_output(run):
    found = invoke(run, "--to", "csv")
    assert found.exit_code == 0
    assert found.stdout.startswith("cell,node,hostname,t_s,time,source")
    # Five ticks of three values, two steps of six facts, and the header.
    assert len(found.stdout.splitlines()) == 5 * 3 + 2 * 6 + 1


def test_a_file_is_there_whole_and_nothing_beside_it(run, tmp_path):
    path = tmp_path / "out" / "run.json"
    path.parent.mkdir()
    assert invoke(run, "--to", "perfetto", "-o", str(path)).exit_code == 0
    assert json.loads(path.read_text())["traceEvents"]
    assert list(path.parent.iterdir()) == [path]


def test_what_fails_leaves_no_file(run, tmp_path):
    folder = Path(run) / "cells" / "command"
    (folder / "node-0.jsonl").write_text("hello\nworld\n")
    path = tmp_path / "run.csv"
    assert invoke(run, "--to", "csv", "-o", str(path)).exit_code != 0
    assert not path.exists()
    assert not list(tmp_path.glob(".run.csv*"))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (["--to", "xlsx"], UsageError, "Give one of: csv, parquet, perfetto, openmetrics, fio"),
        (["--to", "csv", "--topology", "1x1"], UsageError, "does nothing for --to csv"),
        (["--to", "fio"], UsageError, "is a recorded command"),
        (["--to", "csv", "-o", "/nowhere/run.csv"], UsageError, "cannot be written"),
    ],
)
def test_what_cannot_be_asked_for_is_said(run, arguments, error, words):
    found = invoke(run, *arguments)
    assert isinstance(found.exception, error)
    assert words in str(found.exception)


def test_a_folder_that_is_no_run_is_named(tmp_path):
    found = invoke(str(tmp_path), "--to", "csv")
    assert isinstance(found.exception, NotARunError)
