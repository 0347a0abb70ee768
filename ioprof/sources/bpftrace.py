"""A bpftrace program that adds up in the kernel and prints its sums ten times a second.

The maps of a script only grow, so a print that is lost loses nothing. Each print ends with the
kernel's time of its beginning, by which a look knows that it was taken after it was asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from ioprof.clock import MonotonicClock
from ioprof.leash import leashed
from ioprof.sources.program import ProgramError, abandon, locate
from ioprof.sources.source import Roots

PRINT_S = 0.1
PAUSE_S = PRINT_S / 2
"""Between two looks, each of which waits for the next print: so the prints set the pace."""
START_S = 15.0
"""Compiling a script takes half a second, on a busy machine many times that."""
_LOOK_S = 2.0
_END_S = 2.0
_EVENTS = ("kernel/tracing/events", "kernel/debug/tracing/events")
_NS = 1e-9
_DIGITS = 21
"""More than any time since boot has."""

Sums = dict[str, int]
"""A map: key as bpftrace prints it ("15", or "42,15" for a key of two), to its sum. A map without
keys has one sum, under ALL."""
ALL = ""


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why tracepoints cannot be used here, and what would help."""

    reason: str
    remedy: str


def usable(event: str, *, since: str, roots: Roots = Roots()) -> Path | Why:
    """The bpftrace program, or why the tracepoint `event` ("fuse/fuse_request_end") cannot be
    counted by it; `since` names the kernel that has it."""
    folders = [roots.sys / folder for folder in _EVENTS]
    mounted = [folder for folder in folders if os.access(folder, os.R_OK | os.X_OK)]
    if os.geteuid() != 0:
        return Why(reason="tracepoints are for root alone", remedy="run ioprof as root")
    if not mounted:
        return Why(
            reason="the kernel's tracing files are not mounted",
            remedy=f"mount -t tracefs tracefs {folders[0].parent}",
        )
    if not any((folder / event).is_dir() for folder in mounted):
        return Why(
            reason=f"this kernel has no tracepoint {event.replace('/', ':')}", remedy=f"use {since}"
        )
    program = locate("bpftrace", places=("/usr/bin", "/usr/sbin", "/usr/local/bin"), roots=roots)
    if program is None:
        return Why(reason="bpftrace is not installed", remedy="apt-get install bpftrace")
    return program


def script(probes: str, *maps: str) -> str:
    """`probes` with the interval that prints `maps` and then the time."""
    prints = " ".join(f"print(@{name});" for name in maps)
    return f'{probes}\ninterval:ms:{PRINT_S * 1000:.0f} {{ {prints} printf("%llu\\n", nsecs); }}\n'


class Print(msgspec.Struct, frozen=True, kw_only=True):
    """All maps as of one print. A map that holds nothing yet is not there."""

    t_s: float
    """When it began, on the kernel's clock of `nsecs`."""
    maps: dict[str, Sums]
    lost_events: int = 0
    """Messages of the kernel to bpftrace that were lost so far. A print that lacks one is not
    handed on: its maps would be older than its time says."""


class Prints:
    """Puts lines of bpftrace's JSON together to prints. Feed it line by line."""

    def __init__(self) -> None:
        self._maps: dict[str, Sums] = {}
        self._lost_events = 0
        self._is_torn = False

    def feed(self, line: bytes) -> Print | None:
        """The print that `line` ends; None for another line. What makes no sense is passed over."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(message, dict):
            return None
        match message.get("type"), message.get("data"):
            case "map", dict() as named:
                self._maps.update((str(name), _sums(values)) for name, values in named.items())
            case "lost_events", dict() as lost:
                self._lost_events += _sums(lost.get("events")).get(ALL, 0)
                self._is_torn = True
            case "printf", str() as text if text.strip().isdecimal() and len(text) <= _DIGITS:
                return self._end(int(text) * _NS)
        return None

    def _end(self, t_s: float) -> Print | None:
        is_torn, self._is_torn = self._is_torn, False
        if is_torn:
            return None
        return Print(t_s=t_s, maps=dict(self._maps), lost_events=self._lost_events)


def _sums(values: object) -> Sums:
    named = values if isinstance(values, dict) else {ALL: values}
    return {
        key: value
        for key, value in named.items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    }


class Bpftrace:
    """One running script. It ends when this process does, however that ends."""

    def __init__(self, program: Path, text: str) -> None:
        self._command = leashed(
            [str(program), "-f", "json", "-B", "line", "-e", text], ending=signal.SIGKILL
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._prints = Prints()
        self._pending = b""
        self._clock = MonotonicClock()

    def look(self) -> Print:
        """The first print that began after this call; the first look starts the program.

        ProgramError when it cannot be started or ends, TimeoutError when it does not print in time.
        """
        asked_s = self._clock.now_s()
        until_s = asked_s + (_LOOK_S if self._process else START_S)
        process = self._process or self._start()
        while True:
            made = self._next(process, until_s=until_s)
            if made is None:
                continue
            t_s = self._monotonic_s(made.t_s)
            if t_s >= asked_s:
                return msgspec.structs.replace(made, t_s=t_s)

    def _monotonic_s(self, nsecs_s: float) -> float:
        """`nsecs` of a script on our clock. It is the time since boot, time asleep included; with
        an old kernel or bpftrace it is our clock already."""
        now_s = self._clock.now_s()
        asleep_s = time.clock_gettime(time.CLOCK_BOOTTIME) - now_s
        awake_s = nsecs_s - asleep_s
        return min(nsecs_s, awake_s, key=lambda t_s: abs(now_s - t_s))

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            raise ProgramError(f"bpftrace could not be started: {error.strerror}") from None
        return self._process

    def _next(self, process: subprocess.Popen[bytes], *, until_s: float) -> Print | None:
        """What the next line ends, if it ends a print."""
        assert process.stdout is not None
        while b"\n" not in self._pending:
            left_s = until_s - self._clock.now_s()
            if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
                raise TimeoutError(0, "bpftrace printed nothing in time")
            more = os.read(process.stdout.fileno(), 1 << 16)
            if not more:
                raise ProgramError(f"bpftrace ended: {self._last_words()}")
            self._pending += more
        line, _, self._pending = self._pending.partition(b"\n")
        return self._prints.feed(line)

    def _last_words(self) -> str:
        self._errors.seek(0)
        said = [line for line in self._errors.read().decode(errors="replace").splitlines() if line]
        # It complains of a limit that it goes on without.
        telling = [line for line in said if "RLIMIT_MEMLOCK" not in line]
        return telling[0] if telling else "it said nothing"

    def close(self) -> None:
        """End the program."""
        if self._process is not None:
            # It would wait for room in the pipe while nobody reads: killing loses nothing.
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            abandon(self._process)
            self._process = None
        self._errors.close()
