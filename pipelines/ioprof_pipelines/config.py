"""Everything a run of the trainer can be told; the command line is made from these fields."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

Accelerator = Literal["cuda", "cpu", "emulated", "none"]
Device = Literal["auto", "cuda", "cpu"]
BetweenEpochs = Literal["keep", "evict"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One run of one rank. Units are in the names; counts are per rank."""

    filelist: Annotated[Path, "the list of samples (filelist.npz)"]
    loader: Annotated[str, "what turns files into batches"]
    accelerator: Annotated[Accelerator, "what consumes the batches"]
    device: Annotated[Device, "where batches are put; auto: where the accelerator is"] = "auto"
    samples_per_s: Annotated[float, "rate of one emulated accelerator"] = 0.0
    batch: Annotated[int, "samples per rank and step"] = 64
    image_size: Annotated[int, "pixels a side after the crop"] = 224
    workers: Annotated[int, "loader workers per rank"] = 1
    prefetch: Annotated[int, "batches that one worker may hold ready"] = 2
    duration_s: Annotated[float, "stepping time after which all ranks stop"] = 30.0
    max_epochs: Annotated[int, "stop after so many epochs; 0 is no limit"] = 0
    max_steps: Annotated[int, "stop after so many steps; 0 is no limit"] = 0
    model: Annotated[str, "any torchvision classifier"] = "resnet50"
    learning_rate: Annotated[float, "of plain SGD with momentum"] = 0.01
    seed: Annotated[int, "order of samples, augmentation, weights"] = 0
    between_epochs: Annotated[BetweenEpochs, "evict the dataset's pages between epochs"] = "keep"
    mmap: Annotated[bool, "map files instead of reading them, where the loader can"] = False


def parse(arguments: Sequence[str] | None = None) -> TrainConfig:
    """The config from a command line; ends the program with a usage message when it is wrong."""
    parser = argparse.ArgumentParser(prog="ioprof_pipelines", description=__doc__)
    hints = get_type_hints(TrainConfig, include_extras=True)
    for one in fields(TrainConfig):
        name = "--" + one.name.replace("_", "-")
        kind, text = get_args(hints[one.name])
        if kind is bool:
            parser.add_argument(name, action="store_true", help=text)
        elif choices := get_args(kind):
            _add(parser, name, one.default, text, choices=choices)
        else:
            _add(parser, name, one.default, text, type=kind)
    config = TrainConfig(**vars(parser.parse_args(arguments)))
    problem = _problem(config)
    if problem:
        parser.error(problem)
    return config


def _add(
    parser: argparse.ArgumentParser,
    name: str,
    default: Any,  # noqa: ANN401 - dataclass fields are any type
    text: str,
    **how: Any,  # noqa: ANN401 - passed on to argparse
) -> None:
    needed = {"required": True} if default is MISSING else {"default": default}
    parser.add_argument(name, help=text, **needed, **how)


def _problem(config: TrainConfig) -> str | None:
    for name in ("batch", "image_size", "workers", "prefetch"):
        if getattr(config, name) < 1:
            return f"--{name.replace('_', '-')} must be at least 1"
    if config.accelerator == "emulated" and config.samples_per_s <= 0:
        return "--accelerator emulated needs --samples-per-s, the rate of one accelerator"
    return None
