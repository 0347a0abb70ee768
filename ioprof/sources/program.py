"""Ask another program for a text: a filesystem's own command, with a deadline.

The program may hang with the filesystem that it asks, so it is killed at its deadline and, where it
cannot even die, left behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from ioprof.sources.source import Roots

DEADLINE_S = 3.0
_ABANDON_S = 0.5
_MOST_WORDS = 200


class ProgramError(OSError):
    """A program that failed, was killed at its deadline, or could not be started."""

    def __init__(self, why: str) -> None:
        super().__init__(0, why)


def locate(name: str, *, places: Iterable[str] = (), roots: Roots = Roots()) -> Path | None:
    """The program `name` on the PATH, or in one of `places` (folders, absolute); None if absent."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    for place in places:
        path = roots.root / place.lstrip("/") / name
        if path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def ask(command: Sequence[str], *, given: bytes = b"", deadline_s: float = DEADLINE_S) -> bytes:
    """What `command` prints on standard output when fed `given`.

    No shell is involved. ProgramError says how it failed: not started, exit status with its last
    words, or no answer within the deadline.
    """
    name = Path(command[0]).name
    try:
        child = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,
        )
    except OSError as error:
        raise ProgramError(f"{name} could not be started: {error.strerror}") from None
    try:
        answer, complaint = child.communicate(given, timeout=deadline_s)
    except subprocess.TimeoutExpired:
        abandon(child)
        raise ProgramError(f"{name} did not answer within {deadline_s:g} s") from None
    if child.returncode != 0:
        words = (complaint or answer).decode(errors="replace").strip()[-_MOST_WORDS:]
        raise ProgramError(f"{name} ended with status {child.returncode}: {words or 'no word'}")
    return answer


def abandon(child: subprocess.Popen[bytes]) -> None:
    """Kill a child and its session, and wait for it only as long as an ordinary one needs."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        child.kill()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    try:
        child.wait(timeout=_ABANDON_S)
    except subprocess.TimeoutExpired:
        # In uninterruptible sleep: it ends when what it waits for does, and nobody waits for that.
        child.returncode = -signal.SIGKILL
