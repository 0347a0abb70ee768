"""What a path answers, and that a child which never ends holds nobody up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ioprof.errors import DatasetError, MeasureError
from ioprof.sources import probe as module
from ioprof.sources.probe import probe, require_answer

_NEVER = "import time; time.sleep(600)"
_NOBODY = 65534


@pytest.fixture
def unanswered(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The touch never comes back, as on a dead mount; returns the children that were started."""
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def spy(*arguments, **named):
        started.append(real(*arguments, **named))
        return started[-1]

    monkeypatch.setattr(module, "_TOUCH", _NEVER)
    monkeypatch.setattr(subprocess, "Popen", spy)
    return started


def test_a_folder_answers(tmp_path):
    assert probe(tmp_path) == "answers"


def test_an_empty_and_a_filled_folder_answer_alike(tmp_path):
    (tmp_path / "file").touch()
    assert probe(tmp_path) == "answers"


def test_a_folder_whose_name_is_no_text_answers(tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff\xfe\nnew line")
    folder.mkdir()
    assert probe(folder) == "answers"


def test_a_path_that_is_not_there_is_missing(tmp_path):
    assert probe(tmp_path / "none") == "missing"


def test_a_dangling_link_is_missing(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "none")
    assert probe(tmp_path / "link") == "missing"


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").touch()
    assert probe(tmp_path / "file") == "not a directory"


def test_a_link_to_itself_cannot_be_used(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert probe(tmp_path / "loop") == "stale"


def test_a_folder_that_may_not_be_listed_is_forbidden(tmp_path, monkeypatch):
    """Root may list anything, so root's child becomes nobody before it touches the folder."""
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o000)
    if os.geteuid() == 0:
        monkeypatch.setattr(module, "_TOUCH", f"import os; os.setuid({_NOBODY})\n" + module._TOUCH)
    assert probe(locked) == "forbidden"


def test_an_error_of_the_filesystem_is_stale(tmp_path, monkeypatch):
    """ESTALE, as a server gives it for a handle that it no longer knows."""
    touch = module._TOUCH.replace(
        "os.statvfs(sys.argv[1])", "raise OSError(116, 'Stale file handle')"
    )
    assert touch != module._TOUCH
    monkeypatch.setattr(module, "_TOUCH", touch)
    assert probe(tmp_path) == "stale"


def test_a_child_that_was_killed_is_not_taken_for_an_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_TOUCH", "import os; os.kill(os.getpid(), 9)")
    assert probe(tmp_path) == "stale"


def test_no_answer_within_the_deadline_is_not_responding(tmp_path, unanswered):
    began = time.monotonic()
    assert probe(tmp_path, deadline_s=0.3) == "not responding"
    took_s = time.monotonic() - began
    assert 0.3 <= took_s < 5
    (child,) = unanswered
    assert not Path(f"/proc/{child.pid}").exists(), "the child was left running, or as a zombie"


def test_the_child_imports_nothing_of_ours(tmp_path, monkeypatch):
    """It may be left behind for days on a dead mount: it must be small and hold no file of ours."""
    seen: list[list[str]] = []
    real = subprocess.Popen

    def spy(command, **named):
        seen.append(command)
        return real(command, **named)

    monkeypatch.setattr(subprocess, "Popen", spy)
    probe(tmp_path)
    ((program, *flags, _touch, path),) = seen
    assert program == sys.executable
    assert flags == ["-I", "-S", "-c"]
    assert path == str(tmp_path)


def test_what_answers_raises_nothing(tmp_path):
    require_answer(tmp_path)


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        ("missing", DatasetError, r"is not there. Give --data the folder"),
        ("not a directory", DatasetError, r"is a file. Give --data the folder"),
        ("forbidden", DatasetError, r"may not be read by this user. Ask for"),
        ("stale", MeasureError, r"the mount is stale .* Mount it again"),
        ("not responding", MeasureError, r"did not answer within 7 s: .* Check its server"),
    ],
)
def test_each_answer_is_a_sentence_with_what_to_do(tmp_path, monkeypatch, answer, kind, says):
    monkeypatch.setattr(module, "probe", lambda _path, *, deadline_s: answer)
    with pytest.raises(kind, match=says) as raised:
        require_answer(tmp_path, deadline_s=7)
    assert str(tmp_path) in str(raised.value)
    assert raised.value.exit_status == 3
