"""The rules of the house that no linter of ours checks."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (ROOT / "ioprof", ROOT / "pipelines")
FILES = sorted(file for package in PACKAGES for file in package.rglob("*.py"))
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "manager", "misc"}
HEAVY = {"torch", "torchvision", "nvidia", "matplotlib", "numpy", "scipy", "PIL", "jinja2"}


def short(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.fixture(params=FILES, ids=short)
def file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def nodes(file: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(file.read_text(encoding="utf-8")))


def test_a_file_is_at_most_400_lines(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES


def test_a_function_is_at_most_60_lines(file):
    long = [
        f"{node.name}: {lines}"
        for node in nodes(file)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
        and not declares_options(node)
    ]
    assert not long


def declares_options(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a command whose length is its options: their help text is its interface."""
    body = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
    return body <= MAX_FUNCTION_LINES and "Annotated" in ast.unparse(node.args)


def test_a_file_is_named_after_a_noun_of_the_domain(file):
    assert not FORBIDDEN_NAMES & {part.strip("_") for part in file.with_suffix("").parts}


def test_only_the_command_line_prints_or_exits(file):
    if file.is_relative_to(ROOT / "ioprof" / "cli"):
        return
    tree = ast.parse(file.read_text(encoding="utf-8"))
    # A file that is run as a program ends with its own exit status.
    body = [node for node in tree.body if not is_program_part(node)]
    calls = {
        ast.unparse(node.func)
        for part in body
        for node in ast.walk(part)
        if isinstance(node, ast.Call)
    }
    assert not calls & {"print", "exit", "quit", "sys.exit", "typer.echo", "logging.basicConfig"}


def is_program_part(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def test_no_error_is_caught_that_has_no_name(file):
    broad = [
        node.lineno
        for node in nodes(file)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
        and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
    ]
    assert not broad


def test_no_note_to_self_is_left(file):
    text = file.read_text(encoding="utf-8")
    assert not [mark for mark in ("TO" + "DO", "FIX" + "ME", "XX" + "X") if mark in text]


def test_the_layers_name_no_module_that_is_not_there():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    layers = text.split("layers = [", 1)[1].split("]", 1)[0]
    names = [
        name.strip()
        for line in layers.splitlines()
        for name in line.strip().strip('",').split("|")
        if name.strip()
    ]
    here = {path.stem for path in (ROOT / "ioprof").iterdir() if path.name != "__init__.py"}
    assert set(names) == here - {"__pycache__", "py"}


def modules_after(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after running `code`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return {name.split(".")[0] for name in done.stdout.split("\n")}


def test_the_mark_loads_the_standard_library_alone():
    loaded = modules_after("import ioprof.mark")
    strangers = loaded - set(sys.stdlib_module_names) - {"ioprof", "__main__", ""}
    # What an editable installation or the interpreter's own start-up brings in.
    bare = modules_after("pass")
    assert strangers - bare == set()


@pytest.mark.parametrize("arguments", [["--help"], ["profile", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments):
    code = (
        "import sys\n"
        f"sys.argv = ['ioprof', *{arguments!r}]\n"
        "import contextlib, io\n"
        "from ioprof.cli.main import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main()\n"
    )
    assert not HEAVY & modules_after(code)


def test_the_sampler_loads_nothing_heavy():
    assert not (HEAVY | {"rich", "typer"}) & modules_after("import ioprof.sampler")


def test_every_pinned_package_has_one_version():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split(";")[0].strip() for line in lines if line and not line.startswith("#")]
    assert all(pin.count("==") == 1 for pin in pins)
    names = [pin.split("==")[0].lower().replace("_", "-") for pin in pins]
    assert len(names) == len(set(names))
    assert "ioprof" not in names
