"""NVIDIA DALI over image files: threads of one pipeline, decoding on the CPU or `mixed`.

File names come from outside (`external_source`) and are read by `io.file.read`. DALI's own file
reader would fill a shuffle buffer and read ahead into the next epoch, so the bytes it reads in a
span are not those of the samples it delivers; and it shuffles by its own rule. This way order,
shards and the end of reading are ours and the same for every loader.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt
import nvidia.dali.fn
import nvidia.dali.types
import torch
import torch.utils.dlpack
from nvidia.dali.pipeline import Pipeline

from ioprof_pipelines.loaders.images import (
    AREA,
    ASPECT,
    MEAN,
    STD,
    problem_of,
    rehearsal_jpeg,
)
from ioprof_pipelines.loaders.loader import Batch, Part
from ioprof_pipelines.sharding import Indices, most_samples

fn: Any = nvidia.dali.fn
types: Any = nvidia.dali.types

Names = npt.NDArray[np.uint8]
"""The bytes of one file's path."""


class DaliFilesLoader:
    """One pipeline for all epochs; it is built again only without a file that breaks it."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self.prefetch_batches = part.config.prefetch
        self._plan: Iterator[Indices] = iter(())
        self._again: deque[Indices] = deque()
        self._under_way: deque[Indices] = deque()
        self._bad: dict[int, tuple[str, str]] = {}
        self._unnamed: list[tuple[str, str]] = []
        self._stopped = False
        self._rehearse()
        self._pipeline = self._built(self._next_names)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Decoded, cropped, flipped, normalised batches."""
        self._plan = iter(self._part.batches(number))
        while True:
            try:
                (images,) = self._pipeline.run()
            except StopIteration:
                break
            except RuntimeError as error:
                self._recover(error)
                continue
            yield from self._empty_batches()
            yield self._batch(images, self._under_way.popleft())
        yield from self._empty_batches()
        self._pipeline.reset()

    def _empty_batches(self) -> Iterator[Batch]:
        """Steps of which no sample can be decoded: the other ranks make them, so this one does."""
        while self._under_way and not len(self._under_way[0]):
            self._under_way.popleft()
            bad, self._unnamed = self._unnamed, []
            yield Batch(images=None, labels=None, samples=0, stored_bytes=0, bad=bad)

    def _batch(self, images: Any, indices: Indices) -> Batch:  # noqa: ANN401 - DALI is untyped
        files = self._part.files
        bad, self._unnamed = self._unnamed, []
        return Batch(
            # DALI reuses its buffer for the batch after next.
            images=torch.utils.dlpack.from_dlpack(images.as_tensor()).clone(),
            labels=torch.from_numpy(files.labels[indices].astype(np.int64)),
            samples=len(indices),
            stored_bytes=int(files.stored_bytes[indices].sum()),
            bad=bad,
        )

    def _next_names(self) -> list[Names]:
        """Called by DALI ahead of each batch; StopIteration ends the epoch."""
        while True:
            if self._again:
                indices = self._again.popleft()
            elif self._stopped:
                raise StopIteration
            else:
                indices = next(self._plan)
            good = np.array([i for i in indices if int(i) not in self._bad], dtype=np.int64)
            self._under_way.append(good)
            if len(good):
                return [np.frombuffer(self._part.files.path(int(i)), dtype=np.uint8) for i in good]

    def _recover(self, error: RuntimeError) -> None:
        """Name the files that broke the pipeline, and go on with the batches under way."""
        found = {}
        for indices in self._under_way:
            for index in indices:
                why = problem_of(self._part.files.path(int(index)))
                if why is not None:
                    found[int(index)] = (self._part.files.name(int(index)), why)
        if not found:
            raise error
        self._bad.update(found)
        self._unnamed.extend(found.values())
        self._again.extendleft(reversed(self._under_way))
        self._under_way.clear()
        self._pipeline = self._built(self._next_names)

    def _rehearse(self) -> None:
        """Run the same graph once on a file of our own, outside the dataset."""
        with NamedTemporaryFile(suffix=".JPEG") as file:
            file.write(rehearsal_jpeg())
            file.flush()
            name = np.frombuffer(os.fsencode(file.name), dtype=np.uint8)
            self._built(lambda: [name]).run()

    def _built(self, source: Callable[[], list[Names]]) -> Any:  # noqa: ANN401 - DALI is untyped
        config, device = self._part.config, self._part.device
        on_gpu = device.type == "cuda"
        make: Any = Pipeline  # untyped in DALI
        pipeline = make(
            batch_size=most_samples(config.batch),
            num_threads=config.workers,
            # None: a pipeline without CUDA; a number would fail where there is no driver.
            device_id=device.index if on_gpu else None,
            seed=config.seed * 1009 + self._part.rank,
            prefetch_queue_depth=config.prefetch,
        )
        with pipeline:
            names = fn.external_source(source=source, dtype=types.UINT8, batch=True)
            files = fn.io.file.read(names, dont_use_mmap=not config.mmap)
            pipeline.set_outputs(_augmented(files, mixed=on_gpu, side=config.image_size))
        pipeline.build()
        return pipeline

    def stop(self) -> None:
        """Give DALI no further names."""
        self._stopped = True

    def close(self) -> None:
        """Let the pipeline and its threads go."""
        self._pipeline = None


def _augmented(files: Any, *, mixed: bool, side: int) -> Any:  # noqa: ANN401 - DALI is untyped
    """Decode, crop, resize, flip, normalise: a graph, not pixels."""
    images = fn.decoders.image_random_crop(
        files,
        device="mixed" if mixed else "cpu",
        output_type=types.RGB,
        random_area=AREA,
        random_aspect_ratio=ASPECT,
        num_attempts=100,
    )
    # Triangular filtering is torchvision's antialiased bilinear.
    images = fn.resize(images, resize_x=side, resize_y=side, interp_type=types.INTERP_TRIANGULAR)
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mirror=fn.random.coin_flip(probability=0.5),
        mean=[255 * m for m in MEAN],
        std=[255 * s for s in STD],
    )
