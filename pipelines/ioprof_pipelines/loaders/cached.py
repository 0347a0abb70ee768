"""A few real batches, replayed: the most that work on the loader could gain (headspace)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ioprof_pipelines.loaders.loader import Batch, Part
from ioprof_pipelines.loaders.torch_files import TorchFilesLoader

BATCHES = 8


class CachedLoader:
    """Loads its batches once with the PyTorch loader, before the first epoch, and keeps them."""

    prefetch_batches = 0

    def __init__(self, part: Part) -> None:
        source = TorchFilesLoader(part)
        self._batches: list[Batch] = []
        batches = source.epoch(0)
        self._batches.extend(islice(batches, BATCHES))
        source.stop()
        for _ in batches:  # what was already under way
            pass
        source.close()
        self._stopped = False

    def epoch(self, number: int) -> Iterator[Batch]:
        """The kept batches over and over until stopped; nothing is read."""
        while not self._stopped:
            yield from self._once()

    def _once(self) -> Iterator[Batch]:
        for kept in self._batches:
            if not self._stopped:
                yield replace(kept, stored_bytes=0, bad=[])

    def stop(self) -> None:
        """End the epoch."""
        self._stopped = True

    def close(self) -> None:
        """Let the batches go."""
        self._batches.clear()
