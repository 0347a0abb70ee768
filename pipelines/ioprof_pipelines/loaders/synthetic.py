"""One resident batch, for ever: what the accelerator does when it never waits."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ioprof_pipelines.loaders.loader import Batch, Part


class SyntheticLoader:
    """Random pixels and labels, made once, on the device."""

    prefetch_batches = 0

    def __init__(self, part: Part) -> None:
        config = part.config
        generator = torch.Generator().manual_seed(config.seed + part.rank)
        side = config.image_size
        images = torch.randn(config.batch, 3, side, side, generator=generator)
        labels = torch.randint(0, part.files.classes, (config.batch,), generator=generator)
        self._batch = Batch(
            images=images.to(part.device),
            labels=labels.to(part.device),
            samples=config.batch,
            stored_bytes=0,
        )
        self._stopped = False

    def epoch(self, number: int) -> Iterator[Batch]:
        """The same batch until stopped: an epoch without an end."""
        while not self._stopped:
            yield self._batch

    def stop(self) -> None:
        """End the epoch."""
        self._stopped = True

    def close(self) -> None:
        """Nothing to free."""
