"""Measure what storage delivers when only storage is asked, and doubt the answer.

fio's number is claimed only when it ran for a second at least, and when the devices under the
mount delivered at least half of what fio says it read: else it was the page cache that was
measured, or memory.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import msgspec

from ioprof.clock import Clock, MonotonicClock
from ioprof.errors import MeasureError, ToolError
from ioprof.fio import command, process, result
from ioprof.fio.command import ReadJob
from ioprof.fio.result import FioResult
from ioprof.record.ceiling import StorageCeiling
from ioprof.record.filelist import FileList
from ioprof.record.fiofiles import block_bytes_for, choose_files, share_out
from ioprof.record.reading import Role, Unavailable
from ioprof.record.store import write_json
from ioprof.sources import block
from ioprof.sources.allowance import usable_cpus
from ioprof.sources.mount import find_mount
from ioprof.sources.source import BlockStack, Roots, Target

CEILING_NAME = "ceiling.json"
_JOB_NAME = "read.fio"
_RAW_NAME = "read.json"
_MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs", "hugetlbfs"})
_PAGE_CACHE = "page cache speed"
_SHORTEST_S = 1.0
_DEVICE_SHARE = 0.95
"""Below this share of what fio read, some of it came from memory: no ceiling is claimed."""
_CPU_BOUND = 0.85
_PROBE_DEADLINE_S = 15.0
_MARGIN_S = 30.0


def measure_ceiling(
    files: FileList,
    *,
    out: Path,
    jobs: int,
    duration_s: float,
    stack: BlockStack | None,
    roots: Roots = Roots(),
    clock: Clock | None = None,
) -> StorageCeiling:
    """Read `files` with fio for `duration_s` by `jobs` readers, and write `out/ceiling.json`.

    Only reads. Where nothing can be claimed, `read_bytes_per_s` is None with the reason. `stack`
    holds the devices whose own counters are compared; None or an empty one leaves fio unchecked,
    and says so.
    """
    out.mkdir(parents=True, exist_ok=True)
    clock = clock or MonotonicClock()
    try:
        ceiling = _measure(
            files,
            out=out,
            jobs=jobs,
            duration_s=duration_s,
            stack=stack or BlockStack(devices=()),
            roots=roots,
            clock=clock,
        )
    except ToolError as error:
        ceiling = StorageCeiling(read_bytes_per_s=None, reason=str(error))
    except KeyboardInterrupt:
        stopped = StorageCeiling(read_bytes_per_s=None, reason="interrupted while fio was reading")
        write_json(out / CEILING_NAME, stopped)
        raise
    write_json(out / CEILING_NAME, ceiling)
    return ceiling


def _measure(
    files: FileList,
    *,
    out: Path,
    jobs: int,
    duration_s: float,
    stack: BlockStack,
    roots: Roots,
    clock: Clock,
) -> StorageCeiling:
    program = shutil.which("fio")
    if program is None:
        reason = "fio is not installed: apt-get install fio, or dnf install fio"
        return StorageCeiling(read_bytes_per_s=None, reason=reason)
    if _is_memory(files.root, roots):
        reason = f"{files.root} lies in memory (tmpfs): there is no storage under it to measure"
        return StorageCeiling(read_bytes_per_s=None, reason=reason)
    block_bytes = block_bytes_for(files.stored_bytes)
    chosen = () if block_bytes is None else choose_files(files, block_bytes=block_bytes)
    if block_bytes is None or not chosen:
        reason = "no file is as large as 4 KiB and has a name that fio can take"
        return StorageCeiling(read_bytes_per_s=None, reason=reason)
    engine, direct = _mode(program, chosen[0])
    job = ReadJob(
        readers=share_out(chosen, readers=jobs),
        block_bytes=block_bytes,
        engine=engine,
        direct=direct,
        duration_s=duration_s,
    )
    bench = _Bench(program=program, out=out, stack=stack, roots=roots, clock=clock)
    ceiling = bench.attempt(job)
    if direct and (ceiling.reason or "").startswith(_PAGE_CACHE):
        # Compressed btrfs and older zfs accept direct reads and serve them from memory.
        return bench.attempt(msgspec.structs.replace(job, direct=False))
    return ceiling


class _Bench(msgspec.Struct, frozen=True, kw_only=True):
    """Where and against what a job is run."""

    program: str
    out: Path
    stack: BlockStack
    roots: Roots
    clock: Clock

    def attempt(self, job: ReadJob) -> StorageCeiling:
        """Run one job between two looks at the devices' counters."""
        job_file, raw = self.out / _JOB_NAME, self.out / _RAW_NAME
        argv = command.argv(self.program, job=job_file, output=raw)
        job_file.write_text(job.text())
        before = _device_bytes(self.stack, self.roots)
        began_s = self.clock.now_s()
        answer = _run(argv, raw=raw, deadline_s=job.duration_s + _MARGIN_S)
        took_s = self.clock.now_s() - began_s
        after = _device_bytes(self.stack, self.roots)
        delivered = None if before is None or after is None else after - before
        return _claim(
            answer, job=job, argv=argv, delivered=delivered, took_s=took_s, roots=self.roots
        )


def _mode(program: str, file: Path) -> tuple[str, bool]:
    """The first engine that reads a block here, around the page cache if the filesystem can.

    An engine may be compiled in and still refused, by the kernel or by a sandbox, so each is
    tried. EINVAL for a direct read means that the filesystem has none.
    """
    last = ToolError("fio offers none of its engines here.")
    for direct in (True, False):
        for engine in command.ENGINES:
            argv = command.probe_argv(program, file=file, engine=engine, direct=direct)
            done = process.run(argv, deadline_s=_PROBE_DEADLINE_S)
            try:
                answer = result.parse(done.stdout)
            except ToolError as error:
                last = _failed(done, str(error))
                continue
            if done.exit_status == 0 and not answer.error and answer.reads:
                return engine, direct
            last = _failed(done, "; ".join(answer.messages))
            if answer.error in (errno.EACCES, errno.EIO, errno.ESTALE):
                raise last
    raise last


def _run(argv: tuple[str, ...], *, raw: Path, deadline_s: float) -> FioResult:
    raw.unlink(missing_ok=True)
    done = process.run(argv, deadline_s=deadline_s)
    # fio puts its messages into the file as well, before the result.
    text = raw.read_text(errors="replace") if raw.exists() else ""
    if not text.strip():
        raise _failed(done, "")
    answer = result.parse(text)
    if answer.error:
        words = "; ".join(answer.messages) or os.strerror(answer.error)
        raise _failed(done, f"{os.strerror(answer.error)}: {words}")
    if done.exit_status and not answer.interrupted:
        raise _failed(done, "; ".join(answer.messages))
    return answer


def _failed(done: process.Finished, words: str) -> ToolError:
    said = done.stderr.strip() or words or done.stdout.strip() or "nothing"
    return ToolError(f"fio ended with status {done.exit_status}. It said: {said}")


def _claim(
    answer: FioResult,
    *,
    job: ReadJob,
    argv: tuple[str, ...],
    delivered: int | None,
    took_s: float,
    roots: Roots,
) -> StorageCeiling:
    cpus = usable_cpus(roots=roots)
    busy = answer.cpu_s / (answer.runtime_s * cpus) if answer.runtime_s > 0 else None
    reason = _doubt(answer, delivered=delivered)
    return StorageCeiling(
        read_bytes_per_s=None if reason else answer.read_bytes_per_s,
        reads_per_s=None if reason else answer.reads_per_s,
        latency_mean_s=answer.latency_mean_s,
        latency_p50_s=answer.latency_p50_s,
        latency_p99_s=answer.latency_p99_s,
        block_bytes=job.block_bytes,
        jobs=len(job.readers),
        depth=1,
        engine=job.engine,
        direct=job.direct,
        runtime_s=answer.runtime_s,
        storage_read_bytes=delivered,
        fio_read_bytes=answer.read_bytes,
        cpu_fraction=busy,
        fio_version=answer.version,
        command=argv,
        reason=reason,
        notes=_notes(answer, job=job, busy=busy, delivered=delivered, took_s=took_s),
    )


def _doubt(answer: FioResult, *, delivered: int | None) -> str | None:
    """Why fio's number is not the storage's; None when it may be."""
    if answer.runtime_s < _SHORTEST_S:
        return (
            f"too short to measure: fio read for {answer.runtime_s:.2f} s, at least 1 s is needed"
        )
    if delivered is None or answer.read_bytes == 0:
        return None if answer.read_bytes else "fio read nothing"
    share = delivered / answer.read_bytes
    if share < _DEVICE_SHARE:
        return (
            f"{_PAGE_CACHE}: the devices delivered {share:.0%} of the bytes that fio read; the "
            "rest came from memory, or the filesystem compresses"
        )
    return None


def _notes(
    answer: FioResult,
    *,
    job: ReadJob,
    busy: float | None,
    delivered: int | None,
    took_s: float,
) -> tuple[str, ...]:
    notes: list[str] = []
    if not job.direct:
        notes.append(
            "fio read through the page cache and emptied it of each file first: this filesystem "
            "takes no direct reads, or serves them from memory."
        )
    if answer.interrupted:
        notes.append(
            f"fio was interrupted: {answer.runtime_s:.1f} s of {job.duration_s:.1f} s "
            f"({took_s:.1f} s in all)."
        )
    if delivered is None:
        notes.append("No block device lies under the mount, so fio's bytes are not checked.")
    if busy is not None and busy >= _CPU_BOUND:
        notes.append(
            f"fio kept {busy:.0%} of the usable CPUs busy: the host may be the limit, storage "
            "delivers at least this."
        )
    return tuple(notes)


def _is_memory(path: Path, roots: Roots) -> bool:
    try:
        return find_mount(path, roots=roots).filesystem in _MEMORY_FILESYSTEMS
    except MeasureError:
        return False  # fio will say what is wrong with the path


def _device_bytes(stack: BlockStack, roots: Roots) -> int | None:
    """Bytes read so far from the devices that the mount names; None when none can be read."""
    if not stack.top:
        return None
    total: int | None = None
    for found in block.find(Target(root_pid=os.getpid(), stack=stack), roots=roots):
        if isinstance(found, Unavailable):
            continue
        try:
            values = [
                int(value)
                for reading in found.read()
                if reading.role is Role.TOP
                and (value := reading.counters.get("read_bytes_total")) is not None
            ]
        finally:
            found.close()
        if values:
            total = (total or 0) + sum(values)
    return total
