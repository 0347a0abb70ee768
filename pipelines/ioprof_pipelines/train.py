"""Train a classifier and mark every step.

One rank, an emulated accelerator, PyTorch's loader:

    torchrun --standalone --nproc-per-node=1 -m ioprof_pipelines --filelist RUN/filelist.npz \
        --loader torch-files --accelerator emulated --samples-per-s 2791

Eight GPUs of this node, DALI, real training:

    torchrun --standalone --nproc-per-node=8 -m ioprof_pipelines --filelist RUN/filelist.npz \
        --loader dali-files --accelerator cuda --batch 256

Marks are written when IOPROF_EVENTS names a folder; without it this is a plain training script.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict

import torch
import torch.distributed as dist

from ioprof import mark
from ioprof_pipelines.accelerators import Accelerator, open_accelerator
from ioprof_pipelines.clock import now_s
from ioprof_pipelines.config import TrainConfig, parse
from ioprof_pipelines.filelist import FileList
from ioprof_pipelines.loaders import open_loader
from ioprof_pipelines.loaders.loader import Batch, Loader, Part
from ioprof_pipelines.pages import evict

LEAST_STEPS = 8
"""Steps beyond the warm-up that are made even if they take longer than the duration …"""
STRETCH = 3.0
"""… as long as they stay within this many times the duration."""


def train(part: Part, loader: Loader, accelerator: Accelerator) -> None:
    """The loop: epochs of wait, step, mark, until time, steps or epochs are used up."""
    config = part.config
    steps, stepping_s, stopping = 0, 0.0, False
    named: set[str] = set()
    epoch = 0
    while not stopping and not (config.max_epochs and epoch >= config.max_epochs):
        if epoch and config.between_epochs == "evict":
            evict_on_every_node(part)
        # No byte of the dataset is read before this line or after epoch_end, so that what the
        # counters say of the time between is what the samples of this epoch cost.
        dist.barrier()
        mark.epoch_start(epoch)
        step_start_s = now_s()
        for batch, wait_s in timed(loader.epoch(epoch)):
            name_bad_samples(batch, named)
            if stopping:
                # Read before the clock stopped: counted, so that bytes add up, but not trained on.
                mark_step(batch, wait_s=wait_s, h2d_s=None, phase="drain")
                continue
            h2d_s = accelerator.step(batch)
            steps += 1
            enough = is_enough(config, loader, steps=steps, stepping_s=stepping_s)
            stopping = agree(enough, device=part.device)  # also where the ranks meet
            mark_step(batch, wait_s=wait_s, h2d_s=h2d_s, phase="steady")
            if stopping:
                loader.stop()
            step_end_s = now_s()
            stepping_s += step_end_s - step_start_s
            step_start_s = step_end_s
        mark.epoch_end(epoch)
        epoch += 1


def timed(batches: Iterator[Batch]) -> Iterator[tuple[Batch, float]]:
    """Each batch with the seconds it was waited for."""
    while True:
        began_s = now_s()
        batch = next(batches, None)
        if batch is None:
            return
        yield batch, now_s() - began_s


def is_enough(config: TrainConfig, loader: Loader, *, steps: int, stepping_s: float) -> bool:
    """Whether this rank has done what it was asked for."""
    if config.max_steps:
        return steps >= config.max_steps
    least = loader.prefetch_batches + 1 + LEAST_STEPS
    stretched = stepping_s >= STRETCH * config.duration_s
    return stepping_s >= config.duration_s and (steps >= least or stretched)


def agree(enough: bool, *, device: torch.device) -> bool:
    """Whether any rank has had enough: all of them stop after the same step."""
    flag = torch.tensor([float(enough)], device=device)
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item() > 0)


def evict_on_every_node(part: Part) -> None:
    """Keep a cold run cold in its next epoch; the time this takes is in no step."""
    dist.barrier()
    if int(os.environ.get("LOCAL_RANK", "0")) == 0:
        evict(part.files)
    dist.barrier()


def mark_step(batch: Batch, *, wait_s: float, h2d_s: float | None, phase: str) -> None:
    """Tell the profiler what this step consumed."""
    mark.step(
        samples=batch.samples,
        stored_bytes=batch.stored_bytes,
        wait_s=wait_s,
        h2d_s=h2d_s,
        phase=phase,
    )


def name_bad_samples(batch: Batch, named: set[str]) -> None:
    """Tell the profiler of each file that could not be decoded, once."""
    for file, why in batch.bad:
        if file not in named:
            named.add(file)
            mark.event("quarantine", file=file, why=why, where="loader")


def connect(config: TrainConfig) -> tuple[int, int, torch.device]:
    """Join the process group that the launcher describes: rank, world size, device."""
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        # Ranks of one node meet on loopback, whatever its hostname resolves to.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.setdefault("RANK", "0")
    os.environ.setdefault("WORLD_SIZE", "1")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "0")
    if "cuda" not in (config.accelerator, config.device):
        dist.init_process_group("gloo")
        return dist.get_rank(), dist.get_world_size(), torch.device("cpu")
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local >= torch.cuda.device_count():
        raise ValueError(
            f"Rank {local} of this node has no GPU: {torch.cuda.device_count()} are visible. "
            "Use fewer accelerators, or --accelerator emulated."
        )
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return dist.get_rank(), dist.get_world_size(), device


def run(config: TrainConfig) -> None:
    """One rank, from joining to leaving."""
    rank, world, device = connect(config)
    files = FileList(config.filelist)
    part = Part(config=config, files=files, rank=rank, world=world, device=device)
    loader = open_loader(part)
    mark.event(
        "loader",
        **{
            key: str(value) if key == "filelist" else value for key, value in asdict(config).items()
        },
        prefetch_batches=loader.prefetch_batches,
        samples=len(files),
    )
    accelerator = open_accelerator(config, classes=files.classes, device=device)
    mark.event("accelerator", kind=config.accelerator, samples_per_s=config.samples_per_s or None)
    try:
        train(part, loader, accelerator)
    finally:
        loader.close()
    trained = accelerator.finish()
    if trained is not None:
        mark.event("trained", **asdict(trained))
    dist.barrier()
    dist.destroy_process_group()


def main() -> int:
    """Run this rank; a failure is one sentence with the rank's name on stderr, and status 1."""
    config = parse()
    try:
        run(config)
    except (ValueError, OSError, RuntimeError) as error:
        what = explained(error)
        mark.event("error", what=what)
        sys.stderr.write(f"rank {os.environ.get('RANK', '0')}: {what}\n")
        return 1
    return 0


def explained(error: Exception) -> str:
    """The error in words; the one about shared memory with its remedy."""
    text = str(error)
    if "shared memory" in text or "/torch_" in text or "Bus error" in text:
        free = os.statvfs("/dev/shm")
        return (
            f"The loader's workers ran out of /dev/shm ({free.f_bavail * free.f_frsize >> 20} MiB "
            "are free). Make it larger (docker run --shm-size), or use fewer --workers or a "
            f"smaller --batch. PyTorch said: {text}"
        )
    return text
