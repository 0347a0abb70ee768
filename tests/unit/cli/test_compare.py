"""`ioprof compare`: its text, its exit status, its figure."""

import json

import pytest
from typer.testing import CliRunner

from ioprof.cli.compare import parse_condition
from ioprof.cli.main import app
from ioprof.errors import IoprofError, MeasureError, UsageError
from tests.unit.analysis.records import rank
from tests.unit.analysis.runs import Cell, counted, outcome, plan, write_run


@pytest.fixture
def runs(tmp_path):
    """One run, and one whose steps take a quarter longer."""

    def made(name, step_s):
        own = plan("cold")
        marks = rank([step_s * (0.95 + 0.1 * (i % 2)) for i in range(60)])
        cell = Cell(plan=own, outcome=outcome(own.id), node=counted(marks), ranks=(marks,))
        write_run(tmp_path / name, [cell])
        return str(tmp_path / name)

    return made("a", 0.2), made("b", 0.25)


def invoke(*arguments):
    return CliRunner().invoke(app, ["compare", *arguments])


def test_the_table_says_what_differs_by_how_much(runs):
    found = invoke(*runs)
    assert found.exit_code == 0
    row = next(line for line in found.stdout.splitlines() if line.startswith("  samples/s"))
    assert row.split()[:3] == ["samples/s", "250", "200"]
    assert "-20 %" in row and row.endswith("YES")
    assert " ".join(found.stdout.split()).endswith("most in 1x1 torch-files cold: -20 %.")
    assert max(map(len, found.stdout.splitlines())) <= 79 or str(runs[0]) in found.stdout


def test_a_regression_ends_with_1_and_says_which(runs):
    found = invoke(*runs, "--fail-if", "samples_per_s < -5%")
    assert found.exit_code == 1
    assert "FAILED    1x1 torch-files cold: samples_per_s -20 %" in found.stdout


@pytest.mark.parametrize("condition", ["samples_per_s < -30%", "samples_per_s > 5%"])
def test_what_is_no_regression_ends_with_0(runs, condition):
    assert invoke(*runs, "--fail-if", condition).exit_code == 0


def test_what_is_not_significant_never_fails(runs):
    assert invoke(runs[0], runs[0], "--fail-if", "samples_per_s < 5%").exit_code == 0


def test_what_could_not_be_compared_is_no_pass(tmp_path):
    own = plan("cold")
    marks = rank([0.2] * 60)
    few = rank([0.2] * 3)
    for name, made in (("a", marks), ("b", few)):
        cell = Cell(plan=own, outcome=outcome(own.id), node=counted(made), ranks=(made,))
        write_run(tmp_path / name, [cell])
    found = invoke(str(tmp_path / "a"), str(tmp_path / "b"), "--fail-if", "samples_per_s < -5%")
    assert isinstance(found.exception, MeasureError)
    assert found.exception.exit_status == 3
    assert "could not be compared in any cell" in str(found.exception)


def test_json_holds_every_difference(runs):
    told = json.loads(invoke(*runs, "--json").stdout)
    rates = [d for d in told["differences"] if d["name"] == "samples_per_s"]
    assert rates[0]["relative"]["value"] == pytest.approx(-0.2, abs=0.005)
    assert rates[0]["significant"] is True


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_one_figure_shows_the_differences(runs, tmp_path, suffix, magic):
    path = tmp_path / f"figure.{suffix}"
    assert invoke(*runs, "--figure", str(path)).exit_code == 0
    assert path.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fail-if", "faster"], "is no condition"),
        (["--fail-if", "speed < -5%"], "speed is not compared. There is: samples_per_s"),
        (["--figure", "figure.pdf"], "neither a .png nor a .svg"),
    ],
)
def test_what_cannot_be_asked_for_is_said(runs, arguments, words):
    found = invoke(*runs, *arguments)
    assert isinstance(found.exception, UsageError)
    assert words in str(found.exception)


def test_one_run_alone_is_no_comparison(runs):
    assert isinstance(invoke(runs[0]).exception, IoprofError)


def test_a_condition_is_read_with_its_sign():
    condition = parse_condition(" step_s>+2.5% ", names=("step_s",))
    assert (condition.name, condition.below) == ("step_s", False)
    assert condition.relative == pytest.approx(0.025)
