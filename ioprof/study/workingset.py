"""Which part of a dataset a study reads.

All of it when it fits; else a random part, large enough that no cell can exhaust it within its
duration at the accelerators' own rate, and small enough to be made warm in this node's memory.
"""

from __future__ import annotations

import numpy as np

from ioprof.record.filelist import FileList

MEMORY_SHARE = 0.4
"""Share of the node's memory that a warm working set may fill: the loaders need the rest."""
_MARGIN = 1.25


def working_set(
    files: FileList, *, memory_bytes: int, samples_needed: float, seed: int
) -> FileList:
    """`files`, or a random subset of them (in list order), reproducible by `seed`.

    `samples_needed` is what the hungriest cell can consume; `memory_bytes` the node's memory.
    """
    stored_bytes = float(files.stored_bytes.sum())
    mean_bytes = stored_bytes / len(files)
    by_memory = MEMORY_SHARE * memory_bytes / mean_bytes
    by_need = _MARGIN * samples_needed
    count = int(max(1, min(len(files), by_memory, by_need)))
    if count >= len(files):
        return files
    chosen = np.random.default_rng(seed).permutation(len(files))[:count]
    chosen.sort()
    return files.subset(chosen)
