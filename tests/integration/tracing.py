"""The kernel's tracing files, mounted while a test runs where nobody has mounted them."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path("/sys/kernel/tracing")


@contextlib.contextmanager
def tracefs() -> Iterator[None]:
    """Tracing files under /sys/kernel/tracing, if this kernel has them and we may mount them."""
    if (FOLDER / "events").exists() or not FOLDER.exists():
        yield
        return
    subprocess.run(["mount", "-t", "tracefs", "tracefs", str(FOLDER)], capture_output=True)
    try:
        yield
    finally:
        # Where somebody else reads them meanwhile they stay.
        subprocess.run(["umount", str(FOLDER)], capture_output=True)


def why_no_fuse_requests() -> str | None:
    """Why the requests of a FUSE mount cannot be counted here; None where they can."""
    if not (FOLDER / "events" / "fuse" / "fuse_request_end").exists():
        return "this kernel tells nobody of FUSE requests: Linux 6.12 does, with tracefs"
    return None if shutil.which("bpftrace") else "not installed: bpftrace"
