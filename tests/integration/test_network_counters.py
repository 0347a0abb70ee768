"""What the bricks of GlusterFS and the client of MooseFS say of a known read."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ioprof import cachestate
from ioprof.record.filelist import list_of
from ioprof.record.reading import Layer, Reading, Unavailable
from ioprof.sources import gluster, moosefs
from ioprof.sources.aside import look
from ioprof.sources.mount import find_mount
from ioprof.sources.source import Found, Source, Target
from tests.integration import networkfs

FILES = 16
FILE_BYTES = 1_048_576
TRUE_BYTES = FILES * FILE_BYTES
LARGEST_READ_BYTES = 128 * 1024
NAMES = [f"file-{number:02d}.bin" for number in range(FILES)]

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts"),
]


def growth(source: Source, folder: Path) -> Callable[[str], float]:
    """What each counter of `source` grew by while all files were read, cold and then warm."""
    files = list_of(folder, NAMES)
    cachestate.evict(files)
    cachestate.warm(files)  # gluster lists no operation that was never called
    cachestate.evict(files)
    before = last(look(source))
    cachestate.warm(files)
    cachestate.warm(files)
    after = last(look(source))

    def grown(name: str) -> float:
        new, old = after.counters[name], before.counters[name]
        assert new is not None and old is not None
        return new - old

    return grown


def last(readings: Iterable[Reading]) -> Reading:
    return list(readings)[-1]


def fill(folder: Path) -> None:
    for name in NAMES:
        with (folder / name).open("wb") as file:
            file.write(os.urandom(FILE_BYTES))
            os.fsync(file.fileno())


def named(found: Iterable[Found], name: str) -> Source:
    for one in found:
        if isinstance(one, Unavailable):
            assert one.source != name, one.reason
        elif one.name == name:
            return one
    raise AssertionError(f"{name} was not found")


def target(folder: Path) -> Target:
    return Target(root_pid=os.getpid(), data_path=folder, mount=find_mount(folder))


def test_the_bricks_of_a_profiled_volume_sent_every_byte_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with networkfs.glusterfs(profiled=True) as mount:
        # ioprof asks the command on its PATH, and glusterd answers in its own namespaces alone.
        script = tmp_path / "gluster"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(mount.gluster)} "$@"\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        fill(mount.mountpoint)
        source = named(gluster.find(target(mount.mountpoint)), "gluster.volume")
        grown = growth(source, mount.mountpoint)
        source.close()
    assert grown("read_bytes_total") == TRUE_BYTES
    assert grown("read_operations_total") >= TRUE_BYTES / LARGEST_READ_BYTES
    assert grown("lookup_operations_total") <= grown("metadata_operations_total")


def test_moosefs_counts_the_reads_of_a_cold_file_and_none_of_a_warm_one() -> None:
    with networkfs.moosefs() as mount:
        fill(mount.mountpoint)
        source = named(moosefs.find(target(mount.mountpoint)), "moosefs.client")
        assert last(look(source)).layer is Layer.CLIENT
        grown = growth(source, mount.mountpoint)
        source.close()
    at_least = TRUE_BYTES / LARGEST_READ_BYTES
    assert at_least <= grown("read_operations_total") < 2 * at_least
    assert grown("open_operations_total") >= FILES
