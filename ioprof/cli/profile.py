"""`ioprof profile --data DIR`: the main job."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioprof.cli import untouched
from ioprof.errors import EXIT_INTERRUPTED, MeasureError, UsageError

if TYPE_CHECKING:
    from ioprof.record.study import AcceleratorModel, CacheState, ProfileConfig

_DEFAULT_LOADERS = "torch-files,dali-files"
_BATCH = {"cuda": 256, "emulated": 64, "cpu": 16}


def profile(
    *,
    data: Annotated[
        Path, typer.Option(parser=untouched.path, help="The dataset, on the mount under test.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Run directory [reports/DATE-HOST-DATASET].")
    ] = None,
    loader: Annotated[str, typer.Option(help="Loaders, separated by commas.")] = _DEFAULT_LOADERS,
    topology: Annotated[
        str | None, typer.Option(help="Nodes x accelerators per node: 1x1,1x2 [1x1,1x2].")
    ] = None,
    accelerators: Annotated[
        str | None, typer.Option(help="Accelerator counts on this node: 1,2,4.")
    ] = None,
    accelerator: Annotated[
        str, typer.Option(help="auto, cuda, cpu, emulated:h100 or emulated:SAMPLES_PER_S.")
    ] = "auto",
    cache: Annotated[str, typer.Option(help="cold,warm or as-found.")] = "cold,warm",
    batch: Annotated[
        int, typer.Option(min=0, help="Samples per rank and step [cuda 256, emulated 64, cpu 16].")
    ] = 0,
    image_size: Annotated[int, typer.Option(min=8, help="Pixels a side after the crop.")] = 224,
    model: Annotated[str, typer.Option(help="Any torchvision classifier.")] = "resnet50",
    workers: Annotated[
        int, typer.Option(min=0, help="Loader workers per rank [the usable CPUs, shared out].")
    ] = 0,
    duration: Annotated[str, typer.Option(help="Measured time of each cell.")] = "30s",
    repeats: Annotated[int, typer.Option(min=1, help="How often each cell is run.")] = 1,
    interval: Annotated[str, typer.Option(help="Between two samples of the counters.")] = "100ms",
    engine: Annotated[str, typer.Option(help="What starts the ranks.")] = "torchrun",
    fio: Annotated[bool, typer.Option(help="Measure the storage ceiling with fio.")] = True,
    au: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Accelerator utilisation aimed at.")
    ] = 0.9,
    seed: Annotated[int, typer.Option(min=0, help="Order of samples and of the working set.")] = 0,
    mmap: Annotated[bool, typer.Option("--mmap", help="Loaders map files where they can.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier run at --out.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands and stop.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print summary.json and nothing else.")
    ] = False,
) -> None:
    """Train on the dataset, count what storage delivers, and say what N accelerators need.

    Every cell (topology, loader, cold or warm) runs for --duration; the report and everything it
    rests on are left in the run directory. Nothing is ever written under --data.
    """
    from ioprof.record.study import ProfileConfig
    from ioprof.units import parse_duration_s

    chosen = _accelerator(accelerator)
    config = ProfileConfig(
        data=str(data.absolute()),
        loaders=_loaders(loader, chosen),
        topologies=_topologies(topology, accelerators, chosen),
        accelerator=accelerator,
        caches=_caches(cache),
        batch=batch or _BATCH[chosen.kind],
        image_size=image_size,
        model=model,
        workers=workers,
        duration_s=_positive("--duration", parse_duration_s(duration)),
        repeats=repeats,
        interval_s=_positive("--interval", parse_duration_s(interval)),
        engine=engine,
        fio=fio,
        seed=seed,
        mmap=mmap,
        target_au=au,
    )
    root = out or _default_out(data)
    if dry_run:
        _print_commands(config, chosen, root)
        return
    raise typer.Exit(_run(config, chosen, root=root, force=force, as_json=json))


def _run(
    config: ProfileConfig, chosen: AcceleratorModel, *, root: Path, force: bool, as_json: bool
) -> int:
    from ioprof.cli.progress import ConsoleProgress
    from ioprof.cli.report import show
    from ioprof.record.store import RunDirectory
    from ioprof.study.profile import measure, prepare, refuse_inside

    _require_trainer(config)
    # A batch system's time limit is an interrupt like any other: the report is still written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ConsoleProgress() as progress:
        progress.say(_accelerator_sentence(chosen))
        _require_data(Path(config.data))
        refuse_inside(root, Path(config.data))
        run = RunDirectory.create(root, overwrite=force)
        study, files, stack = prepare(
            config, run=run, accelerator=chosen, command=tuple(sys.argv), progress=progress
        )
        result = measure(study, files=files, stack=stack, run=run, progress=progress)
        progress.say(f"Report: {run.page}")
    status = show(run, as_json=as_json, figures=True)
    return EXIT_INTERRUPTED if result.interrupted else status


def _print_commands(config: ProfileConfig, chosen: AcceleratorModel, root: Path) -> None:
    from ioprof.hostinfo import usable_cpus
    from ioprof.record.store import RunDirectory
    from ioprof.study.plan import expand

    run = RunDirectory(root.absolute())
    for plan in expand(
        config, accelerator=chosen, filelist=run.filelist, usable_cpus=usable_cpus()
    ):
        typer.echo(f"# {plan.id}")
        typer.echo(shlex.join(plan.command))


def _accelerator(text: str) -> AcceleratorModel:
    from ioprof.hostinfo import host
    from ioprof.record.accelerators import resolve

    if text not in ("auto", "cuda"):
        return resolve(text)
    if host().accelerators:
        return resolve("cuda")
    if text == "cuda":
        raise MeasureError(
            "No NVIDIA GPU is visible here, so nothing can be trained on one. "
            "Use --accelerator emulated:h100; `ioprof doctor` says what is missing."
        )
    return resolve("emulated:h100")


def _accelerator_sentence(chosen: AcceleratorModel) -> str:
    from ioprof.units import format_rate

    if chosen.kind != "emulated":
        return f"Accelerator: {chosen.name} ({chosen.kind}), real training."
    return (
        f"Accelerator: emulated {chosen.name}, {format_rate(chosen.samples_per_s)} samples/s each "
        f"({chosen.source}). Loading is real, training is emulated."
    )


def _loaders(text: str, chosen: AcceleratorModel) -> tuple[str, ...]:
    from ioprof.study.plan import LOADERS

    names = _list("--loader", text)
    unknown = [name for name in names if name not in LOADERS]
    if unknown:
        raise UsageError(f"There is no loader {unknown[0]!r}. Choose from: {', '.join(LOADERS)}.")
    if "reads" in names and chosen.kind != "emulated":
        raise UsageError(
            "The loader reads decodes nothing, so nothing can be trained on it. "
            "Use it with --accelerator emulated:…, or choose torch-files or dali-files."
        )
    return names


def _caches(text: str) -> tuple[CacheState, ...]:
    known: dict[str, CacheState] = {"cold": "cold", "warm": "warm", "as-found": "as-found"}
    names = _list("--cache", text)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"There is no cache state {unknown[0]!r}. Choose cold, warm or as-found.")
    return tuple(known[name] for name in names)


def _topologies(
    topology: str | None, accelerators: str | None, chosen: AcceleratorModel
) -> tuple[str, ...]:
    """As asked for, or one and two accelerators; never more GPUs than there are."""
    from ioprof.record.study import Topology

    gpus = _gpus() if chosen.kind == "cuda" else None
    names = _asked_topologies(topology, accelerators)
    if names is None:
        return ("1x1",) if gpus == 1 else ("1x1", "1x2")
    most = max(Topology.parse(name).accelerators_per_node for name in names)
    if gpus is not None and most > gpus:
        raise UsageError(
            f"{most} accelerators were asked for and {gpus} GPUs are visible. "
            "Ask for fewer, or use --accelerator emulated:h100."
        )
    return names


def _gpus() -> int:
    from ioprof.hostinfo import host

    return len(host().accelerators)


def _asked_topologies(topology: str | None, accelerators: str | None) -> tuple[str, ...] | None:
    from ioprof.record.study import Topology

    if topology and accelerators:
        raise UsageError("--topology and --accelerators say the same thing. Give one of them.")
    if accelerators:
        return tuple(str(Topology.parse(f"1x{n}")) for n in _list("--accelerators", accelerators))
    if topology is None:
        return None
    return tuple(str(Topology.parse(t)) for t in _list("--topology", topology))


def _list(option: str, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise UsageError(f"{option} is empty. Name at least one.")
    return names


def _positive(option: str, value: float) -> float:
    if value <= 0:
        raise UsageError(f"{option} must be longer than nothing.")
    return value


def _default_out(data: Path) -> Path:
    import socket
    from datetime import datetime

    stamp = datetime.now().strftime("%Y-%m-%d-%H%M%S")
    name = data.absolute().name or "root"
    return Path("reports") / f"{stamp}-{socket.gethostname()}-{name}"


def _require_data(data: Path) -> None:
    from ioprof.sources.probe import require_answer

    require_answer(data)


def _require_trainer(config: ProfileConfig) -> None:
    if not (_installed("torch") and _installed("torchvision")):
        raise MeasureError(
            "The trainer needs PyTorch, which is not installed here. "
            "Install it: pip install 'ioprof[train]'"
        )
    if any(name.startswith("dali-") for name in config.loaders) and not _installed("nvidia.dali"):
        raise MeasureError(
            "The dali loaders need NVIDIA DALI, which is not installed here. "
            "Install it: pip install 'ioprof[dali]', or choose --loader torch-files."
        )


def _installed(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is not there
        return False
