"""Visit every counter source on a fixed grid and lay down what they say.

Runs as a process of its own, `python -m ioprof.sampler`, so that a busy recorder cannot delay it.
It is told what to do on its standard input: one line of JSON, then "stop" or the end of input,
so it ends by itself when the recorder dies. It prints "ready" after its first tick.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ioprof.clock import Clock, MonotonicClock, anchor, ticks
from ioprof.errors import IoprofError
from ioprof.record.header import NodeHeader
from ioprof.record.nodefile import Recording
from ioprof.record.reading import Reading, SamplerEnd, Unavailable
from ioprof.record.store import FORMAT_VERSION
from ioprof.sources.aside import look, settle
from ioprof.sources.source import Found, Roots, Source, Target

_PACE_INTERVAL_S = 0.1
"""The grid that `every_ticks` of a source is meant for."""


class SamplerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What one node's sampler watches and where it writes."""

    node: int
    interval_s: float
    path: Path
    """The node file; it must not exist yet."""
    data_path: Path | None
    root_pid: int
    cpus: tuple[int, ...]

    def encode(self) -> bytes:
        """One line of JSON."""
        return msgspec.json.encode(self, enc_hook=str) + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> SamplerSpec:
        """Read what `encode` wrote."""
        return msgspec.json.decode(line, type=cls, dec_hook=lambda kind, value: kind(value))


class Sampler:
    """Reads sources at every tick until told to stop; then once more, and writes what it cost."""

    def __init__(
        self,
        recording: Recording,
        found: Iterable[Found],
        *,
        interval_s: float,
        clock: Clock,
        cpu_s: Callable[[], float] | None = None,
    ) -> None:
        self._recording = recording
        self._interval_s = interval_s
        self._clock = clock
        self._cpu_s = cpu_s or _cpu_s
        self._failed: set[str] = set()
        self._sources: list[Source] = []
        for one in found:
            if isinstance(one, Unavailable):
                recording.write(one)
            else:
                self._sources.append(one)

    def run(self, *, stopped: Callable[[], bool], ready: Callable[[], None]) -> SamplerEnd:
        """Sample until `stopped`; `ready` is called after the first tick. The last tick is taken
        after the stop, so it holds everything that was done before it was asked for.
        """
        # Some sources start a program at their first look: the grid begins when all have answered.
        settle(self._sources)
        cpu_start_s = self._cpu_s()
        taken = missed = expected = 0
        for index, t_s in ticks(
            self._clock, interval_s=self._interval_s, start_s=self._clock.now_s()
        ):
            if stopped():
                self._tick(t_s, self._sources, read=look)
                taken += 1
                break
            missed += index - expected
            due = [s for s in self._sources if self._is_due(s, since=expected, index=index)]
            self._tick(t_s, due)
            taken += 1
            if taken == 1:
                ready()
            expected = index + 1
        end = SamplerEnd(
            t_s=self._clock.now_s(),
            ticks=taken,
            missed_ticks=missed,
            cpu_s=self._cpu_s() - cpu_start_s,
        )
        self._recording.write(end)
        return end

    def _is_due(self, source: Source, *, since: int, index: int) -> bool:
        """Whether one of the grid points `since` … `index` is this source's turn: a missed one
        counts, so that a rarely read source is not skipped for being late.
        """
        every = source.every_ticks
        if every > 1:
            every = max(1, round(every * _PACE_INTERVAL_S / self._interval_s))
        return index // every > (since - 1) // every

    def _tick(
        self,
        t_s: float,
        sources: Iterable[Source],
        *,
        read: Callable[[Source], Iterable[Reading]] = lambda source: source.read(),
    ) -> None:
        readings: list[Reading] = []
        for source in sources:
            try:
                readings.extend(read(source))
            except (OSError, ValueError, LookupError) as error:
                self._say_failed(source, error)
        self._recording.tick(t_s, readings)

    def _say_failed(self, source: Source, error: Exception) -> None:
        """Say once that a source failed; it is asked again at its next tick."""
        if source.name not in self._failed:
            self._failed.add(source.name)
            reason = f"it failed while recording: {error}"
            self._recording.write(Unavailable(source=source.name, reason=reason))

    def close(self) -> None:
        """Close all sources."""
        for source in self._sources:
            source.close()


def _cpu_s() -> float:
    """CPU time of this process and of the programs that it asks, running ones and ended ones."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(map(_used_s, _programs()))


def _programs() -> list[str]:
    """Process ids of the programs that are running for a source."""
    found: list[str] = []
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # the kernel may not list children, and threads end
            found += (thread / "children").read_text().split()
    return found


def _used_s(pid: str) -> float:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    # Fields 14 and 15 of the whole line: user and system time, in clock ticks.
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def find_sources(spec: SamplerSpec, *, sampler_pid: int, roots: Roots = Roots()) -> list[Found]:
    """All sources of this node; where the mount or its devices cannot be told, a line that says so
    instead. The sampler's own process is left out of the tree.
    """
    from ioprof.sources.blockstack import find_stack
    from ioprof.sources.mount import find_mount
    from ioprof.sources.registry import find_all

    found: list[Found] = []
    mount = stack = None
    if spec.data_path is not None:
        try:
            mount = find_mount(spec.data_path, roots=roots)
            stack = find_stack(mount, roots=roots, path=spec.data_path)
        except (IoprofError, OSError, ValueError) as error:
            what = "mount" if mount is None else "block devices"
            found.append(Unavailable(source=what, reason=str(error)))
    target = Target(
        root_pid=spec.root_pid,
        excluded_pids=frozenset((sampler_pid,)),
        cpus=spec.cpus,
        data_path=spec.data_path,
        mount=mount,
        stack=stack,
    )
    return found + find_all(target, roots=roots)


class _CommandClock(MonotonicClock):
    """Sleeps by listening: a "stop" line or the end of input cuts a sleep short."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pending = b""
        self.stopped = False

    def line(self) -> bytes:
        """The next line; without its newline, or what came before the end of input."""
        while b"\n" not in self._pending:
            more = os.read(self._fd, 65536)
            if not more:
                break
            self._pending += more
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def sleep_until(self, deadline_s: float) -> None:
        """Return at the deadline, or as soon as a stop is asked for."""
        while not self.stopped:
            delay_s = deadline_s - self.now_s()
            listening = not self._pending
            heard = listening and select.select([self._fd], [], [], max(delay_s, 0.0))[0]
            if heard or not listening:
                self.stopped = self.line() in (b"stop", b"")
            elif delay_s <= 0:
                return


def main() -> int:
    """The sampler process: told by standard input, ended by it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    clock = _CommandClock(sys.stdin.fileno())
    spec = SamplerSpec.decode(clock.line())
    _allow_many_files()
    header = NodeHeader(
        format_version=FORMAT_VERSION,
        node=spec.node,
        hostname=socket.gethostname(),
        boot_id=_boot_id(),
        pid=os.getpid(),
        clock=anchor(),
        interval_s=spec.interval_s,
        data_path=None if spec.data_path is None else str(spec.data_path),
        cpus=spec.cpus,
    )
    with spec.path.open("xb") as file:
        recording = Recording(file, header=header)
        found = find_sources(spec, sampler_pid=os.getpid())
        sampler = Sampler(recording, found, interval_s=spec.interval_s, clock=clock)
        # What is here now stays, and no tick leaves cycles: collecting often would cost a tenth.
        gc.freeze()
        gc.set_threshold(100_000)
        sampler.run(stopped=lambda: clock.stopped, ready=lambda: _say(b"ready\n"))
    _say(b"done\n")
    sampler.close()
    return 0


def _say(line: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), line)


def _allow_many_files() -> None:
    # One open file for each process of the tree: the soft limit is often 1,024.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
