"""The cgroup of this very process, on a loop device that nobody else reads."""

import contextlib
import os

import pytest

from ioprof.record.reading import Unavailable
from ioprof.sources.blockstack import find_stack
from ioprof.sources.cgroup import find
from ioprof.sources.mount import find_mount
from ioprof.sources.source import Target
from tests.integration.loopfs import loop_filesystem
from tests.integration.throttle import device_of, throttled_group, unavailable

MIB = 2**20
FILE_BYTES = 16 * MIB
ONE_READAHEAD_WINDOW = 4 * MIB
pytestmark = pytest.mark.root


def bytes_read(reading):
    return reading.counters["read_bytes_total"]


@contextlib.contextmanager
def counted(path):
    """Version 1 counts a device's I/O only once some group has a limit on it: one never reached."""
    if unavailable() is None:
        with throttled_group(device_of(path), read_bytes_per_s=10**12):
            yield
    else:
        yield


def test_what_this_group_read_from_the_device_is_counted_once():
    with (
        loop_filesystem("ext4", 64 * MIB, direct_io=True) as loop,
        counted(loop.mountpoint),
    ):
        path = loop.mountpoint / "file"
        path.write_bytes(os.urandom(FILE_BYTES))
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        mount = find_mount(loop.mountpoint)
        target = Target(root_pid=os.getpid(), mount=mount, stack=find_stack(mount))
        source = find(target)[0]
        if isinstance(source, Unavailable):
            pytest.skip(source.reason)
        before = [bytes_read(reading) for reading in source.read()]
        while os.read(fd, MIB):
            pass
        os.close(fd)
        (after,) = source.read()
        source.close()
    (start,) = before or (0,)
    grown = bytes_read(after) - start
    assert FILE_BYTES <= grown <= FILE_BYTES + ONE_READAHEAD_WINDOW
