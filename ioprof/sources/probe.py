"""Ask whether a path answers, without ever hanging with it.

A dead network mount leaves whoever touches it in uninterruptible sleep. So the first touch is made
by a child that may be left behind: it is never joined without a deadline.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

from ioprof.errors import DatasetError, MeasureError
from ioprof.sources.program import abandon

Answer = Literal["answers", "missing", "not a directory", "forbidden", "stale", "not responding"]

DEADLINE_S = 10.0
_ANSWERS: dict[int, Answer] = {
    0: "answers",
    2: "missing",
    3: "not a directory",
    4: "forbidden",
    5: "stale",
}
# One small program, so that nothing of ours is imported in the process that may never end.
_TOUCH = """
import os, sys
try:
    os.statvfs(sys.argv[1])
    with os.scandir(sys.argv[1]) as entries:
        next(entries, None)
except FileNotFoundError:
    sys.exit(2)
except NotADirectoryError:
    sys.exit(3)
except PermissionError:
    sys.exit(4)
except OSError:
    sys.exit(5)
"""


def probe(path: Path, *, deadline_s: float = DEADLINE_S) -> Answer:
    """What `path` answers within `deadline_s`; "not responding" when it does not."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _TOUCH, str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return _ANSWERS.get(child.wait(timeout=deadline_s), "stale")
    except subprocess.TimeoutExpired:
        abandon(child)
        return "not responding"


def require_answer(path: Path, *, deadline_s: float = DEADLINE_S) -> None:
    """Raise the error that says what is wrong with `path`; return when it answers."""
    match probe(path, deadline_s=deadline_s):
        case "answers":
            return
        case "missing":
            raise DatasetError(
                f"{path} is not there. Give --data the folder that holds the samples."
            )
        case "not a directory":
            raise DatasetError(f"{path} is a file. Give --data the folder that holds the samples.")
        case "forbidden":
            raise DatasetError(
                f"{path} may not be read by this user. Ask for read and search permission on it."
            )
        case "stale":
            raise MeasureError(
                f"{path} answers with an I/O error: the mount is stale or its server is gone. "
                "Mount it again."
            )
        case "not responding":
            raise MeasureError(
                f"{path} did not answer within {deadline_s:.0f} s: the mount is not responding. "
                "Check its server and network; nothing was measured."
            )
