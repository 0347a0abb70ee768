"""PyTorch's DataLoader over image files: worker processes, torchvision transforms on uint8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from ioprof_pipelines.loaders.images import (
    AREA,
    ASPECT,
    MEAN,
    STD,
    decode_rgb,
    read_file,
    rehearsal_jpeg,
)
from ioprof_pipelines.loaders.loader import Batch, Part


class _Sample(NamedTuple):
    image: torch.Tensor | None
    label: int
    stored_bytes: int
    bad: tuple[str, str] | None


class _Collated(NamedTuple):
    images: torch.Tensor | None
    labels: torch.Tensor
    samples: int
    stored_bytes: int
    bad: list[tuple[str, str]]


class TorchFilesLoader:
    """Workers live as long as the loader; each epoch starts and drains them."""

    def __init__(self, part: Part) -> None:
        config = part.config
        self.prefetch_batches = config.prefetch * config.workers
        self._plan = _Plan(part)
        images = _Images(part)
        images.rehearse()
        self._loader: DataLoader[_Sample] = DataLoader(
            images,
            batch_sampler=self._plan,
            num_workers=config.workers,
            prefetch_factor=config.prefetch,
            collate_fn=_collate,
            pin_memory=part.device.type == "cuda",
            persistent_workers=True,
            # Forked workers share what is imported already; none of them touches CUDA.
            multiprocessing_context="fork",
            generator=torch.Generator().manual_seed(config.seed * 1009 + part.rank),
        )

    def epoch(self, number: int) -> Iterator[Batch]:
        """Decoded, cropped, flipped batches."""
        self._plan.epoch = number
        for found in self._loader:
            yield Batch(
                images=found.images,
                labels=found.labels,
                samples=found.samples,
                stored_bytes=found.stored_bytes,
                bad=found.bad,
            )

    def stop(self) -> None:
        """Hand no further indices to the workers."""
        self._plan.stopped = True

    def close(self) -> None:
        """End the workers."""
        iterator: Any = self._loader._iterator
        if iterator is not None:
            iterator._shutdown_workers()
            self._loader._iterator = None


class _Plan:
    """The index lists of an epoch, handed out one by one so that they can be stopped."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self.epoch = 0
        self.stopped = False

    def __iter__(self) -> Iterator[list[int]]:
        for indices in self._part.batches(self.epoch):
            if self.stopped:
                return
            yield [int(i) for i in indices]


class _Images(Dataset[_Sample]):
    """One sample: read, decode, crop, flip, and normalise unless a GPU will."""

    def __init__(self, part: Part) -> None:
        self._files = part.files
        steps: list[torch.nn.Module] = [
            v2.RandomResizedCrop(part.config.image_size, scale=AREA, ratio=ASPECT, antialias=True),
            v2.RandomHorizontalFlip(),
        ]
        if part.device.type != "cuda":
            steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
        self._transform = v2.Compose(steps)

    def __len__(self) -> int:
        return len(self._files)

    def rehearse(self) -> None:
        """Decode and transform once, in the process that the workers are forked from."""
        self._transform(_decode(rehearsal_jpeg()))

    def __getitem__(self, index: int) -> _Sample:
        label = int(self._files.labels[index])
        stored_bytes = int(self._files.stored_bytes[index])
        try:
            image = _decode(read_file(self._files.path(index)))
        except OSError as error:
            why = (self._files.name(index), error.strerror or str(error))
            return _Sample(None, label, stored_bytes, why)
        return _Sample(self._transform(image), label, stored_bytes, None)


def _decode(data: bytes) -> torch.Tensor:
    """uint8 pixels 3×H×W by Pillow, as torchvision's own ImageFolder does; OSError when it can't.

    torchvision's native decoders are deprecated since 0.29.
    """
    pixels: torch.Tensor = v2.functional.pil_to_tensor(decode_rgb(data))
    return pixels


def _collate(found: list[_Sample]) -> _Collated:
    good = [sample for sample in found if sample.image is not None]
    images = [sample.image for sample in good if sample.image is not None]
    return _Collated(
        images=torch.stack(images) if images else None,
        labels=torch.tensor([sample.label for sample in good], dtype=torch.int64),
        samples=len(good),
        stored_bytes=sum(sample.stored_bytes for sample in found),
        bad=[sample.bad for sample in found if sample.bad is not None],
    )
