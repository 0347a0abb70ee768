import msgspec
import pytest

from ioprof.analysis.reconciliation import reconcile
from ioprof.analysis.storage import uncalibrated
from ioprof.record.summary import Reconciliation
from tests.unit.analysis.records import rank, table
from tests.unit.analysis.runs import Cell, counted, observed, plan

STEPS = rank([0.2] * 12)
CONSUMED = 12 * 50 * 100_000  # 60 MB


def of(role="cold", *, ranks=(STEPS,), node=None, top=("vda",)) -> Reconciliation:
    cell = Cell(plan=plan(role), node=node or counted(ranks), ranks=tuple(ranks))
    found = reconcile(observed(cell), storage=uncalibrated(top))
    assert found is not None
    return found


def test_three_equal_counts_agree():
    found = of(node=counted(STEPS, block=1.0))
    assert found.consumed_bytes == found.requested_bytes == found.storage_read_bytes == CONSUMED
    assert found.requested_over_consumed == found.storage_over_consumed == 1.0
    assert found.agrees is True
    assert found.storage_scope == "device"
    assert found.why == "Consumed, requested and storage bytes agree within 5 %."
    assert found.reasons == {}


@pytest.mark.parametrize(("storage", "agrees"), [(1.04, True), (0.96, True), (1.06, False)])
def test_counts_agree_within_five_per_cent(storage, agrees):
    found = of(node=counted(STEPS, storage=storage))
    assert found.storage_over_consumed == pytest.approx(storage)
    assert found.agrees is agrees


def test_warm_up_and_drained_batches_are_in_the_count():
    # Their reads happened too: all 16 steps, whatever the window takes.
    steps = rank([0.2] * 16, prefetch=4, drain=4)
    assert of(ranks=(steps,)).consumed_bytes == 16 * 50 * 100_000


def test_samples_of_all_ranks_are_in_the_count():
    ranks = (rank([0.2] * 12, world=2), rank([0.2] * 12, number=1, world=2))
    found = of(ranks=ranks)
    assert found.consumed_bytes == 2 * CONSUMED
    assert found.agrees is True


def test_what_was_read_before_the_first_epoch_is_left_out():
    # 7 MB of start-up before 100 s, the samples' 60 MB after it.
    node = table(
        {("process.io", "tree"): {"requested_bytes_total": [0.0, 7e6, 7e6, 37e6, 67e6, 67e6]}},
        times=[98.0, 99.0, 100.0, 101.0, 103.0, 104.0],
    )
    found = of(node=node)
    assert found.requested_bytes == CONSUMED


def test_a_cold_cell_that_a_cache_served_says_how_much():
    # Storage delivered a quarter: 75 % less than was consumed.
    found = of(node=counted(STEPS, storage=0.25))
    assert found.agrees is False
    assert "75 % less" in found.why and "cache" in found.why


def test_a_warm_cell_is_not_blamed_for_reading_nothing_from_storage():
    found = of("warm", node=counted(STEPS, storage=0.0))
    assert found.agrees is True
    assert found.storage_over_consumed == 0.0
    assert "100 %" in found.why and "as asked for" in found.why


def test_a_warm_cell_that_requests_twice_what_it_consumes_does_not_agree():
    found = of("warm", node=counted(STEPS, requested=2.0, storage=0.0))
    assert found.agrees is False


def test_other_readers_of_the_device_are_told_from_readahead():
    # The device delivered 1.5 times, the processes' own block reads are 1.0 times.
    others = of(node=counted(STEPS, storage=1.5, block=1.0))
    assert others.agrees is False
    assert "1.50 times" in others.why and "others read" in others.why
    ahead = of(node=counted(STEPS, storage=1.5, block=1.5))
    assert "1.50 times" in ahead.why and "readahead" in ahead.why


def test_requests_beyond_the_samples_are_named():
    found = of(node=counted(STEPS, requested=1.2))
    assert found.agrees is False
    assert "1.20 times" in found.why


def test_readahead_does_not_make_requests_unknown_where_samples_are_counted():
    found = of(node=counted(STEPS, requested=1.0, storage=1.4, block=1.4))
    assert found.requested_bytes == CONSUMED


def test_mapped_reads_leave_the_request_unknown_with_its_reason():
    found = of(node=counted(STEPS, requested=0.01, storage=1.0, block=1.0))
    assert found.requested_bytes is None
    assert "mmap" in found.reasons["requested_bytes"]
    assert found.requested_over_consumed is None
    assert "requested_over_consumed" in found.reasons
    assert found.agrees is True  # consumed and storage do


def test_an_unknown_size_of_samples_is_not_zero():
    unknown = rank([0.2] * 12, sample_bytes=None)
    found = of(ranks=(unknown,), node=counted(STEPS))
    assert found.consumed_bytes is None
    assert found.requested_bytes == found.storage_read_bytes == CONSUMED
    assert found.agrees is None
    assert {"consumed_bytes", "agrees", "storage_over_consumed"} <= set(found.reasons)


def test_without_any_device_storage_is_missing_and_the_rest_is_compared():
    none = counted(STEPS, storage=None, unavailable={"block.diskstats": "nfs4 has no device"})
    found = of(node=none, top=())
    assert found.storage_read_bytes is None
    assert found.storage_scope is None
    assert found.reasons["storage_read_bytes"] == "nfs4 has no device"
    assert found.agrees is True


def test_there_is_nothing_to_reconcile_without_counters_marks_or_dataset():
    whole = Cell(plan=plan("cold"), node=counted(STEPS), ranks=(STEPS,))
    for broken in (
        msgspec.structs.replace(whole, node=None),
        msgspec.structs.replace(whole, ranks=()),
        msgspec.structs.replace(whole, plan=plan("synthetic")),
    ):
        assert reconcile(observed(broken), storage=uncalibrated(("vda",))) is None


def test_reads_of_other_programs_on_the_device_are_told_apart():
    # The device delivered twice what was consumed, the processes themselves 1.02 times.
    found = of(node=counted(STEPS, storage=2.0, block=1.02))
    assert found.others_read is True
    assert found.storage_read_bytes == 2 * CONSUMED
    assert found.own_storage_bytes == found.process_read_bytes == pytest.approx(1.02 * CONSUMED)
    assert found.agrees is False
    assert "others read from the device too" in found.why


def test_without_the_processes_own_count_nothing_is_said_of_others():
    found = of(node=counted(STEPS, storage=2.0, block=None))
    assert found.others_read is False
    assert found.own_storage_bytes == 2 * CONSUMED


def test_a_cached_cell_on_a_busy_device_was_not_served_by_it():
    # The device delivered as much as was consumed, and none of it to these processes.
    found = of("as-found", node=counted(STEPS, storage=1.0, block=0.0))
    assert found.others_read is True
    assert found.own_storage_bytes == 0
