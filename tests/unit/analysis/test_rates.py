import msgspec
import pytest

from ioprof.analysis.rates import Rates, rates
from ioprof.analysis.reconciliation import reconcile
from ioprof.analysis.storage import uncalibrated
from tests.unit.analysis.records import GONE, Column, rank, table
from tests.unit.analysis.runs import Cell, counted, observed, plan

# 40 steps of 0.5 s: 50 samples of 100 kB each, that is 10 MB/s. The window begins at 100.5 s.
STEPS = rank([0.5] * 40)


def of(*, ranks=(STEPS,), node=None, role="cold", top=("vda",)) -> Rates:
    cell = Cell(plan=plan(role), node=node or counted(ranks), ranks=tuple(ranks))
    seen = observed(cell)
    return rates(
        seen, storage=uncalibrated(top), reconciliation=reconcile(seen, storage=uncalibrated(top))
    )


def test_bandwidths_are_bytes_per_second_of_stepping_time():
    found = of(node=counted(STEPS, requested=1.1, storage=1.2))
    assert found.consumed_bytes_per_s == pytest.approx(10e6)
    assert found.requested_bytes_per_s == pytest.approx(11e6)
    assert found.storage_read_bytes_per_s == pytest.approx(12e6)
    assert found.storage_read_source == "block.diskstats vda (wire, whole device)"


def test_reads_have_a_rate_a_size_and_a_latency():
    # 10 MB/s in reads of 50 kB and 2 ms.
    found = of()
    assert found.reads_per_s == pytest.approx(200.0)
    assert found.read_request_bytes == pytest.approx(50_000)
    assert found.read_latency_s == pytest.approx(0.002)


def test_a_pause_between_epochs_does_not_dilute_a_bandwidth():
    # Two epochs of 20 steps with 10 s of eviction between: 4 MB/s of calendar, 10 of stepping.
    paused = rank([0.5] * 40, epochs=[20, 20], pause_s=10.0)
    read = [0.0, 0.0, 100e6, 100e6, 200e6, 200e6]
    node = table(
        {("block.diskstats", "vda"): {"read_bytes_total": read}},
        times=[99.0, 100.0, 110.0, 120.0, 130.0, 131.0],
    )
    found = of(ranks=(paused,), node=node)
    # From 100.5 s on: 195 MB in 39 steps of 0.5 s.
    assert found.storage_read_bytes_per_s == pytest.approx(195e6 / 19.5)
    assert found.consumed_bytes_per_s == pytest.approx(10e6)
    assert found.peak_storage_read_bytes_per_s is None
    assert "pauses" in found.reasons["peak_storage_read_bytes_per_s"]


def test_the_peak_is_that_of_whole_seconds():
    # 20 MB in every tenth second, 10 MB in all others: the 99th percentile of 19 lies near 20.
    read, looks = [0.0], [99.5]
    for second in range(22):
        read.append(read[-1] + (20e6 if second % 10 == 3 else 10e6))
        looks.append(looks[-1] + 1.0)
    found = of(node=table({("block.diskstats", "vda"): {"read_bytes_total": read}}, times=looks))
    assert found.peak_storage_read_bytes_per_s == pytest.approx(20e6)


def test_ten_seconds_are_too_few_for_a_peak():
    short = rank([0.5] * 20)
    found = of(ranks=(short,), node=counted(short))
    assert found.peak_storage_read_bytes_per_s is None
    assert found.reasons["peak_storage_read_bytes_per_s"]


def test_a_device_that_is_lost_takes_the_peak_with_it():
    # It is last seen at 110 s of 120; what it delivered afterwards nobody counted.
    read: list[float | str | None] = [i * 10e6 for i in range(12)]
    columns: dict[str, Column] = {"read_bytes_total": [*read, *[GONE] * 15]}
    looks = [99.0 + i for i in range(27)]
    found = of(
        ranks=(rank([0.5] * 50),), node=table({("block.diskstats", "vda"): columns}, times=looks)
    )
    assert found.storage_read_bytes_per_s is None
    assert found.peak_storage_read_bytes_per_s is None


def test_the_host_is_told_as_shares_from_zero_to_one():
    found = of(node=counted(STEPS, cpu_busy=0.7))
    assert found.cpu_busy == pytest.approx(0.7)
    assert found.io_pressure == pytest.approx(0.25)


def test_which_of_more_gpus_than_ranks_were_used_is_not_known():
    gpus = {("nvml", n): {"gpu_kernel_busy": [0.0, 0.2, 0.4]} for n in ("0", "1")}
    found = of(node=table({}, gauges=gpus, times=[100.0, 105.0, 110.0]))
    assert found.gpu_kernel_busy is None
    assert "2 GPUs are visible and 1 were used" in found.reasons["gpu_kernel_busy"]


def test_a_gpu_is_averaged_over_the_looks_in_the_window():
    # Looks at 100 s (before the window), 105 s and 110 s: (0.6 + 1.0) ÷ 2.
    node = table(
        {},
        gauges={
            ("nvml", "0"): {"gpu_kernel_busy": [0.0, 0.6, 1.0]},
        },
        times=[100.0, 105.0, 110.0],
    )
    assert of(node=node).gpu_kernel_busy == pytest.approx(0.8)


def test_a_host_without_gpus_says_so_instead_of_zero():
    found = of()
    assert found.gpu_kernel_busy is None
    assert found.reasons["gpu_kernel_busy"] == "no NVIDIA driver is loaded here"


def test_no_read_has_no_size_and_no_latency():
    found = of(role="warm", node=counted(STEPS, storage=0.0))
    assert found.storage_read_bytes_per_s == 0.0
    assert found.reads_per_s == 0.0
    assert found.read_request_bytes is None and found.read_latency_s is None
    assert found.reasons["read_latency_s"] == "no read reached storage in the window"


def test_readahead_does_not_hide_what_was_requested():
    # 1.4 times the request was fetched ahead; the whole cell shows that requests cover all.
    found = of(node=counted(STEPS, storage=1.4, block=1.4))
    assert found.requested_bytes_per_s == pytest.approx(10e6)


def test_mapped_reads_have_no_requested_bandwidth():
    found = of(node=counted(STEPS, requested=0.01, block=1.0))
    assert found.requested_bytes_per_s is None
    assert "mmap" in found.reasons["requested_bytes_per_s"]


@pytest.mark.parametrize("missing", ["ranks", "node"])
def test_without_steps_or_counters_all_is_missing_with_a_reason(missing):
    whole = Cell(plan=plan("cold"), node=counted(STEPS), ranks=(STEPS,))
    broken = msgspec.structs.replace(whole, **{missing: () if missing == "ranks" else None})
    found = rates(observed(broken), storage=uncalibrated(("vda",)), reconciliation=None)
    for name in Rates.__struct_fields__:
        if name != "reasons":
            assert getattr(found, name) is None
            assert found.reasons[name]


def test_whatever_is_missing_has_its_reason():
    bare = table(
        {("block.diskstats", "vda"): {"read_bytes_total": [0.0, 1e6]}}, times=[90.0, 130.0]
    )
    found = of(node=bare)
    for name in Rates.__struct_fields__:
        if name != "reasons" and getattr(found, name) is None:
            assert found.reasons[name], name


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("read_operations_total", {"reads_per_s", "read_request_bytes", "read_latency_s"}),
        ("read_time_seconds_total", {"read_latency_s"}),
        ("read_bytes_total", {"storage_read_bytes_per_s", "read_request_bytes", "read_latency_s"}),
    ],
)
def test_one_reset_counter_takes_along_what_is_made_of_it_and_says_so(name, missing):
    columns: dict[str, Column] = {
        "read_bytes_total": [0.0, 1e8, 2e8],
        "read_operations_total": [0.0, 2000.0, 4000.0],
        "read_time_seconds_total": [0.0, 4.0, 8.0],
    }
    columns[name] = [columns[name][1], columns[name][0], columns[name][2]]
    looks = [100.0, 110.0, 120.0]
    found = of(node=table({("block.diskstats", "vda"): columns}, times=looks))
    for field in missing:
        assert getattr(found, field) is None
        assert "reset" in found.reasons[field]
