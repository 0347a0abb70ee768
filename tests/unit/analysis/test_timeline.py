import pytest

from ioprof.analysis.timeline import Timeline, timeline
from tests.unit.analysis.records import GONE, START_S, Column, rank, table
from tests.unit.analysis.runs import Cell, counted, outcome, plan, write_run

COLD = plan("cold")
# 20 steps of 0.4 s: 0.2 s of waiting, then 0.2 s of work; 50 samples of 100 kB each: 12.5 MB/s.
STEPS = rank([0.4] * 20, wait_s=0.2)


def of(tmp_path, *, ranks=(STEPS,), node=None, **changes) -> Timeline:
    cell = Cell(
        plan=COLD, outcome=outcome(COLD.id), node=node or counted(ranks), ranks=tuple(ranks)
    )
    found = timeline(write_run(tmp_path / "run", [cell], **changes), COLD.id)
    assert found is not None
    return found


def read(*values: float | str | None) -> dict[str, Column]:
    return {"read_bytes_total": values, "read_operations_total": values}


def test_a_bin_is_two_looks_long_and_told_by_its_middle(tmp_path):
    found = of(tmp_path)
    assert found.bin_s == pytest.approx(0.2)
    assert len(found.t_s) == 40  # 20 × 0.4 ÷ 0.2
    assert found.t_s[:2] == pytest.approx([0.1, 0.3])
    assert {len(found.read_bytes_per_s), len(found.data_wait), len(found.accelerator_busy)} == {40}


def test_a_long_cell_has_at_most_400_bins(tmp_path):
    steps = rank([1.0] * 1000)
    found = of(tmp_path, ranks=(steps,), node=counted(steps, interval_s=1.0))
    assert len(found.t_s) == 400
    assert found.bin_s == pytest.approx(2.5)


def test_a_bin_of_many_looks_keeps_the_lowest_and_highest_of_them(tmp_path):
    # 200 s in 400 bins of 0.5 s, each of two parts: 1 MB in the first, nothing in the second.
    steps = rank([1.0] * 200)
    times = [START_S + 0.25 * look for look in range(-8, 812)]
    grown = [1e6 * ((look + 1) // 2) for look in range(-8, 812)]
    node = table({("block.diskstats", "vda"): read(*grown)}, times=times, interval_s=0.1)
    found = of(tmp_path, ranks=(steps,), node=node)
    assert found.bin_s == pytest.approx(0.5)
    assert found.envelope_s == pytest.approx(0.25)
    assert found.read_bytes_per_s == pytest.approx([2e6] * 400)
    assert found.read_bytes_envelope is not None
    low, high = found.read_bytes_envelope
    assert low == pytest.approx([0.0] * 400)
    assert high == pytest.approx([4e6] * 400)


def test_a_bin_of_two_looks_has_no_envelope(tmp_path):
    found = of(tmp_path)
    assert found.envelope_s is None and found.read_bytes_envelope is None


def test_storage_is_told_as_a_rate(tmp_path):
    found = of(tmp_path)
    assert found.read_bytes_per_s == pytest.approx([12.5e6] * 40)
    assert found.reads_per_s == pytest.approx([250.0] * 40)  # reads of 50 kB
    assert found.read_source == "block.diskstats vda (wire, whole device)"


def test_waiting_and_working_take_turns_by_the_step_marks(tmp_path):
    found = of(tmp_path)
    assert found.accelerator_busy_source == "step marks"
    assert found.data_wait == pytest.approx([1.0, 0.0] * 20, abs=1e-6)
    assert found.accelerator_busy == pytest.approx([0.0, 1.0] * 20, abs=1e-6)


def test_a_share_is_that_of_all_ranks(tmp_path):
    # The second rank never waits: half of them do, in every other bin.
    ranks = (STEPS, rank([0.4] * 20, number=1, world=2))
    assert of(tmp_path, ranks=ranks).data_wait == pytest.approx([0.5, 0.0] * 20, abs=1e-6)


def test_the_window_and_the_epochs_lie_on_the_same_axis(tmp_path):
    # Two epochs of 4.0 s, a pause of 3 s; the first step is warm-up.
    steps = rank([0.4] * 20, epochs=[10, 10], pause_s=3.0)
    found = of(tmp_path, ranks=(steps,))
    assert found.window == pytest.approx((0.4, 11.0))
    assert found.epochs[0] == pytest.approx((0.0, 4.0))
    assert found.epochs[1] == pytest.approx((7.0, 11.0))


def test_a_gpu_is_told_by_its_own_counter(tmp_path):
    looks = [99.0, 104.0, 109.0]
    gpus: dict[tuple[str, str], dict[str, Column]] = {
        ("nvml", "0"): {"gpu_kernel_busy": [0.7] * 3},
    }
    found = of(tmp_path, node=table({}, gauges=gpus, times=looks))
    assert found.accelerator_busy_source == "NVML"
    assert found.accelerator_busy == pytest.approx([0.7] * len(found.t_s))


def test_several_top_devices_are_summed_and_a_lost_one_leaves_a_gap(tmp_path):
    # vda 10 B/s all along; vdb 20 B/s until 104 s, then it is gone. Bins of 2 s.
    vda, vdb = ("block.diskstats", "vda"), ("block.diskstats", "vdb")
    node = table(
        {
            vda: read(*[10.0 * i for i in range(10)]),
            vdb: read(*[20.0 * i for i in range(6)], *[GONE] * 4),
        },
        times=[99.0 + i for i in range(10)],
    )
    found = of(tmp_path, node=node, top_devices=("vda", "vdb"))
    assert found.bin_s == pytest.approx(2.0)
    assert found.read_bytes_per_s == [pytest.approx(30.0), pytest.approx(30.0), None, None]


def test_a_top_device_that_was_never_seen_leaves_no_sum_of_the_others(tmp_path):
    found = of(tmp_path, top_devices=("vda", "vdb"))
    assert set(found.read_bytes_per_s) == {None}


def test_a_reset_counter_is_a_gap_and_not_a_negative_rate(tmp_path):
    # Looks every second from 99 s; between 103 s and 104 s it falls. Bins of 2 s from 100 s.
    values = [100.0, 200.0, 300.0, 400.0, 500.0, 10.0, 110.0, 210.0, 310.0, 410.0]
    node = table({("block.diskstats", "vda"): read(*values)}, times=[99.0 + i for i in range(10)])
    found = of(tmp_path, node=node).read_bytes_per_s
    assert found == [pytest.approx(100.0), None, pytest.approx(100.0), pytest.approx(100.0)]


def test_a_mount_without_a_device_has_no_rate_and_no_source(tmp_path):
    found = of(tmp_path, top_devices=())
    assert set(found.read_bytes_per_s) == {None}
    assert found.read_source is None


def test_a_cell_that_left_too_little_has_no_timeline(tmp_path):
    whole = Cell(plan=COLD, outcome=outcome(COLD.id), node=counted(STEPS), ranks=(STEPS,))
    no_steps = Cell(plan=plan("warm"), outcome=outcome(plan("warm").id), node=whole.node)
    not_run = Cell(plan=plan("prep"))
    run = write_run(tmp_path / "run", [whole, no_steps, not_run])
    for cell_id in (no_steps.plan.id, not_run.plan.id, "no-such-cell"):
        assert timeline(run, cell_id) is None
