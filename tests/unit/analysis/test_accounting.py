import pytest

from ioprof.analysis.accounting import Accounting, account
from ioprof.analysis.storage import uncalibrated
from ioprof.record.store import NodeRecord
from tests.unit.analysis.records import GONE, Column, table

MB = 1_000_000
IO = ("process.io", "tree")
BLOCK = ("process.block", "tree")
VDA = ("block.diskstats", "vda")
VDB = ("block.diskstats", "vdb")


def of(node: NodeRecord, *, top=("vda",), whole=True, consumed=None) -> Accounting:
    return account(
        node,
        start_s=1.0,
        end_s=3.0,
        storage=uncalibrated(top),
        whole=whole,
        consumed_bytes=consumed,
    )


def node(columns, **more) -> NodeRecord:
    """Looks at 0, 1, 2, 3 and 4 s."""
    return table(columns, times=[0.0, 1.0, 2.0, 3.0, 4.0], **more)


def asked(*values):
    return {"requested_bytes_total": [v * MB for v in values]}


def fetched(*values):
    return {"read_bytes_total": [v * MB for v in values]}


def delivered(*values, size=50_000, latency_s=0.002):
    """Reads of `size` bytes that take `latency_s` each."""
    reads = [v * MB / size for v in values]
    return {
        "read_bytes_total": [v * MB for v in values],
        "read_operations_total": reads,
        "read_time_seconds_total": [n * latency_s for n in reads],
    }


def test_a_cold_buffered_read_is_requested_once_and_delivered_once():
    # From 1 s to 3 s all three grow from 10 to 210 MB: 200 MB, in 4,000 reads, 8 s in all.
    found = of(
        node(
            {
                IO: asked(0, 10, 110, 210, 210),
                BLOCK: fetched(0, 10, 110, 210, 210),
                VDA: delivered(0, 10, 110, 210, 210),
            }
        )
    )
    assert found.requested_bytes == 200 * MB
    assert found.storage_read_bytes == 200 * MB
    assert found.storage_reads == 4000
    assert found.storage_read_time_s == pytest.approx(8.0)
    assert found.block_read_bytes == 200 * MB
    assert found.cache_served == 0.0
    assert found.storage_source == "block.diskstats vda (wire, whole device)"
    assert found.storage_scope == "device"
    assert found.why == "requested 200 MB, storage delivered 200 MB"
    assert found.reasons == {}


def test_a_warm_read_is_served_from_the_cache_and_says_so():
    found = of(
        node(
            {
                IO: asked(0, 0, 100, 200, 200),
                BLOCK: fetched(7, 7, 7, 7, 7),
                VDA: delivered(7, 7, 7, 7, 7),
            }
        )
    )
    assert found.requested_bytes == 200 * MB
    assert found.storage_read_bytes == 0
    assert found.cache_served == 1.0
    assert "cache-served" in found.why and "100 %" in found.why


def test_a_half_cached_read_is_told_as_a_share():
    # 80 of 200 MB from storage: 60 % from the cache.
    found = of(node({IO: asked(0, 0, 100, 200, 200), VDA: delivered(0, 0, 40, 80, 80)}))
    assert found.cache_served == pytest.approx(0.6)
    assert found.why.startswith("cache-served: storage delivered 80.0 MB of the 200 MB")


def test_mapped_pages_that_no_system_call_shows_make_the_request_unknown():
    # mmap: the block layer fetched 200 MB for the processes, system calls asked for 3.
    found = of(
        node(
            {
                IO: asked(0, 0, 1, 3, 3),
                BLOCK: fetched(0, 0, 100, 200, 200),
                VDA: delivered(0, 0, 100, 200, 200),
            }
        )
    )
    assert found.requested_bytes is None
    assert "mmap" in found.reasons["requested_bytes"]
    assert "3.00 MB" in found.reasons["requested_bytes"]
    assert found.cache_served is None
    assert "mmap" in found.reasons["cache_served"]
    assert found.storage_read_bytes == 200 * MB


def test_a_warm_mapped_read_is_found_out_by_what_was_consumed():
    # Nothing was fetched, so only the trainer knows that 200 MB were looked at.
    warm = node({IO: asked(0, 0, 1, 3, 3), BLOCK: fetched(0, 0, 0, 0, 0)})
    assert of(warm).requested_bytes == 3 * MB
    found = of(warm, consumed=200 * MB)
    assert found.requested_bytes is None
    assert "mmap" in found.reasons["requested_bytes"]


def test_readahead_beyond_the_request_is_not_taken_for_a_mapping():
    # 220 MB fetched for 200 requested: readahead. The trainer's count settles it.
    ahead = node({IO: asked(0, 0, 100, 200, 200), BLOCK: fetched(0, 0, 110, 220, 220)})
    assert of(ahead, consumed=200 * MB).requested_bytes == 200 * MB


def test_requests_may_fall_short_of_the_consumed_bytes_by_five_per_cent():
    short = node({IO: asked(0, 0, 100, 191, 191)})
    assert of(short, consumed=200 * MB).requested_bytes == 191 * MB
    assert of(short, consumed=202 * MB).requested_bytes is None  # 191 ÷ 202 = 0.946


def test_a_direct_read_counts_like_a_cold_one():
    # O_DIRECT: rchar, read_bytes and the device agree, rounded up to whole sectors.
    found = of(
        node(
            {
                IO: asked(0, 0, 64, 128, 128),
                BLOCK: fetched(0, 0, 64, 128, 128),
                VDA: delivered(0, 0, 64, 128, 128, size=1_000_000),
            }
        ),
        consumed=128 * MB,
    )
    assert found.requested_bytes == found.storage_read_bytes == 128 * MB
    assert found.storage_reads == 128
    assert found.cache_served == 0.0


def test_a_filesystem_without_a_device_has_no_storage_bytes_and_says_why():
    # FUSE: the processes' block reads stay at zero, and their requests are not storage's bytes.
    found = of(
        node(
            {IO: asked(0, 0, 100, 200, 200), BLOCK: fetched(0, 0, 0, 0, 0)},
            unavailable={"block.diskstats": "fuse.sshfs has no block device"},
        ),
        top=(),
    )
    assert found.requested_bytes == 200 * MB
    assert found.storage_read_bytes is None
    assert found.storage_source is None
    assert found.storage_scope is None
    assert found.cache_served is None
    for name in ("storage_read_bytes", "storage_reads", "storage_read_time_s", "cache_served"):
        assert found.reasons[name] == "fuse.sshfs has no block device"
    assert found.why == "requested 200 MB, storage delivered –"


def test_without_a_device_counter_the_process_trees_own_block_reads_are_taken():
    found = of(node({IO: asked(0, 0, 100, 200, 200), BLOCK: fetched(0, 0, 100, 200, 200)}), top=())
    assert found.storage_read_bytes == 200 * MB
    assert found.storage_source == "process.block (client, this process tree)"
    assert found.storage_scope == "process"
    assert found.storage_reads is None and found.reasons["storage_reads"]


def test_several_top_devices_are_summed():
    # btrfs on two devices: 120 + 80 MB, 2,400 + 1,600 reads.
    found = of(
        node({VDA: delivered(0, 0, 60, 120, 120), VDB: delivered(5, 5, 45, 85, 85)}),
        top=("vda", "vdb"),
    )
    assert found.storage_read_bytes == 200 * MB
    assert found.storage_reads == 4000
    assert found.storage_source == "block.diskstats vda + vdb (wire, whole device)"


def test_the_leaves_under_the_top_device_are_never_added_to_it():
    # The mount is on dm-0, which is striped over vda and vdb: the same bytes, seen twice.
    dm = ("block.diskstats", "dm-0")
    found = of(
        node(
            {
                dm: delivered(0, 0, 100, 200, 200),
                VDA: delivered(0, 0, 50, 100, 100),
                VDB: delivered(0, 0, 50, 100, 100),
            }
        ),
        top=("dm-0",),
    )
    assert found.storage_read_bytes == 200 * MB


def test_a_top_device_that_is_lost_leaves_no_sum_of_the_others():
    lost: dict[str, Column] = {name: [0.0, *[GONE] * 29] for name in delivered(0)}
    kept: dict[str, Column] = {name: [v * 1.0 for v in range(30)] for name in delivered(0)}
    record = table({VDA: kept, VDB: lost}, times=[float(i) for i in range(30)])
    found = account(record, start_s=0.0, end_s=29.0, storage=uncalibrated(("vda", "vdb")))
    assert found.storage_read_bytes is None
    assert found.reasons["storage_read_bytes"] == "vdb was not seen for the whole window"


def test_a_reset_device_counter_is_named_as_the_reason():
    found = of(node({IO: asked(0, 0, 100, 200, 200), VDA: delivered(900, 950, 20, 40, 40)}))
    assert found.storage_read_bytes is None
    assert "reset" in found.reasons["storage_read_bytes"]


def test_a_window_is_interpolated_and_a_whole_span_is_not():
    columns = {IO: asked(0, 0, 100, 200, 300)}
    halves = account(node(columns), start_s=1.5, end_s=2.5, storage=uncalibrated(()), whole=False)
    assert halves.requested_bytes == 100 * MB  # 50 at 1.5 s, 150 at 2.5 s
    around = account(node(columns), start_s=1.5, end_s=2.5, storage=uncalibrated(()), whole=True)
    assert around.requested_bytes == 200 * MB  # 1 s to 3 s


def test_nothing_requested_is_no_share_of_anything():
    found = of(node({IO: asked(5, 5, 5, 5, 5), VDA: delivered(5, 5, 5, 5, 5)}))
    assert found.requested_bytes == 0
    assert found.cache_served is None
    assert found.reasons["cache_served"] == "nothing was requested"
