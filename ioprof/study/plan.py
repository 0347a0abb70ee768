"""Which cells a study runs, in which order, and the exact command of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ioprof.launch.engine import engine
from ioprof.record.study import (
    AcceleratorModel,
    CacheState,
    CellPlan,
    CellRole,
    ProfileConfig,
    Topology,
)

NO_ACCELERATOR = AcceleratorModel(
    name="none", kind="none", source="the loader runs alone: nothing consumes but the clock"
)
LOADERS = ("torch-files", "dali-files", "reads")
"""Loaders that `profile` compares; `synthetic` is in every study by itself. `reads` decodes
nothing, so it feeds emulated accelerators only."""

_Stage = tuple[str, CellRole, CacheState | None]
"""Loader, role, and the cache state that the role needs."""
_SYNTHETIC_EMULATED_S = 5.0
"""An emulated step is known beforehand; a few seconds show what the launcher adds to it."""


def expand(
    config: ProfileConfig,
    *,
    accelerator: AcceleratorModel,
    filelist: Path,
    usable_cpus: float,
) -> tuple[CellPlan, ...]:
    """Every cell of the study, in the order they are run.

    Per topology: synthetic, then cold and warm and prep of each loader, then fetch. Cells that
    share a warm page cache stand next to each other, so it is warmed once.
    """
    device = "cuda" if accelerator.kind == "cuda" else "cpu"
    cells = [
        _cell(
            config,
            topology=Topology.parse(text),
            stage=stage,
            repeat=repeat,
            accelerator=NO_ACCELERATOR if stage[1] in ("prep", "fetch") else accelerator,
            device=device,
            filelist=filelist,
            usable_cpus=usable_cpus,
        )
        for text in config.topologies
        for repeat in range(1, config.repeats + 1)
        for stage in _stages(config)
    ]
    # What nobody has touched comes before whatever warms or evicts.
    return tuple(sorted(cells, key=lambda cell: cell.role != "as-found"))


def workers_per_rank(asked: int, *, usable_cpus: float, ranks: int) -> int:
    """Loader workers of each rank: as asked, or the usable CPUs shared out when 0 was asked."""
    return asked if asked > 0 else max(1, int(usable_cpus) // ranks)


def _cell(
    config: ProfileConfig,
    *,
    topology: Topology,
    stage: _Stage,
    repeat: int,
    accelerator: AcceleratorModel,
    device: str,
    filelist: Path,
    usable_cpus: float,
) -> CellPlan:
    loader, role, cache = stage
    workers = workers_per_rank(
        config.workers, usable_cpus=usable_cpus, ranks=topology.accelerators_per_node
    )
    trainer = _trainer(
        config,
        loader=loader,
        role=role,
        accelerator=accelerator,
        device=device,
        filelist=filelist,
        workers=workers,
    )
    return CellPlan(
        id=_cell_id(str(topology), loader, role, repeat=repeat),
        topology=str(topology),
        nodes=topology.nodes,
        accelerators_per_node=topology.accelerators_per_node,
        loader=loader,
        role=role,
        cache=cache,
        accelerator=accelerator,
        engine=config.engine,
        repeat=repeat,
        command=engine(config.engine).command(trainer, topology=topology),
    )


def _stages(config: ProfileConfig) -> Iterator[_Stage]:
    yield "synthetic", "synthetic", None
    for loader in config.loaders:
        for cache in config.caches:
            if cache != "warm":
                yield loader, cache, cache
        if "warm" in config.caches:
            yield loader, "warm", "warm"
        yield loader, "prep", "warm"
    yield "reads", "fetch", "cold"


def _cell_id(topology: str, loader: str, role: CellRole, *, repeat: int) -> str:
    name = topology if loader == role else f"{topology}-{loader}"
    return f"{name}-{role}" + (f"-r{repeat}" if repeat > 1 else "")


def _trainer(
    config: ProfileConfig,
    *,
    loader: str,
    role: CellRole,
    accelerator: AcceleratorModel,
    device: str,
    filelist: Path,
    workers: int,
) -> tuple[str, ...]:
    duration_s = config.duration_s
    if role == "synthetic" and accelerator.kind == "emulated":
        duration_s = min(duration_s, _SYNTHETIC_EMULATED_S)
    arguments = [
        "-m",
        "ioprof_pipelines",
        f"--filelist={filelist}",
        f"--loader={loader}",
        f"--accelerator={accelerator.kind}",
        # A loader alone still loads onto the device that it feeds in training.
        f"--device={device}",
        f"--batch={config.batch}",
        f"--image-size={config.image_size}",
        f"--workers={workers}",
        f"--duration-s={duration_s:g}",
        f"--model={config.model}",
        f"--seed={config.seed}",
        # A cold cell must stay cold when the clock outlasts the dataset.
        f"--between-epochs={'evict' if role in ('cold', 'fetch') else 'keep'}",
    ]
    if accelerator.kind == "emulated" and accelerator.samples_per_s is not None:
        arguments.append(f"--samples-per-s={accelerator.samples_per_s:g}")
    if config.mmap:
        arguments.append("--mmap")
    return tuple(arguments)
