"""Read a known amount and see which counters moved, and by how much.

The counters are looked at before and after each trial. A mount that does not answer leaves only the
child behind that reads it.
"""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, get_args

from ioprof.calibration.choice import choose
from ioprof.calibration.looks import Look, Looks, candidates
from ioprof.clock import Clock, MonotonicClock
from ioprof.errors import MeasureError
from ioprof.record.dataset import Mount
from ioprof.record.headline import Access, Calibration, Trial
from ioprof.sources.program import abandon
from ioprof.sources.registry import find_all
from ioprof.sources.source import BlockStack, Roots, Target

ACCESSES: tuple[Access, ...] = get_args(Access)
"""In the order in which they are tried: what is read again warm was just read cold."""
LIMIT_BYTES = 32 << 20
_TRIAL_S = 0.25
_IDLE_S = 0.25
DEADLINE_S = 20.0
"""For one step of the reading child: evicting and reading 32 MiB takes a slow mount seconds."""


def calibrate(
    paths: Sequence[Path],
    *,
    mount: Mount,
    stack: BlockStack,
    access: Access = "read",
    limit_bytes: int = LIMIT_BYTES,
    deadline_s: float = DEADLINE_S,
    clock: Clock | None = None,
    roots: Roots = Roots(),
) -> Calibration:
    """Calibrate the counters that can be read here on some files of one mount.

    At most `limit_bytes` of `paths` are read, three times cold and once warm. `access` is how the
    training will read: the headline must see that. MeasureError when the mount does not answer.
    """
    clock = clock or MonotonicClock()
    with Reader(deadline_s=deadline_s) as reader:
        found = find_all(
            Target(root_pid=reader.pid, data_path=paths[0], mount=mount, stack=stack), roots=roots
        )
        with Looks(found, clock=clock) as looks:
            chosen = reader.ask(
                {"do": "choose", "paths": [str(p) for p in paths], "limit_bytes": limit_bytes}
            )
            if not chosen["bytes"]:
                why = f"none of {len(paths)} files could be read, so no counter could be tried"
                return _nothing(why)
            idle = _idle(looks, clock)
            pairs = [_try(reader, looks, one) for one in ACCESSES]
            reader.ask({"do": "restore"})
    return choose(candidates(pairs, idle=idle), trials=[p[0] for p in pairs], access=access)


def _nothing(why: str) -> Calibration:
    return Calibration(trials=(), candidates=(), headline=None, runner_up=None, why=why)


def _idle(looks: Looks, clock: Clock) -> tuple[Look, Look]:
    before = looks.take()
    clock.sleep_until(clock.now_s() + _IDLE_S)
    return before, looks.take()


def _try(reader: Reader, looks: Looks, access: Access) -> tuple[Trial, Look, Look]:
    """One trial, and the counters before and after it."""
    resident = None
    if access != "warm":
        resident = reader.ask({"do": "evict"})["resident"]
    before = looks.take()
    answer = reader.ask({"do": "read", "access": access, "limit_s": _TRIAL_S})
    after = looks.take()
    trial = Trial(
        access=access,
        read_bytes=answer["read_bytes"],
        page_bytes=answer["page_bytes"],
        seconds=answer["seconds"],
        resident_fraction=resident,
        reason=answer["reason"],
    )
    return trial, before, after


class Reader:
    """The child that reads. Leaving the context ends it, or leaves it behind if it hangs."""

    def __init__(self, *, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ioprof.calibration.trial"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # Nothing stays behind in a buffer, to be written again when the pipe is closed.
            bufsize=0,
        )
        self.pid = self._process.pid

    def ask(self, step: dict[str, Any]) -> dict[str, Any]:
        """Have one step done; MeasureError when it is not answered in time, or cannot be done."""
        assert self._process.stdin is not None and self._process.stdout is not None
        # One that has ended is told of below.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(step).encode() + b"\n")
        answered, _, _ = select.select([self._process.stdout], [], [], self._deadline_s)
        line = self._process.stdout.readline() if answered else b""
        if not line:
            raise MeasureError(f"The reader of a known amount {self._what_happened(answered)}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise MeasureError(f"The counters could not be tried: {answer['error']}.")
        return answer

    def _what_happened(self, ended: object) -> str:
        if ended:
            status = self._process.wait()
            how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            return f"ended by {how}: nothing was measured. Read some of the files with `cat`."
        return (
            f"did not answer within {self._deadline_s:g} s: the mount is not responding. "
            "Check its server and network; nothing was measured."
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        abandon(self._process)
