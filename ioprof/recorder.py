"""Run one command under the sampler: what it reads is counted, its status passes through.

One recorder per node. It becomes the subreaper of everything the command starts, so a daemon or a
left-over worker stays in the recorded tree, is counted, and does not outlive the recording.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil

from ioprof import attached
from ioprof.clock import Clock, MonotonicClock
from ioprof.errors import MeasureError
from ioprof.leash import leashed
from ioprof.sampler import SamplerSpec
from ioprof.samplerprocess import SamplerProcess

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h, since Linux 3.4
_POLL_S = 0.02


class RecordSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What to run and where the record goes. `deadline_s` is how long it may take at most."""

    command: tuple[str, ...]
    folder: Path
    """Node file, rank files and the log are written here."""
    data_path: Path | None
    interval_s: float
    cpus: tuple[int, ...]
    node: int = 0
    environment: dict[str, str] = {}
    deadline_s: float | None = None
    attached: bool = False
    """The command keeps our terminal, standard streams and process group, as if it ran alone; its
    daemons outlive the recording. Otherwise it has a session and a log of its own."""


class RecordResult(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended. `exit_status` is 128 + n after signal n; `ended_by` says who ended it early."""

    exit_status: int
    started_s: float
    ended_s: float
    ended_by: str | None = None
    """"interrupted", "deadline", "terminated", or None when the command ended by itself."""


def log_path(folder: Path, node: int) -> Path:
    """Where the command's own output goes."""
    return folder / f"node-{node}.log"


def record(spec: RecordSpec, *, clock: Clock | None = None) -> RecordResult:
    """Run `spec.command` to its end under a sampler and say how it ended.

    A KeyboardInterrupt is passed on to the command, which gets a few seconds to end; then it is
    killed. What was recorded until then stays, and the result says "interrupted".
    """
    clock = clock or MonotonicClock()
    spec.folder.mkdir(parents=True, exist_ok=True)
    _become_subreaper()
    sampler_spec = SamplerSpec(
        node=spec.node,
        interval_s=spec.interval_s,
        path=spec.folder / f"node-{spec.node}.jsonl",
        data_path=spec.data_path,
        root_pid=os.getpid(),
        cpus=spec.cpus,
    )
    with SamplerProcess.start(sampler_spec) as sampler:
        started_s = clock.now_s()
        if spec.attached:
            child, ended_by = attached.run(
                spec.command, environment=_environment(spec), deadline_s=spec.deadline_s
            )
        else:
            with _started(spec) as child:
                ended_by = _wait(child, deadline_s=spec.deadline_s, clock=clock)
                _end_survivors(sampler_pid=sampler.pid)
        ended_s = clock.now_s()
        # The command is reaped by now: the sampler's last tick sees its final counters.
        sampler.stop()
    status = child.returncode
    return RecordResult(
        exit_status=status if status >= 0 else 128 - status,
        started_s=started_s,
        ended_s=ended_s,
        ended_by=ended_by,
    )


def log_tail(folder: Path, *, node: int = 0, lines: int = 12) -> str:
    """The last lines that the command printed, for an error message; "" when it was silent."""
    try:
        text = log_path(folder, node).read_text(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def _become_subreaper() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise MeasureError(
            "The recorder could not become a subreaper "
            f"({os.strerror(ctypes.get_errno())}); children that outlive their parent would be "
            "lost from the record. ioprof needs Linux 3.4 or newer."
        )


def _environment(spec: RecordSpec) -> dict[str, str]:
    return {**os.environ, **spec.environment, "IOPROF_EVENTS": str(spec.folder)}


@contextlib.contextmanager
def _started(spec: RecordSpec) -> Iterator[subprocess.Popen[bytes]]:
    with log_path(spec.folder, spec.node).open("ab") as log:
        try:
            child = subprocess.Popen(
                # SIGTERM: the engine ends its ranks before itself.
                leashed(spec.command, ending=signal.SIGTERM),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(spec),
                start_new_session=True,
            )
        except OSError as error:
            raise MeasureError(
                f"{spec.command[0]} could not be started: {error.strerror}. "
                "Check that it is installed and on the PATH."
            ) from None
        try:
            yield child
        finally:
            if child.poll() is None:
                _signal_group(child, signal.SIGKILL)
                child.wait()


def _wait(child: subprocess.Popen[bytes], *, deadline_s: float | None, clock: Clock) -> str | None:
    """Wait for the command; end it on interrupt or at the deadline, and say which it was."""
    try:
        if not attached.ended_within(child, deadline_s):
            _end(child, signal.SIGTERM, clock=clock)
            return "deadline"
    except KeyboardInterrupt:
        _end(child, signal.SIGINT, clock=clock)
        return "interrupted"
    return None


def _end(child: subprocess.Popen[bytes], first: signal.Signals, *, clock: Clock) -> None:
    """Ask the command's session to end with `first`; kill it after a grace period, or at once
    when the user interrupts again."""
    _signal_group(child, first)
    give_up_s = clock.now_s() + attached.GRACE_S
    try:
        while child.poll() is None and clock.now_s() < give_up_s:
            clock.sleep_until(clock.now_s() + _POLL_S)
    except KeyboardInterrupt:
        pass
    if child.poll() is None:
        _signal_group(child, signal.SIGKILL)
        child.wait()


def _signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def _end_survivors(*, sampler_pid: int) -> None:
    """End what the command left behind (loader workers, daemons), and reap it. The sampler and the
    programs that it runs are not of it: their last word comes after the command's end."""
    spare = {sampler_pid}
    left: list[psutil.Process] = []
    for process in psutil.Process().children(recursive=True):  # parents before their children
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.pid == sampler_pid or process.ppid() in spare:
                spare.add(process.pid)
            else:
                left.append(process)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(left, timeout=2.0)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=2.0)
