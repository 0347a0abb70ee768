"""What a loader is, and what it hands over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import torch

from ioprof_pipelines.config import TrainConfig
from ioprof_pipelines.filelist import FileList
from ioprof_pipelines.sharding import Indices, epoch_batches


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One step's samples, ready for the accelerator.

    `images` is float32 N×3×H×W, normalised, or uint8 when the accelerator normalises; None where
    nothing is decoded. `samples` counts the good ones, `stored_bytes` what was read for all.
    """

    images: torch.Tensor | None
    labels: torch.Tensor | None
    samples: int
    stored_bytes: int
    bad: list[tuple[str, str]] = field(default_factory=list)
    """Name and reason of each sample that could not be decoded."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A loader's share of the work: which rank of how many, on which device."""

    config: TrainConfig
    files: FileList
    rank: int
    world: int
    device: torch.device

    def batches(self, epoch: int) -> list[Indices]:
        """Sample indices of each step of this rank in `epoch`, the same for every loader."""
        return epoch_batches(
            len(self.files),
            rank=self.rank,
            world=self.world,
            batch=self.config.batch,
            seed=self.config.seed,
            epoch=epoch,
        )


class Loader(Protocol):
    """Turns files into batches. Reads nothing of the dataset outside `epoch`."""

    prefetch_batches: int
    """Batches that may be ready, or under way, before they are asked for."""

    def epoch(self, number: int) -> Iterator[Batch]:
        """All batches of this rank in epoch `number`, in the order of `sharding`."""

    def stop(self) -> None:
        """Read no further sample; those under way still come out of `epoch`."""

    def close(self) -> None:
        """Free workers and memory."""
