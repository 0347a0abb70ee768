"""Run fio so that it cannot outlive us: own session, ended with us, killed as a whole."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence

import msgspec

from ioprof.errors import ToolError
from ioprof.leash import leashed

_GRACE_S = 2.0


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended and what it said. `exit_status` is 128 + n after signal n."""

    exit_status: int
    stdout: str
    stderr: str


def run(argv: Sequence[str], *, deadline_s: float) -> Finished:
    """Run `argv` (an absolute path first) to its end and return what it said.

    ToolError when it cannot be started or is not done by the deadline. On KeyboardInterrupt it is
    ended, with everything it started, before that goes on.
    """
    try:
        child = subprocess.Popen(
            leashed(argv, ending=signal.SIGKILL),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"{argv[0]} could not be started: {error.strerror}.") from None
    with child:
        try:
            stdout, stderr = child.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            _end(child)
            raise ToolError(
                f"{argv[0]} was not done after {deadline_s:.0f} s and was killed. "
                "Check that the mount under the dataset answers."
            ) from None
        except BaseException:
            _end(child)
            raise
    status = child.returncode
    return Finished(
        exit_status=status if status >= 0 else 128 - status,
        stdout=stdout.decode(errors="replace"),
        stderr=stderr.decode(errors="replace"),
    )


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child's whole session: politely, then for certain."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=_GRACE_S)
            return
    # Stuck in the kernel on a mount that does not answer: it is dead as soon as that one is back.
    # Nobody waits for it any more.
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    child.returncode = -signal.SIGKILL
