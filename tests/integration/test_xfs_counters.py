"""A real xfs on a loop device: what it says of reads through system calls and through mmap."""

import mmap
import os

import pytest

from ioprof.record.reading import Unavailable
from ioprof.sources.mount import find_mount
from ioprof.sources.source import Target
from ioprof.sources.xfs import find
from tests.integration.loopfs import loop_filesystem

MIB = 2**20
FILE_BYTES = 16 * MIB
pytestmark = pytest.mark.root


def test_read_calls_are_counted_to_the_byte_cached_or_not_and_mapped_reads_are_not():
    with loop_filesystem("xfs", 320 * MIB, direct_io=True) as loop:
        path = loop.mountpoint / "file"
        path.write_bytes(os.urandom(FILE_BYTES))
        (source,) = find(Target(root_pid=os.getpid(), mount=find_mount(loop.mountpoint)))
        assert not isinstance(source, Unavailable)

        def counted():
            (reading,) = source.read()
            return reading.counters["requested_bytes_total"], reading.counters["read_calls_total"]

        start = counted()
        with path.open("rb", buffering=0) as file:
            while file.read(MIB):
                pass
        cached = counted()
        with path.open() as text, mmap.mmap(text.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            assert len(bytes(mapped)) == FILE_BYTES
        mapped_too = counted()
        assert cached[0] - start[0] == FILE_BYTES
        assert cached[1] - start[1] == 16 + 1  # the last finds the end
        assert mapped_too == cached
    assert list(source.read()) == []  # unmounted
    source.close()
