"""What `doctor` looks at: one check per thing, each with what was seen and what would help."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from ioprof import hostinfo
from ioprof.record.headline import Calibration, Candidate
from ioprof.record.reading import Number, Reading, Unavailable
from ioprof.record.study import Residency
from ioprof.sources import registry
from ioprof.sources.allowance import memory_limit_bytes
from ioprof.sources.aside import look
from ioprof.sources.source import Fact, Found, Roots, Target
from ioprof.units import format_bandwidth, format_memory, format_rate

State = Literal["yes", "no", "note"]

_SMALL_SHM_BYTES = 1 << 30
_FEW_FILES = 4096
_SHOWN_INSTANCES = 4
_SAW_ABOVE = 0.005


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing looked at. "yes": there and usable; "no": not, and `says` tells why; "note": there,
    with something to know. `remedy` is what would change a "no" or a "note"."""

    area: str
    name: str
    state: State
    says: str
    remedy: str | None = None
    facts: tuple[Fact, ...] = ()
    """Of a counter source that can be read here: where each counter is and how to check it."""


def host_checks(*, roots: Roots = Roots()) -> Iterator[Check]:
    """Kernel, CPUs, memory."""
    host = hostinfo.host(roots=roots)
    yield Check(area="host", name="kernel", state="yes", says=host.kernel)
    cpus = f"{format_rate(host.usable_cpus)} of {host.logical_cpus} usable, {host.cpu}"
    fewer = host.usable_cpus < host.logical_cpus
    yield Check(
        area="host",
        name="CPUs",
        state="note" if fewer else "yes",
        says=cpus + ("; affinity or a cgroup quota keeps the rest" if fewer else ""),
        remedy="ask for more CPUs: loaders share what is usable" if fewer else None,
    )
    limited = memory_limit_bytes(roots=roots) == host.memory_bytes
    yield Check(
        area="host",
        name="memory",
        state="note" if limited else "yes",
        says=format_memory(host.memory_bytes)
        + (" by a cgroup limit; page cache counts against it" if limited else ""),
    )


def counter_checks(target: Target, *, roots: Roots = Roots()) -> Iterator[Check]:
    """Every counter source, read once, or why it cannot be."""
    for found in registry.find_all(target, roots=roots):
        yield from _counter(found)


def _counter(found: Found) -> Iterator[Check]:
    if isinstance(found, Unavailable):
        yield _silent(found.source, found.reason, found.remedy)
        return
    try:
        readings = look(found)
    except (OSError, ValueError, LookupError) as error:
        says = getattr(error, "strerror", None) or error
        yield _silent(found.name, f"cannot be read: {says}", None)
        return
    finally:
        found.close()
    if not readings:
        yield _silent(found.name, "found, and it has counted nothing yet", None)
    for source in dict.fromkeys(reading.source for reading in readings):
        yield _readable(source, [r for r in readings if r.source == source])


def _silent(source: str, reason: str, remedy: str | None) -> Check:
    return Check(area="counters", name=source, state="no", says=reason, remedy=remedy)


def _readable(source: str, readings: list[Reading]) -> Check:
    names = [reading.instance for reading in readings]
    shown = ", ".join(names[:_SHOWN_INSTANCES])
    if len(names) > _SHOWN_INSTANCES:
        shown += f" and {len(names) - _SHOWN_INSTANCES} more"
    first = readings[0]
    values: Iterable[tuple[str, Number | None]] = (
        item for r in readings for item in (*r.counters.items(), *r.gauges.items())
    )
    missing = sorted({name for name, value in values if value is None})
    says = f"{shown} ({first.layer}, {first.scope})"
    if missing:
        says += f"; not kept here: {', '.join(missing)}"
    return Check(
        area="counters",
        name=source,
        state="note" if missing else "yes",
        says=says,
        facts=tuple(fact for fact in registry.FACTS if fact.source == source),
    )


def calibration_checks(found: Calibration) -> Iterator[Check]:
    """Which counter will say what storage delivered, and what every counter saw of a known
    amount."""
    if found.headline is not None:
        says = [found.why, *found.blind_spots]
        if found.runner_up is not None:
            says.append(f"Next best: {found.runner_up.name}")
        text = ". ".join(one.rstrip(".") for one in says)
        yield Check(area="data", name="storage bytes", state="yes", says=text)
    else:
        yield Check(
            area="data",
            name="storage bytes",
            state="no",
            says=found.why,
            remedy="run as root: more counters can be read then; those below say what they need",
        )
    for trial in found.trials:
        if trial.reason:
            yield Check(area="trials", name=trial.access, state="note", says=trial.reason)
    blind = [c for c in found.candidates if not _saw_any(c)]
    for candidate in sorted(filter(_saw_any, found.candidates), key=_saw_most):
        seen = ", ".join(
            f"{access} {'–' if ratio is None else f'{ratio:.2f}'}"
            for access, ratio in candidate.ratios.items()
        )
        state: State = "yes" if candidate in (found.headline, found.runner_up) else "note"
        yield Check(area="trials", name=candidate.source, state=state, says=_saw(candidate, seen))

    if blind:
        names = ", ".join(c.name.partition(" (")[0] for c in blind)
        yield Check(area="trials", name="saw nothing", state="note", says=names)


def _saw_any(candidate: Candidate) -> bool:
    return any((ratio or 0.0) > _SAW_ABOVE for ratio in candidate.ratios.values())


def _saw(candidate: Candidate, seen: str) -> str:
    others = candidate.background_bytes_per_s
    noise = f"; others move it by {format_bandwidth(others)}" if others and others > 1e4 else ""
    return f"{candidate.name.removeprefix(candidate.source).strip()}: {seen}{noise}"


def _saw_most(candidate: Candidate) -> float:
    return -(candidate.ratios.get("read") or 0.0)


def residency_check(found: Residency) -> Check:
    """Whether the page cache can be observed, by one look at some of the files."""
    if found.resident_fraction is None:
        return Check(
            area="data",
            name="page cache",
            state="no",
            says=f"cannot be observed: {found.reason or 'no file was found to look at'}",
            remedy="run as the owner of the files, or as root: cold and warm cannot be claimed "
            "unobserved",
        )
    says = f"observable by {found.method}: {found.resident_fraction:.1%} of the first "
    says += f"{format_rate(found.files_checked)} files is in memory"
    return Check(area="data", name="page cache", state="yes", says=says)


def tool_checks(*, roots: Roots = Roots()) -> Iterator[Check]:
    """Programs and packages that some cells need."""
    fio = hostinfo.fio_version()
    yield _tool("fio", fio, "without it there is no storage ceiling", "apt-get install fio")
    for name, extra in (("torch", "train"), ("torchvision", "train"), ("dali", "dali")):
        yield _tool(
            name,
            hostinfo.package_version(name),
            f"the {'dali' if extra == 'dali' else 'torch'} loaders cannot run",
            f"pip install 'ioprof[{extra}]'",
        )
    yield _tool(
        "bpftrace",
        shutil.which("bpftrace"),
        "request sizes come from averages of the counters alone",
        "apt-get install bpftrace; it needs root to run",
    )
    yield _tracefs(roots)


def _tool(name: str, found: str | None, without: str, remedy: str) -> Check:
    if found is None:
        says = f"not installed: {without}"
        return Check(area="tools", name=name, state="no", says=says, remedy=remedy)
    return Check(area="tools", name=name, state="yes", says=found.removeprefix(f"{name}-"))


def _tracefs(roots: Roots) -> Check:
    places = [roots.sys / "kernel/tracing", roots.sys / "kernel/debug/tracing"]
    for place in places:
        if os.access(place / "events", os.R_OK | os.X_OK):
            return Check(area="tools", name="tracefs", state="yes", says=str(place))
    return Check(
        area="tools",
        name="tracefs",
        state="no",
        says="not mounted, or not readable by this user: no tracepoints",
        remedy="run as root, or mount -t tracefs tracefs /sys/kernel/tracing",
    )


def accelerator_checks() -> Iterator[Check]:
    """GPUs that the driver lists."""
    accelerators, driver = hostinfo.nvidia()
    for gpu in accelerators:
        memory = "" if gpu.memory_bytes is None else f", {format_memory(gpu.memory_bytes)}"
        says = f"{gpu.name}{memory}, driver {driver}"
        yield Check(area="accelerators", name=f"GPU {gpu.index}", state="yes", says=says)
    if not accelerators:
        yield Check(
            area="accelerators",
            name="GPU",
            state="no",
            says="no NVIDIA GPU is visible: --accelerator auto emulates an H100",
        )


def limit_checks(*, shm: Path = Path("/dev/shm")) -> Iterator[Check]:
    """What loader workers run into first."""
    yield _shm(shm)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = soft < _FEW_FILES
    yield Check(
        area="limits",
        name="open files",
        state="note" if few else "yes",
        says=f"{_limit(soft)} (may be raised to {_limit(hard)})",
        remedy="ulimit -n 65536: each worker and each batch in flight takes some" if few else None,
    )


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else f"{value:,}"


def _shm(shm: Path) -> Check:
    try:
        status = os.statvfs(shm)
    except OSError as error:
        return Check(
            area="limits",
            name="/dev/shm",
            state="no",
            says=f"{error.strerror}: torch workers hand over batches through it",
            remedy="mount -t tmpfs tmpfs /dev/shm",
        )
    size_bytes = status.f_frsize * status.f_blocks
    free_bytes = status.f_frsize * status.f_bavail
    small = size_bytes < _SMALL_SHM_BYTES
    return Check(
        area="limits",
        name="/dev/shm",
        state="note" if small else "yes",
        says=f"{format_memory(size_bytes)}, {format_memory(free_bytes)} free",
        remedy="torch workers hand over batches through it: mount -o remount,size=8g /dev/shm, or "
        "start the container with --shm-size=8g"
        if small
        else None,
    )
