"""`dataset make` and `dataset survey`: what they print, where, and how they end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from ioprof.cli.dataset import app
from ioprof.errors import DatasetError, UsageError
from ioprof.record.dataset import Dataset
from tests.unit.dataset.images import HTML, encoded, put


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command as a user types it, in its own process."""
    return subprocess.run(
        [sys.executable, "-m", "ioprof", "dataset", *map(str, arguments)],
        capture_output=True,
        text=True,
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    put(folder / "a/1.JPEG", encoded() + b"\x00" * 100)
    put(folder / "a/2.JPEG")
    put(folder / "b/3.JPEG")
    put(folder / "b/page.JPEG", HTML)
    put(folder / ".git/4.JPEG")
    return folder


def test_make_then_survey_gives_the_set_that_was_asked_for(tmp_path):
    made = CliRunner().invoke(app, ["make", str(tmp_path / "set"), "--samples", "20"])
    assert made.exit_code == 0
    assert made.stdout == "made 20 images\n"
    seen = CliRunner().invoke(app, ["survey", str(tmp_path / "set"), "--json"])
    dataset = msgspec.json.decode(seen.stdout, type=Dataset)
    assert (dataset.samples, dataset.classes, dataset.layout) == (20, 2, "files")


def test_the_seed_decides_the_bytes(tmp_path):
    for name, seed in (("one", "1"), ("two", "1"), ("three", "2")):
        arguments = ["make", str(tmp_path / name), "--samples", "2", "--seed", seed]
        assert CliRunner().invoke(app, arguments).exit_code == 0
    first = {
        name: sorted(path.read_bytes() for path in (tmp_path / name).rglob("*.JPEG"))
        for name in ("one", "two", "three")
    }
    assert first["one"] == first["two"] != first["three"]


def test_make_never_writes_into_a_folder_that_holds_something(data):
    ended = CliRunner().invoke(app, ["make", str(data), "--samples", "2"])
    assert isinstance(ended.exception, UsageError)


def test_an_unknown_layout_names_the_known_ones(tmp_path):
    ended = CliRunner().invoke(
        app, ["make", str(tmp_path / "set"), "--samples", "2", "--layout", "tfrecord"]
    )
    assert isinstance(ended.exception, UsageError)
    assert "files" in str(ended.exception)


def test_survey_prints_the_whole_story(data):
    seen = CliRunner().invoke(app, ["survey", str(data)])
    assert seen.exit_code == 0
    lines = seen.stdout.splitlines()
    assert lines[0] == str(data)
    assert lines[1].startswith("  3 samples in 2 classes, ")
    assert all(name in lines[2] for name in ("mean", "std", "median", "p95", "p99", "largest"))
    assert lines[4:] == [
        "  quarantined: 1",
        "    b/page.JPEG: it is a web page, not an image",
        "  note: hidden and service folders left out: 1, namely .git",
    ]


def test_survey_names_twenty_bad_files_and_counts_the_rest(data):
    for number in range(30):
        put(data / f"b/{number:02d}.JPEG", b"")
    lines = CliRunner().invoke(app, ["survey", str(data)]).stdout.splitlines()
    assert "  quarantined: 31" in lines
    assert sum(line.endswith(": it is empty") for line in lines) == 20
    assert "    and 11 more" in lines


def test_a_name_cannot_break_a_line_or_the_output(data):
    put(data / "a/new\nline.JPEG", b"")
    put(data / os.fsdecode(b"a/\xff.JPEG"), b"")
    lines = CliRunner().invoke(app, ["survey", str(data)]).stdout.splitlines()
    assert "    a/new\\x0aline.JPEG: it is empty" in lines
    assert "    a/\\xff.JPEG: it is empty" in lines


def test_with_json_stdout_holds_json_alone_and_progress_goes_to_stderr(data):
    ended = run("survey", data, "--json")
    dataset = msgspec.json.decode(ended.stdout, type=Dataset)
    assert ended.returncode == 0
    assert dataset.samples == 3
    assert dataset.quarantined_count == 1
    assert "surveying" in ended.stderr


def test_a_folder_that_is_not_there_is_one_message_and_status_3(tmp_path):
    ended = run("survey", tmp_path / "none")
    assert ended.returncode == 3
    assert ended.stdout == ""
    assert f"ioprof: {tmp_path / 'none'} is not there." in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_wrong_use_is_one_message_and_status_2(data):
    ended = run("make", data, "--samples", 5)
    assert ended.returncode == 2
    assert "already holds files" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_folder_without_images_is_an_error_of_the_dataset(tmp_path):
    ended = CliRunner().invoke(app, ["survey", str(tmp_path)])
    assert isinstance(ended.exception, DatasetError)
    assert ended.stdout == ""
