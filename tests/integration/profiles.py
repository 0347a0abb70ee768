"""Run `ioprof profile` as a user would, and read back what it printed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from ioprof.record.store import RunDirectory, read_json
from ioprof.record.summary import CellSummary, Summary

needs_trainer = pytest.mark.skipif(
    find_spec("torchvision") is None, reason="needs the train extra: pip install 'ioprof[train]'"
)
needs_dali = pytest.mark.skipif(
    find_spec("nvidia") is None or find_spec("nvidia.dali") is None,
    reason="needs the dali extra: pip install 'ioprof[dali]'",
)


class Profiled(msgspec.Struct, frozen=True):
    """One finished `ioprof profile --json`."""

    status: int
    stdout: str
    stderr: str
    run: RunDirectory

    @property
    def summary(self) -> Summary:
        """The summary as written to the run directory."""
        return read_json(self.run.summary, Summary)

    def cell(self, cell_id: str) -> CellSummary:
        """The cell of that id; the test fails with what there is when it is missing."""
        cells = {cell.id: cell for cell in self.summary.cells}
        assert cell_id in cells, f"{cell_id} is not among {sorted(cells)}\n{self.stderr}"
        return cells[cell_id]


def command(*arguments: str) -> list[str]:
    """`ioprof profile …` by the interpreter of this test."""
    return [sys.executable, "-m", "ioprof", "profile", *arguments]


def profile(data: Path, out: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> Profiled:
    """Run it to its end; `prefix` goes before the command (taskset, a cgroup)."""
    done = subprocess.run(
        [*prefix, *command(f"--data={data}", f"--out={out}", "--json", *arguments)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    return Profiled(
        status=done.returncode, stdout=done.stdout, stderr=done.stderr, run=RunDirectory(out)
    )


def checksums(folder: Path) -> dict[str, str]:
    """Relative path → SHA-256 of every regular file below `folder`."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
