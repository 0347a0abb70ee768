"""Which sample is read by which rank in which step: the same for every loader.

All ranks draw the same permutation and take their own part of it, so every sample is read exactly
once per epoch by exactly one rank, and all ranks make the same number of steps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]


def epoch_batches(
    samples: int, *, rank: int, world: int, batch: int, seed: int, epoch: int
) -> list[Indices]:
    """Sample indices of each step of `rank` in `epoch`.

    Full steps take `batch` samples per rank. Of a remainder of r samples, r ≥ world make one more
    step, shared out evenly; fewer are added to the last full step, one to each of r ranks.
    ValueError when there are fewer samples than ranks.
    """
    if samples < world:
        raise ValueError(
            f"{samples} samples cannot feed {world} ranks: each needs at least one. "
            "Use fewer accelerators or a larger dataset."
        )
    order = np.random.default_rng((seed, epoch)).permutation(samples)
    full, left = divmod(samples, batch * world)
    steps = [
        order[(step * world + rank) * batch : (step * world + rank + 1) * batch]
        for step in range(full)
    ]
    rest = order[samples - left :]
    mine = rest[rank::world]
    if left >= world:
        steps.append(mine)
    elif len(mine):
        steps[-1] = np.concatenate((steps[-1], mine))
    return steps


def most_samples(batch: int) -> int:
    """The largest batch that `epoch_batches` makes."""
    return batch + 1
