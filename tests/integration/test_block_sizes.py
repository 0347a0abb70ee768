"""Read requests of a loop device, counted by size by the kernel and by diskstats."""

from __future__ import annotations

import mmap
import os
import shutil
from pathlib import Path

import pytest

from ioprof.record.reading import Reading, Unavailable
from ioprof.record.sizes import bucket
from ioprof.sources import block, blocksizes
from ioprof.sources.aside import look
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import find_mount
from ioprof.sources.source import Target
from tests.integration.loopfs import loop_filesystem
from tests.integration.tracing import tracefs

MIB = 1 << 20

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices, tracepoints"),
    pytest.mark.skipif(shutil.which("bpftrace") is None, reason="bpftrace is not installed"),
]


def read_direct(path: Path, *, size: int, count: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, size) as buffer:
        for number in range(count):
            assert os.preadv(descriptor, (buffer,), number * size) == size
    os.close(descriptor)


def known(reading: Reading) -> dict[str, float]:
    return {name: value for name, value in reading.counters.items() if value is not None}


def test_direct_reads_of_known_sizes_are_counted_each_in_its_bucket():
    """96 reads of 128 KiB and 40 of 4 KiB; what the filesystem reads beside them is seen in
    diskstats too, so both must agree on the number of reads."""
    with tracefs(), loop_filesystem("xfs", 320 * MIB) as made:
        path = made.mountpoint / "file"
        path.write_bytes(os.urandom(16 * MIB))
        os.sync()
        mount = find_mount(path)
        target = Target(root_pid=os.getpid(), mount=mount, stack=find_stack(mount, path=path))
        (sized,) = blocksizes.find(target)
        (counted,) = block.find(target)
        if isinstance(sized, Unavailable):
            pytest.skip(sized.reason)
        assert not isinstance(counted, Unavailable)

        def both() -> tuple[dict[str, float], float]:
            """Reads by size, and all that the device's own counter knows."""
            *_, sizes = look(sized)
            top = next(r for r in look(counted) if r.instance == sizes.instance)
            return known(sizes), known(top)["read_operations_total"]

        sizes_before, reads_before = both()
        read_direct(path, size=128 << 10, count=96)
        read_direct(path, size=4 << 10, count=40)
        sizes_after, reads_after = both()
        sized.close()
        counted.close()
    grown = {name: sizes_after[name] - sizes_before[name] for name in sizes_after}
    assert grown[bucket(128 << 10)] == 96
    assert grown[bucket(4 << 10)] >= 40
    assert sum(grown.values()) == reads_after - reads_before
