"""Other programs, asked with a deadline."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ioprof.sources.program import ProgramError, ask, locate
from ioprof.sources.source import Roots


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_it_is_found_on_the_path_and_else_in_its_usual_places(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "usr/lpp").mkdir(parents=True)
    roots = Roots(root=tmp_path)
    assert locate("mmpmon", places=("/usr/lpp",), roots=roots) is None
    usual = script(tmp_path / "usr/lpp", "mmpmon", "true")
    assert locate("mmpmon", places=("/usr/lpp",), roots=roots) == usual
    first = script(tmp_path / "bin", "mmpmon", "true")
    assert locate("mmpmon", places=("/usr/lpp",), roots=roots) == first


def test_a_file_that_may_not_be_run_is_no_program(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    (tmp_path / "mmpmon").write_text("")
    assert locate("mmpmon", places=("/",), roots=Roots(root=tmp_path)) is None


def test_its_answer_is_what_it_prints_when_fed(tmp_path):
    assert ask([str(script(tmp_path, "twice", "cat; echo $LC_ALL"))], given=b"x\n") == b"x\nC\n"


def test_no_shell_ever_sees_an_argument(tmp_path):
    path = script(tmp_path, "say", 'printf %s "$1"')
    assert ask([str(path), "$(touch /tmp/x); `id`"]) == b"$(touch /tmp/x); `id`"


def test_a_failure_says_which_program_how_and_its_last_words(tmp_path):
    path = script(tmp_path, "weka", "echo not logged in >&2; exit 3")
    with pytest.raises(ProgramError, match="weka ended with status 3: not logged in") as caught:
        ask([str(path)])
    assert caught.value.strerror == "weka ended with status 3: not logged in"


def test_one_that_cannot_be_started_says_so(tmp_path):
    with pytest.raises(ProgramError, match="gone could not be started: No such file"):
        ask([str(tmp_path / "gone")])


def test_one_that_hangs_is_killed_with_all_that_it_started(tmp_path):
    pid = tmp_path / "pid"
    path = script(tmp_path, "hang", f"sleep 60 & echo $! > {pid}; wait")
    began_s = time.monotonic()
    with pytest.raises(ProgramError, match=r"hang did not answer within 0\.5 s"):
        ask([str(path)], deadline_s=0.5)
    assert time.monotonic() - began_s < 5
    ended_s = time.monotonic() + 5
    status = Path(f"/proc/{pid.read_text().strip()}/stat")
    while status.exists() and ") Z " not in status.read_text() and time.monotonic() < ended_s:
        os.sched_yield()
    assert not status.exists() or ") Z " in status.read_text()
