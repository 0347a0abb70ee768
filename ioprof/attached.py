"""A command that keeps our terminal, standard streams and process group, as if it ran alone.

What the terminal sends reaches the command by itself, since it is in the terminal's foreground
group with us; what is sent to us alone is handed on.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from ioprof.errors import MeasureError

_HANDED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
GRACE_S = 5.0
"""How long a command may take to end after SIGINT or SIGTERM before it is killed."""


def run(
    command: Sequence[str], *, environment: Mapping[str, str], deadline_s: float | None = None
) -> tuple[subprocess.Popen[bytes], str | None]:
    """Run `command` to its end: the ended process, and "interrupted" or "terminated" when a signal
    asked for that, "deadline" when it was asked to end after `deadline_s`. MeasureError when it
    cannot be started."""
    received: list[signal.Signals] = []
    with _handed_on(received) as hand_to:
        try:
            child = subprocess.Popen(list(command), env=dict(environment))
        except OSError as error:
            raise MeasureError(
                f"{command[0]} could not be started: {error.strerror}. "
                "Check that it is installed and on the PATH."
            ) from None
        hand_to(child)
        late = not ended_within(child, deadline_s)
        if late:
            _end(child)
    if late:
        return child, "deadline"
    if signal.SIGINT in received:
        return child, "interrupted"
    ended = {signal.SIGTERM, signal.SIGHUP}.intersection(received)
    return child, "terminated" if ended else None


def ended_within(child: subprocess.Popen[bytes], seconds: float | None) -> bool:
    """Sleep until the child has ended, or `seconds` are over. Waking up to look would cost the
    command time on its own CPUs, so the kernel is asked to wake us (pidfd, since Linux 5.3)."""
    descriptor = os.pidfd_open(child.pid)
    try:
        select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)
    return child.poll() is not None


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ask the command to end, as a batch system does; kill it if it does not."""
    child.terminate()
    if not ended_within(child, GRACE_S):
        child.kill()
        child.wait()


class _Hand:
    """Notes every signal and hands it to the command, once there is one."""

    def __init__(self, received: list[signal.Signals]) -> None:
        self._received = received
        self._child: subprocess.Popen[bytes] | None = None

    def __call__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        for number in self._received:
            self._send(number)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The handler. A handler, unlike ignoring, is not inherited by the command."""
        self._received.append(signal.Signals(number))
        self._send(signal.Signals(number))

    def _send(self, number: signal.Signals) -> None:
        if self._child is None or (number in _FROM_TERMINAL and _in_foreground()):
            return
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)


@contextlib.contextmanager
def _handed_on(received: list[signal.Signals]) -> Iterator[_Hand]:
    hand = _Hand(received)
    # A signal that is ignored, as nohup and shells' background jobs do, stays so for the command.
    caught = [n for n in _HANDED_ON if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, hand.handle) for number in caught}
    try:
        yield hand
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Whether the terminal sends its signals to our group, the command included."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
