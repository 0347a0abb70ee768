"""What consumes the batches: real training on CUDA or CPU, an emulated accelerator, or nothing."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.distributed as dist
import torchvision
from torch.nn.parallel import DistributedDataParallel

from ioprof_pipelines.clock import now_s, sleep_until
from ioprof_pipelines.config import TrainConfig
from ioprof_pipelines.loaders.images import MEAN, STD
from ioprof_pipelines.loaders.loader import Batch

IMAGENET_CLASSES = 1000
"""The classifier has at least ImageNet's outputs, so that its cost does not hang on the dataset."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Proof that a model was trained."""

    loss_first: float | None
    loss_last: float | None
    weights_changed: bool
    weights_digest: str


class Accelerator(Protocol):
    """Consumes one batch at a time."""

    def step(self, batch: Batch) -> float | None:
        """Do the step's work; seconds that the copy to the device took, None where there is none.

        The work is finished when it returns.
        """

    def finish(self) -> Trained | None:
        """What was trained; None when nothing was."""


class Nothing:
    """Takes batches and drops them: the loader runs alone."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def step(self, batch: Batch) -> float | None:
        """Wait until the batch is on the device, as training would need it."""
        if self._device.type == "cuda":
            if batch.images is not None:
                batch.images.to(self._device, non_blocking=True)
            torch.cuda.synchronize(self._device)
        return None

    def finish(self) -> Trained | None:
        """Nothing was trained."""
        return None


class Emulated:
    """Holds each step for samples ÷ rate, from the moment the batch is there."""

    def __init__(self, samples_per_s: float) -> None:
        self._samples_per_s = samples_per_s

    def step(self, batch: Batch) -> float | None:
        """Sleep to an absolute deadline, so that what Python needs is part of the step."""
        sleep_until(now_s() + batch.samples / self._samples_per_s)
        return None

    def finish(self) -> Trained | None:
        """Nothing was trained."""
        return None


class Training:
    """Forward, backward and update of a torchvision classifier with SGD, on CPU or CUDA.

    On CUDA: automatic mixed precision and channels-last, as in the vendors' references.
    """

    def __init__(self, config: TrainConfig, *, classes: int, device: torch.device) -> None:
        self._device = device
        self._cuda = device.type == "cuda"
        torch.manual_seed(config.seed)  # all ranks begin with the same weights
        model = torchvision.models.get_model(
            config.model, weights=None, num_classes=max(classes, IMAGENET_CLASSES)
        )
        if self._cuda:
            torch.backends.cudnn.benchmark = True
            model = model.to(device, memory_format=torch.channels_last)
        self._weights = model
        self._digest = _digest(model)
        self._model: torch.nn.Module = model
        if dist.get_world_size() > 1:
            self._model = DistributedDataParallel(
                model, device_ids=[device.index] if self._cuda else None
            )
        self._model.train()
        self._optimizer = torch.optim.SGD(
            model.parameters(), lr=config.learning_rate, momentum=0.9, weight_decay=1e-4
        )
        # bfloat16 needs no loss scaling; GPUs before Ampere have only float16.
        native = self._cuda and torch.cuda.is_bf16_supported(including_emulation=False)
        self._half = torch.bfloat16 if native else torch.float16
        self._scaler = torch.amp.GradScaler(
            device.type, enabled=self._cuda and self._half is torch.float16
        )
        self._mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1) * 255
        self._std = torch.tensor(STD, device=device).view(1, 3, 1, 1) * 255
        self._losses: list[float] = []
        # Two samples: batch normalisation of one is undefined.
        self._stand_in = torch.zeros(2, 3, config.image_size, config.image_size)
        self._rehearse(config)

    def _rehearse(self, config: TrainConfig) -> None:
        """Forward and backward once on noise, before the clock runs: kernels are chosen, and the
        libraries' own pages are read, which would else be taken for samples. No weight moves."""
        side = config.image_size
        noise = Batch(
            images=torch.randn(config.batch, 3, side, side),
            labels=torch.zeros(config.batch, dtype=torch.int64),
            samples=config.batch,
            stored_bytes=0,
        )
        images, labels, _ = self._on_device(noise)
        torch.autograd.backward(self._loss(images, labels))
        self._optimizer.zero_grad(set_to_none=True)

    def step(self, batch: Batch) -> float | None:
        """One optimiser update; a batch without a good sample still joins the gradient exchange."""
        images, labels, h2d_s = self._on_device(batch)
        self._optimizer.zero_grad(set_to_none=True)
        loss = self._loss(images, labels)
        torch.autograd.backward(self._scaler.scale(loss))
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._losses.append(float(loss.detach()))  # waits for the device
        return h2d_s

    def _loss(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self._device.type, dtype=self._half, enabled=self._cuda):
            output = self._model(images)
            scores = output if isinstance(output, torch.Tensor) else output.logits
            return torch.nn.functional.cross_entropy(scores, labels)

    def _on_device(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, float | None]:
        images, labels = batch.images, batch.labels
        if images is None or labels is None:
            images, labels = self._stand_in, torch.zeros(2, dtype=torch.int64)
        elif len(images) == 1:
            images, labels = torch.cat((images, images)), torch.cat((labels, labels))
        if not self._cuda:
            return images, labels, None
        start, end = _timing_event(), _timing_event()
        start.record()
        images = images.to(self._device, non_blocking=True, memory_format=torch.channels_last)
        labels = labels.to(self._device, non_blocking=True)
        end.record()
        end.synchronize()
        if images.dtype == torch.uint8:
            images = images.float().sub_(self._mean).div_(self._std)
        return images, labels, start.elapsed_time(end) / 1e3

    def finish(self) -> Trained | None:
        """Losses, and whether the weights moved."""
        digest = _digest(self._weights)
        return Trained(
            loss_first=_finite(self._losses[:1]),
            loss_last=_finite(self._losses[-1:]),
            weights_changed=digest != self._digest,
            weights_digest=digest,
        )


def _finite(losses: list[float]) -> float | None:
    """The one loss, when there is one and it is a number."""
    return next(filter(math.isfinite, losses), None)


def _timing_event() -> torch.cuda.Event:
    event: Any = torch.cuda.Event  # untyped in torch
    made: torch.cuda.Event = event(enable_timing=True)
    return made


def _digest(model: torch.nn.Module) -> str:
    """SHA-256 of all parameters. Buffers are left out: batch-norm statistics differ by rank."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def open_accelerator(config: TrainConfig, *, classes: int, device: torch.device) -> Accelerator:
    """The accelerator that the config names."""
    match config.accelerator:
        case "cuda" | "cpu":
            return Training(config, classes=classes, device=device)
        case "emulated":
            return Emulated(config.samples_per_s)
        case "none":
            return Nothing(device)
