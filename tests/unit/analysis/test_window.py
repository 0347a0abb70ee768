import pytest

from ioprof.analysis.estimate import estimate
from ioprof.analysis.window import Stepping, stepping
from tests.unit.analysis.records import rank


def of(*ranks) -> Stepping:
    found = stepping(tuple(ranks))
    assert found is not None
    return found


def test_bursty_steps_are_averaged_before_their_median_is_taken():
    # 45 steps: 5 of warm-up, then 40 in bursts of 0.02 and 0.78 s. Blocks of 4 hold two of each:
    # (2·0.02 + 2·0.78) ÷ 4 = 0.40 s. The median of single steps would be 0.02, 0.78 or between.
    found = of(rank([1.0] * 5 + [0.02, 0.78] * 20, prefetch=4))
    assert found.window.block_steps == 4
    assert found.blocks.step_s == pytest.approx([0.40] * 10)
    # 4 × 50 samples in 1.6 s.
    assert found.blocks.samples_per_s == pytest.approx([125.0] * 10)


def test_one_more_than_the_prefetched_batches_is_warm_up():
    found = of(rank([9.0] * 3 + [0.1] * 20, prefetch=2))
    assert (found.window.warmup_steps, found.window.first_step, found.window.last_step) == (
        3,
        3,
        22,
    )
    assert found.window.steps == 20
    assert found.window.start_s == pytest.approx(127.0)  # 100 + 3 × 9
    assert found.window.seconds == pytest.approx(2.0)  # 20 × 0.1
    assert max(found.blocks.step_s) == pytest.approx(0.1)


def test_warm_up_takes_at_most_a_third_of_the_steps():
    # 9 steps and 8 batches prefetched: 9 would leave nothing, so 3 are left out.
    found = of(rank([0.1] * 9, prefetch=8))
    assert (found.window.warmup_steps, found.window.steps) == (3, 6)


def test_blocks_are_made_shorter_rather_than_fewer_than_five():
    # 13 steps, 4 of warm-up at most: prefetch 8 → 9 wanted, 13 // 3 = 4 taken, 9 left: 9 // 5 = 1.
    found = of(rank([0.1] * 13, prefetch=8))
    assert (found.window.steps, found.window.block_steps) == (9, 1)
    assert len(found.blocks.step_s) == 9


def test_pauses_between_epochs_are_not_in_the_seconds_of_the_window():
    # Three epochs of 5 steps of 0.2 s, 7 s of eviction between; the first step is warm-up.
    found = of(rank([0.2] * 15, epochs=[5, 5, 5], pause_s=7.0))
    assert found.window.seconds == pytest.approx(14 * 0.2)
    assert found.window.end_s - found.window.start_s == pytest.approx(14 * 0.2 + 2 * 7.0)
    assert found.window.epochs == 3
    assert found.blocks.step_s == pytest.approx([0.2] * 14)


def test_the_short_last_batch_is_left_out_of_step_times_and_counted_in_throughput():
    # Epochs of 3 steps, the third with 10 of 50 samples and 0.04 s instead of 0.2 s.
    found = of(rank([0.2, 0.2, 0.04] * 4, samples=[50, 50, 10] * 4, epochs=[3, 3, 3, 3]))
    assert found.blocks.step_s == pytest.approx([0.2] * 7)  # 12 − 1 of warm-up − 4 short ones
    assert len(found.blocks.samples_per_s) == 11
    assert found.blocks.samples_per_s[1] == pytest.approx(250.0)  # 10 ÷ 0.04
    assert found.consumed_bytes == (7 * 50 + 4 * 10) * 100_000


def test_samples_of_two_ranks_are_added_and_their_times_averaged():
    # Each 50 samples in 0.20 and 0.30 s: 100 samples ÷ 0.25 s.
    found = of(rank([0.2] * 10, world=2), rank([0.3] * 10, number=1, world=2))
    assert found.blocks.step_s == pytest.approx([0.25] * 9)
    assert found.blocks.samples_per_s == pytest.approx([400.0] * 9)
    assert found.consumed_bytes == 2 * 9 * 50 * 100_000
    assert found.window.seconds == pytest.approx(9 * 0.25)


def test_the_window_ends_with_the_last_step_that_all_ranks_made():
    found = of(rank([0.1] * 30, world=2), rank([0.1] * 22, number=1, world=2))
    assert found.window.last_step == 21
    assert found.consumed_bytes == 2 * 21 * 50 * 100_000


def test_what_is_drained_after_the_clock_stopped_is_not_in_the_window():
    found = of(rank([0.1] * 12 + [0.001] * 4, drain=4))
    assert (found.window.steps, found.window.last_step) == (11, 11)
    assert min(found.blocks.step_s) == pytest.approx(0.1)


def test_compute_is_the_step_without_wait_and_copy():
    # 0.5 − 0.3 − 0.05.
    found = of(rank([0.5] * 9, wait_s=0.3, h2d_s=0.05))
    assert found.blocks.wait_s == pytest.approx([0.3] * 8)
    assert found.blocks.compute_s == pytest.approx([0.15] * 8)


def test_waits_that_were_not_timed_are_missing_and_not_zero():
    found = of(rank([0.5] * 9, wait_s=None))
    assert found.blocks.wait_s == ()
    assert estimate(found.blocks.wait_s) is None
    assert len(found.blocks.step_s) == 8


def test_consumed_bytes_are_missing_when_the_trainer_does_not_know_them():
    assert of(rank([0.5] * 9, sample_bytes=None)).consumed_bytes is None


def test_without_a_step_there_is_no_window():
    assert stepping(()) is None
    assert stepping((rank([]),)) is None
    assert stepping((rank([0.1] * 5, world=2), rank([], number=1, world=2))) is None


def test_a_single_step_is_its_own_window():
    found = of(rank([0.3]))
    assert (found.window.warmup_steps, found.window.steps) == (0, 1)
    assert found.blocks.step_s == pytest.approx([0.3])


def test_steps_that_took_no_time_make_no_window():
    assert stepping((rank([0.0] * 9),)) is None
