"""The documentation names what there is: every field, every command, the format's version."""

from __future__ import annotations

import re
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import typer

from ioprof.cli.main import app
from ioprof.record.store import FORMAT_VERSION
from ioprof.record.summary import Summary

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
READ_FIRST = [ROOT / "README.md", *DOCS]


def text(*files: Path) -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def in_code(file: Path) -> set[str]:
    """Whatever stands between backticks."""
    return set(re.findall(r"`([^`\n]+)`", text(file)))


def structs(kind: object, seen: set[type]) -> Iterator[type[msgspec.Struct]]:
    """Every struct that `kind` can hold, itself included."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind not in seen:
            seen.add(kind)
            yield kind
            for inner in typing.get_type_hints(kind).values():
                yield from structs(inner, seen)
        return
    for inner in typing.get_args(kind):
        if not isinstance(inner, types.EllipsisType):
            yield from structs(inner, seen)


OF_SUMMARY = list(structs(Summary, set()))


def test_the_parts_of_a_summary_are_found():
    names = {one.__name__ for one in OF_SUMMARY}
    assert {"Summary", "CellSummary", "Window", "Interval", "Host", "Quarantined"} <= names


@pytest.mark.parametrize("kind", OF_SUMMARY, ids=lambda kind: kind.__name__)
def test_every_field_of_a_summary_is_in_the_glossary(kind):
    missing = set(kind.__struct_fields__) - in_code(ROOT / "docs" / "glossary.md")
    assert not missing, f"docs/glossary.md does not explain {sorted(missing)} of {kind.__name__}"


def commands() -> list[str]:
    """Every command line that there is, from the program itself: "profile", "dataset make" …"""

    def under(command: object, name: str) -> Iterator[str]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name
            return
        for each, one in inner.items():
            yield from under(one, f"{name} {each}".strip())

    return sorted(under(typer.main.get_command(app), ""))


def test_the_program_has_the_commands_that_are_promised():
    assert set(commands()) >= {"profile", "report", "doctor", "dataset make", "dataset survey"}


@pytest.mark.parametrize("command", commands())
def test_every_command_is_documented(command):
    assert f"ioprof {command}" in text(*READ_FIRST)


def test_the_format_version_is_in_its_history():
    rows = re.findall(r"^\| ([0-9]+) \|", text(ROOT / "docs" / "run-format.md"), re.MULTILINE)
    assert [int(row) for row in rows] == list(range(1, FORMAT_VERSION + 1))


@pytest.mark.parametrize("file", READ_FIRST, ids=lambda file: file.name)
def test_links_to_files_of_this_repository_lead_somewhere(file):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text(file))
    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    assert [link for link in local if not (file.parent / link).exists()] == []


def test_the_output_in_the_readme_is_that_of_the_example_run():
    script = ROOT / "scripts" / "readme_output.py"
    checked = subprocess.run([sys.executable, str(script), "--check"], cwd=ROOT)
    assert checked.returncode == 0, f"README.md is stale: run python {script.relative_to(ROOT)}"


def test_the_page_of_sources_is_what_their_modules_say():
    script = ROOT / "scripts" / "sources_page.py"
    checked = subprocess.run([sys.executable, str(script), "--check"], cwd=ROOT)
    assert checked.returncode == 0, (
        f"docs/sources.md is stale: run python {script.relative_to(ROOT)}"
    )
