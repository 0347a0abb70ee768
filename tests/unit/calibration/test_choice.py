"""Which counter is believed, by what each saw of a known amount."""

import pytest

from ioprof.calibration.choice import choose
from ioprof.record.headline import Candidate, Trial
from ioprof.record.reading import Layer, Scope

MB = 1_000_000


def trial(access, *, read_bytes=32 * MB, page_bytes=32 * MB, reason=None):
    return Trial(
        access=access, read_bytes=read_bytes, page_bytes=page_bytes, seconds=0.1, reason=reason
    )


TRIALS = [trial("read"), trial("warm"), trial("mmap"), trial("direct")]


def counter(source, layer, scope, read, warm=0.0, mmap=None, direct=None, note=None):
    return Candidate(
        source=source,
        instances=("/mnt/a",),
        layer=layer,
        scope=scope,
        counter="read_bytes_total",
        ratios={"read": read, "warm": warm, "mmap": mmap, "direct": direct},
        note=note,
    )


APP = counter("process.io", Layer.APP, Scope.PROCESS, 1.0, warm=1.0, mmap=0.0)
DISK = counter("block.diskstats", Layer.WIRE, Scope.DEVICE, 1.02, mmap=1.02, direct=1.0)
TREE = counter("process.block", Layer.CLIENT, Scope.PROCESS, 1.0, mmap=1.0)


def names(found):
    return tuple(c.source if c else None for c in (found.headline, found.runner_up))


def test_of_a_local_disk_the_device_is_believed_and_the_block_layers_account_comes_next():
    found = choose([APP, TREE, DISK], trials=TRIALS, access="read")
    assert names(found) == ("block.diskstats", "process.block")
    assert found.why == (
        "block.diskstats /mnt/a (wire, whole device) saw 102 % of the 32.0 MB read by read()"
    )
    assert found.blind_spots == ("It includes whatever else reads from the same device or volume.",)


def test_the_wire_goes_before_the_client_even_when_the_client_is_nearer_to_one():
    wire = counter("nfs.wire", Layer.WIRE, Scope.MOUNT, 1.06)
    client = counter("gpfs", Layer.CLIENT, Scope.MOUNT, 1.0)
    assert names(choose([client, wire], trials=TRIALS, access="read")) == ("nfs.wire", "gpfs")


def test_of_one_layer_the_narrower_scope_goes_first_then_the_ratio_nearest_to_one():
    port = counter("infiniband", Layer.LINK, Scope.HOST, 1.03)
    other = counter("net", Layer.LINK, Scope.HOST, 1.08)
    mount = counter("fuse.requests", Layer.CLIENT, Scope.MOUNT, 1.09)
    tree = counter("process.block", Layer.CLIENT, Scope.PROCESS, 1.1)
    assert names(choose([other, port, APP], trials=TRIALS, access="read")) == ("infiniband", "net")
    assert names(choose([mount, tree], trials=TRIALS, access="read")) == (
        "process.block",
        "fuse.requests",
    )


@pytest.mark.parametrize("ratio", [0.94, 0.0, None, 1.11, 3.0])
def test_a_counter_that_did_not_see_what_was_read_is_not_believed(ratio):
    link = counter("net", Layer.LINK, Scope.HOST, ratio)
    found = choose([link, APP], trials=TRIALS, access="read")
    assert names(found) == (None, "process.io")
    assert found.why == (
        "no counter below the process saw the 32.0 MB read by read(); only "
        "process.io /mnt/a (app, this process tree) did"
    )


def test_what_the_process_asked_for_is_never_taken_for_what_storage_delivered():
    assert choose([APP], trials=TRIALS, access="read").headline is None


def test_a_counter_that_moves_while_the_page_cache_serves_counts_hits_and_is_passed_over():
    """Lustre's llite counts what read() returned, from the cache or not."""
    hits = counter("gpfs", Layer.CLIENT, Scope.MOUNT, 1.0, warm=1.0)
    wire = counter("infiniband", Layer.LINK, Scope.HOST, 1.04)
    assert names(choose([hits, wire], trials=TRIALS, access="read"))[0] == "infiniband"


def test_small_files_may_cost_whole_pages():
    """1,000 files of 2,048 bytes are delivered as 1,000 pages of 4,096: twice their bytes."""
    trials = [trial("read", read_bytes=2_048_000, page_bytes=4_096_000), *TRIALS[1:]]
    disk = counter("block.diskstats", Layer.WIRE, Scope.DEVICE, 2.0)
    assert names(choose([disk, APP], trials=trials, access="read"))[0] == "block.diskstats"
    assert choose([disk, APP], trials=TRIALS, access="read").why.endswith(
        "it is the mount's own, and compression, a cache below it or larger blocks make the "
        "difference"
    )


def test_a_device_of_compressed_files_is_believed_and_the_share_is_said():
    disk = counter("block.diskstats", Layer.WIRE, Scope.DEVICE, 0.4)
    found = choose([disk, APP], trials=TRIALS, access="read")
    assert names(found) == ("block.diskstats", "process.io")
    assert "saw 40 % of the 32.0 MB" in found.why


def test_a_device_at_rest_is_not_believed():
    """A buffered loop device whose file is cached below delivers nothing."""
    disk = counter("block.diskstats", Layer.WIRE, Scope.DEVICE, 0.01)
    assert choose([disk, APP], trials=TRIALS, access="read").headline is None


def test_for_mapped_reading_the_counter_must_see_mapped_reads():
    asked = counter("nfs.app", Layer.CLIENT, Scope.MOUNT, 1.0, mmap=0.0)
    wire = counter("infiniband", Layer.LINK, Scope.HOST, 1.05, mmap=1.05)
    assert names(choose([asked, wire], trials=TRIALS, access="mmap"))[0] == "infiniband"


def test_what_the_headline_cannot_see_is_said():
    wire = counter(
        "x.wire", Layer.WIRE, Scope.MOUNT, 1.0, mmap=0.1, direct=0.0, note="two mounts share it"
    )
    assert choose([wire], trials=TRIALS, access="read").blind_spots == (
        "It includes whatever other programs of this node read from the mount.",
        "It does not see mapped files (mmap).",
        "It does not see direct I/O (O_DIRECT).",
        "Two mounts share it.",
    )


def test_when_nothing_could_be_read_that_way_it_says_why():
    trials = [*TRIALS[:2], trial("mmap", read_bytes=0, page_bytes=0, reason="mmap: No such device")]
    unread = counter("block.diskstats", Layer.WIRE, Scope.DEVICE, 1.0)
    found = choose([unread], trials=trials, access="mmap")
    assert found.headline is None
    assert found.why == "no known amount could be read: mmap: No such device"
