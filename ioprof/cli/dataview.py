"""A look at the data path by a child process, so that a dead mount cannot hang `doctor`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice, takewhile
from pathlib import Path

import msgspec

from ioprof.cli.examination import Check, residency_check
from ioprof.clock import MonotonicClock
from ioprof.errors import MeasureError
from ioprof.record.dataset import Mount
from ioprof.record.study import Residency
from ioprof.sources.mount import find_mount, parse_mountinfo
from ioprof.sources.program import abandon
from ioprof.sources.source import BlockStack, Roots

DEADLINE_S = 5.0
_LOOKED_AT = 400
_WALK_S = 2.0
_CHILD = (sys.executable, "-c", "from ioprof.cli.dataview import child; child()")


class DataView(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of a data path. `mount` and `stack` are None where it did not answer."""

    checks: tuple[Check, ...]
    mount: Mount | None = None
    stack: BlockStack | None = None
    files: tuple[bytes, ...] = ()
    """Some files below it that hold something: to try the counters on."""

    @property
    def paths(self) -> list[Path]:
        """The files as paths."""
        return [Path(os.fsdecode(file)) for file in self.files]

    @property
    def usable(self) -> bool:
        """Whether the path answers and is a folder."""
        return self.stack is not None


def look(path: Path, *, deadline_s: float = DEADLINE_S, roots: Roots = Roots()) -> DataView:
    """Look at `path` within `deadline_s`; what does not answer by then is "not responding"."""
    process = subprocess.Popen(
        [*_CHILD, os.fspath(path.absolute())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        answer, _ = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        abandon(process)
        return DataView(checks=(_unresponsive(path, deadline_s, roots),))
    try:
        return msgspec.json.decode(answer, type=DataView)
    except msgspec.DecodeError:
        says = f"the look at {shown(path)} failed with status {process.returncode}"
        return DataView(checks=(_check("path", says, "look at it with: ls, stat, df"),))


def shown(path: Path) -> str:
    """A path as text that can be printed and put into JSON, whatever bytes it holds."""
    return os.fsencode(path).decode(errors="replace")


def child() -> None:
    """Look at the path in the first argument and write the view to stdout."""
    view = _examine(Path(sys.argv[1]))
    sys.stdout.buffer.write(msgspec.json.encode(view))


def _examine(path: Path) -> DataView:
    from ioprof.sources.blockstack import find_stack

    clock = MonotonicClock()
    try:
        with os.scandir(path) as entries:
            next(entries, None)
        mount = find_mount(path)
        stack = find_stack(mount, path=path)
    except OSError as error:
        says = f"{shown(path)}: {error.strerror}"
        return DataView(checks=(_check("path", says, "give --data a folder that can be listed"),))
    except MeasureError as error:
        return DataView(checks=(_check("mount", str(error), None),))
    # A slow mount with many empty folders answers all the same: what was found by then will do.
    until_s = clock.now_s() + _WALK_S
    found = list(takewhile(lambda _: clock.now_s() < until_s, islice(_files(path), _LOOKED_AT)))
    return DataView(
        checks=(
            Check(area="data", name="path", state="yes", says=f"{shown(path)} answers"),
            Check(area="data", name="mount", state="yes", says=_mount_words(mount)),
            _stack_check(stack),
            _residency(path, found),
        ),
        mount=mount,
        stack=stack,
        files=tuple(os.fsencode(file) for file, _ in found),
    )


def _stack_check(stack: BlockStack) -> Check:
    if not stack.devices:
        says = stack.reason or "none"
        return Check(area="data", name="block devices", state="note", says=says)
    chain = ", ".join(f"{device.name} ({device.role})" for device in stack.devices)
    says = "; ".join([chain, *stack.notes])
    return Check(area="data", name="block devices", state="yes", says=says)


def _residency(path: Path, found: list[tuple[Path, int]]) -> Check:
    from ioprof.cachestate import observe
    from ioprof.record.filelist import FileList

    if not found:
        return residency_check(Residency(resident_fraction=None, reason="there is no file to ask"))
    files = FileList.of(
        path,
        paths=[os.fsencode(file.relative_to(path)) for file, _ in found],
        stored_bytes=[size_bytes for _, size_bytes in found],
        labels=[0] * len(found),
        classes=(b"",),
    )
    return residency_check(observe(files))


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Regular files below `folder` that hold something, with their sizes."""
    folders: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.is_file(follow_symlinks=False) and (size := entry.stat().st_size):
                yield Path(entry.path), size
    for inner in folders:
        yield from _files(Path(inner))


def _unresponsive(path: Path, deadline_s: float, roots: Roots) -> Check:
    says = f"not responding: {shown(path)} gave no answer within {deadline_s:.0f} s"
    with contextlib.suppress(OSError):
        mounts = parse_mountinfo((roots.proc / "self/mountinfo").read_text(errors="replace"))
        # By name alone: anything else would touch it.
        above = [mount for mount in mounts if path.absolute().is_relative_to(mount.path)]
        if above:
            says += f"; it is on {_mount_words(max(above, key=lambda m: len(m.path)))}"
    return _check("path", says, "check the server and the network of that mount")


def _mount_words(mount: Mount) -> str:
    return f"{mount.filesystem} {mount.source} on {mount.path}"


def _check(name: str, says: str, remedy: str | None) -> Check:
    return Check(area="data", name=name, state="no", says=says, remedy=remedy)
