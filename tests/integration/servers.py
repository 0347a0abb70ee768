"""Programs that serve a filesystem while a test runs; ended by their id, always."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_POLL_S = 0.02
_GRACE_S = 10.0

Process = subprocess.Popen[bytes]


@contextlib.contextmanager
def serving(
    command: Sequence[str], *, log: Path, wire: int = subprocess.DEVNULL
) -> Iterator[Process]:
    """A program in the foreground. It prints into `log`, or talks over the descriptor `wire` by
    its standard input and output.

    Nothing that it keeps is worth an orderly end: what is mounted must be unmounted before.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=wire,
            stdout=output if wire == subprocess.DEVNULL else wire,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(_GRACE_S)


@dataclass(frozen=True, kw_only=True)
class Apart:
    """A program in namespaces of processes and mounts of its own: `first` is its process id as
    seen from outside, `process` what started it there."""

    process: Process
    first: int

    def inside(self, *command: str) -> list[str]:
        """`command`, run beside it: same processes, mounts and network."""
        return ["nsenter", "--net", "--mount", "--pid", "--target", str(self.first), *command]


@contextlib.contextmanager
def serving_all(command: Sequence[str], *, log: Path) -> Iterator[Apart]:
    """A program and all daemons that it will ever start. When it ends, they all end with it."""
    apart = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    with serving((*apart, *command), log=log) as outer:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        wait_until(lambda: bool(children.read_text()), what="unshare", by=outer, log=log)
        first = int(children.read_text())
        try:
            yield Apart(process=outer, first=first)
        finally:
            # The first process of a namespace is gone only after all others are.
            subprocess.run(["kill", "-KILL", str(first)], capture_output=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                outer.wait(_GRACE_S)


def wait_until(
    ready: Callable[[], bool], *, what: str, by: Process, log: Path, within_s: float = 30.0
) -> None:
    """Wait for `ready`. When it will not be: RuntimeError with what its program said last."""
    give_up_s = time.monotonic() + within_s
    while not ready():
        ended = by.poll()
        if ended is not None or time.monotonic() > give_up_s:
            why = f"not there after {within_s:g} s" if ended is None else f"ended with {ended}"
            raise RuntimeError(f"{what}: {why}:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(_POLL_S)


def written_bytes(process: Process) -> int:
    """What a program has written since it began, to files and sockets alike."""
    for line in Path(f"/proc/{process.pid}/io").read_text().splitlines():
        name, _, value = line.partition(": ")
        if name == "wchar":
            return int(value)
    raise RuntimeError(f"process {process.pid} has no account of what it writes")
