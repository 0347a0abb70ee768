"""A command that does not outlive the process that started it, however that one ends."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence

# Becomes the command after asking the kernel for a signal when its parent dies (PR_SET_PDEATHSIG
# is 1, and survives exec). A parent that died before that is told by the changed parent pid.
_LAUNCH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, int(sys.argv[2]), 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
try:
    os.execvp(sys.argv[3], sys.argv[3:])
except OSError as error:
    sys.exit(f"{sys.argv[3]} could not be started: {error.strerror}.")
"""


def leashed(argv: Sequence[str], *, ending: signal.Signals) -> list[str]:
    """`argv`, started so that it gets the signal `ending` when this process dies.

    What it starts itself is its own affair: give SIGTERM to a launcher that ends its ranks.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is not None:
        # A program of a few pages: an interpreter's own start would show in the counters.
        return [setpriv, "--pdeathsig", ending.name.removeprefix("SIG"), "--", *argv]
    return [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), str(int(ending)), *argv]
