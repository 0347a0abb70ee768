"""The sampler as its starter sees it: a process that is told what to do and answers when it is."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ioprof.errors import MeasureError
from ioprof.sampler import SamplerSpec
from ioprof.sources.program import abandon

_READY_S = 60.0
"""NVML may take many seconds to start when the driver keeps no state between its clients."""
_STOP_S = 15.0
_EXIT_S = 2.0


class SamplerProcess:
    """A sampler in a process of its own. Leaving the context stops it."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._process = process
        self._errors = errors
        self.pid = process.pid
        self.failure: str | None = None
        """Its last words when it did not end well; None otherwise, and before `stop`."""

    @classmethod
    def start(cls, spec: SamplerSpec, *, ready_s: float = _READY_S) -> SamplerProcess:
        """Start it and wait for its first tick; MeasureError when that does not come in time."""
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        process = subprocess.Popen(
            # -P: a file called select.py in the current folder must not be taken for the module.
            [sys.executable, "-P", "-m", "ioprof.sampler"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(),
            start_new_session=True,
        )
        sampler = cls(process, errors)
        try:
            sampler._tell(spec.encode())
            sampler._await_ready(ready_s)
        except BaseException:
            sampler._end(grace_s=0.0)
            raise
        return sampler

    def _await_ready(self, ready_s: float) -> None:
        assert self._process.stdout is not None
        answered, _, _ = select.select([self._process.stdout], [], [], ready_s)
        if answered and self._process.stdout.readline() == b"ready\n":
            return
        what = "ended before its first tick" if answered else f"made no tick within {ready_s:g} s"
        self._end(grace_s=1.0 if answered else 0.0)
        raise MeasureError(
            f"The sampler {what}. It said: {self.failure or 'nothing'}. "
            "`ioprof doctor` shows which counters can be read here."
        )

    def _tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def stop(self) -> None:
        """Have it take a last tick and end its file. Never raises; see `failure`."""
        if not self._errors.closed:
            self._tell(b"stop\n")
            self._end(grace_s=_STOP_S)

    def _end(self, *, grace_s: float) -> None:
        if self._errors.closed:
            return
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        finished = False
        try:
            finished = self._finished(grace_s)
            self._process.wait(timeout=_EXIT_S if finished else 0.0)
        except subprocess.TimeoutExpired:
            abandon(self._process)
        self._process.stdout.close()
        # A thread of its that sits in a dead mount keeps it from exiting: its file is whole.
        if self._process.returncode != 0 and not finished:
            self.failure = self._last_words() or f"exit status {self._process.returncode}"
        self._errors.close()

    def _finished(self, grace_s: float) -> bool:
        """Wait until it says that its file is whole, or ends, or the time is over."""
        assert self._process.stdout is not None
        answered, _, _ = select.select([self._process.stdout], [], [], grace_s)
        if not answered:
            return False
        if self._process.stdout.readline() == b"done\n":
            return True
        self._process.wait(timeout=grace_s)
        return False

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _environment() -> dict[str, str]:
    """Ours, and the folder that this very ioprof was imported from at the end of the path."""
    folder = str(Path(__file__).resolve().parents[1])
    path = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if folder not in path and not folder.endswith("-packages"):
        path.append(folder)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
