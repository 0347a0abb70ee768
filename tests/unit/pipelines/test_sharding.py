"""Every sample once per epoch, the same number of steps on every rank."""

import numpy as np
import pytest

from ioprof_pipelines.sharding import epoch_batches, most_samples


def plans(samples, *, world, batch, seed=0, epoch=0):
    return [
        epoch_batches(samples, rank=rank, world=world, batch=batch, seed=seed, epoch=epoch)
        for rank in range(world)
    ]


@pytest.mark.parametrize("world", [1, 2, 3, 8])
@pytest.mark.parametrize("batch", [1, 2, 7, 64])
@pytest.mark.parametrize("samples", [8, 9, 11, 64, 100, 513])
def test_every_sample_is_read_once_and_all_ranks_step_together(samples, world, batch):
    ranks = plans(samples, world=world, batch=batch)
    assert len({len(steps) for steps in ranks}) == 1
    read = np.concatenate([np.concatenate(steps) for steps in ranks])
    assert sorted(read) == list(range(samples))
    assert all(1 <= len(step) <= most_samples(batch) for steps in ranks for step in steps)


def test_eleven_samples_on_two_ranks_of_batch_two_make_three_steps():
    # Two full steps take 8; of the 3 left one goes to each rank and one more to rank 0.
    sizes = [[len(step) for step in steps] for steps in plans(11, world=2, batch=2)]
    assert sizes == [[2, 2, 2], [2, 2, 1]]


def test_a_remainder_smaller_than_the_ranks_joins_the_last_full_step():
    sizes = [[len(step) for step in steps] for steps in plans(9, world=2, batch=2)]
    assert sizes == [[2, 3], [2, 2]]


def test_the_next_epoch_has_another_order_and_the_same_seed_the_same():
    first, second = plans(100, world=1, batch=10)[0], plans(100, world=1, batch=10, epoch=1)[0]
    again = plans(100, world=1, batch=10)[0]
    assert not np.array_equal(np.concatenate(first), np.concatenate(second))
    assert np.array_equal(np.concatenate(first), np.concatenate(again))


def test_fewer_samples_than_ranks_is_a_sentence():
    with pytest.raises(ValueError, match="3 samples cannot feed 4 ranks"):
        epoch_batches(3, rank=0, world=4, batch=1, seed=0, epoch=0)
