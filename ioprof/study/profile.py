"""The main job: survey, plan, measure the ceiling, run the cells, leave a run directory."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ioprof._version import VERSION
from ioprof.calibration.calibrate import calibrate
from ioprof.clock import Clock, MonotonicClock, now_iso
from ioprof.dataset.survey import survey
from ioprof.errors import MeasureError, UsageError
from ioprof.fio.ceiling import measure_ceiling
from ioprof.hostinfo import host as host_facts
from ioprof.record.dataset import Dataset
from ioprof.record.filelist import FileList
from ioprof.record.store import FORMAT_VERSION, RunDirectory, write_json
from ioprof.record.study import AcceleratorModel, CellOutcome, ProfileConfig, Study, Topology
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import find_mount
from ioprof.sources.source import BlockStack
from ioprof.study.cell import run_cell
from ioprof.study.plan import expand, workers_per_rank
from ioprof.study.progress import Progress
from ioprof.study.workingset import working_set

_START_UP_GUESS_S = 12.0
_FIO_S = 5.0
_CALIBRATION_FILES = 400
_FASTEST_PER_S = 10_000.0
"""No published accelerator trains ResNet-50 faster: 7,009 samples/s is the most."""


class StudyResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a study left behind. `interrupted` when the user ended it before its last cell."""

    study: Study
    outcomes: tuple[CellOutcome, ...]
    interrupted: bool


def prepare(
    config: ProfileConfig,
    *,
    run: RunDirectory,
    accelerator: AcceleratorModel,
    command: tuple[str, ...],
    progress: Progress,
    clock: Clock | None = None,
) -> tuple[Study, FileList, BlockStack]:
    """Survey, choose the working set, calibrate, expand the cells, write `study.json`."""
    clock = clock or MonotonicClock()
    data = Path(config.data)
    progress.begin(f"surveying {data}", expected_s=0.0, left_s=0.0)
    dataset, listed = survey(data, progress=progress.count)
    progress.end(took_s=dataset.survey_s)
    host = host_facts()
    files = working_set(
        listed,
        memory_bytes=host.memory_bytes,
        samples_needed=_samples_needed(config, accelerator),
        seed=config.seed,
    )
    _refuse_too_few(files, config)
    files.write(run.filelist)
    # The samples' own mount: a link in the dataset may lead to another filesystem.
    sample = files.path(0)
    mount = find_mount(sample)
    stack = find_stack(mount, path=sample)
    progress.begin("trying the counters of this mount", expected_s=2.0, left_s=0.0)
    began_s = clock.now_s()
    calibration = calibrate(
        _some(files), mount=mount, stack=stack, access="mmap" if config.mmap else "read"
    )
    progress.end(took_s=clock.now_s() - began_s)
    study = Study(
        format_version=FORMAT_VERSION,
        ioprof_version=VERSION,
        created=now_iso(),
        command=command,
        config=config,
        accelerator=accelerator,
        host=host,
        dataset=_with_working_set(dataset, listed=listed, files=files),
        mount=mount,
        devices=tuple(device.name for device in stack.devices),
        top_devices=stack.top,
        stack_notes=stack.notes,
        cells=expand(
            config,
            accelerator=accelerator,
            filelist=run.filelist.resolve(),
            usable_cpus=host.usable_cpus,
        ),
        unavailable={"block.diskstats": stack.reason} if stack.reason else {},
        calibration=calibration,
    )
    write_json(run.study, study)
    return study, files, stack


def measure(
    study: Study,
    *,
    files: FileList,
    stack: BlockStack,
    run: RunDirectory,
    progress: Progress,
    clock: Clock | None = None,
) -> StudyResult:
    """Run fio and every cell; an interrupt ends the study, and what was recorded stays."""
    clock = clock or MonotonicClock()
    outcomes: list[CellOutcome] = []
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    durations_s = [_expected_s(study.config)] * len(study.cells)
    try:
        if study.config.fio:
            _storage_ceiling(
                study, files=files, stack=stack, run=run, progress=progress, clock=clock
            )
        for number, plan in enumerate(study.cells):
            progress.begin(
                f"{plan.id}  ({number + 1} of {len(study.cells)})",
                expected_s=durations_s[number],
                left_s=sum(durations_s[number:]),
            )
            began_s = clock.now_s()
            outcome = run_cell(
                plan,
                config=study.config,
                run=run,
                files=files,
                cpus=cpus,
                progress=progress,
                clock=clock,
            )
            outcomes.append(outcome)
            took_s = clock.now_s() - began_s
            progress.end(took_s=took_s)
            # What the cells so far really took is the best guess for those to come.
            mean_s = (durations_s[number] + took_s) / 2
            durations_s[number + 1 :] = [mean_s] * (len(study.cells) - number - 1)
            if outcome.error:
                progress.say(outcome.error)
            if outcome.partial == "interrupted":
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        return StudyResult(study=study, outcomes=tuple(outcomes), interrupted=True)
    stepped = any(run.rank_files(outcome.id) for outcome in outcomes)
    if outcomes and not stepped and all(outcome.error for outcome in outcomes):
        raise MeasureError(f"No cell could be run. {outcomes[0].error}")
    return StudyResult(study=study, outcomes=tuple(outcomes), interrupted=False)


def _storage_ceiling(
    study: Study,
    *,
    files: FileList,
    stack: BlockStack,
    run: RunDirectory,
    progress: Progress,
    clock: Clock,
) -> None:
    ranks = max(Topology.parse(t).accelerators_per_node for t in study.config.topologies)
    workers = workers_per_rank(
        study.config.workers, usable_cpus=study.host.usable_cpus, ranks=ranks
    )
    progress.begin(
        "storage ceiling (fio, read-only on the dataset's own files)",
        expected_s=_FIO_S,
        left_s=_FIO_S + _expected_s(study.config) * len(study.cells),
    )
    began_s = clock.now_s()
    ceiling = measure_ceiling(
        files,
        out=run.fio,
        jobs=ranks * workers,
        duration_s=_FIO_S,
        stack=stack,
        clock=clock,
    )
    progress.end(took_s=clock.now_s() - began_s)
    if ceiling.read_bytes_per_s is None:
        progress.say(f"No storage ceiling: {ceiling.reason}")


def _some(files: FileList) -> list[Path]:
    """Files to calibrate on, spread evenly over the list."""
    count = min(len(files), _CALIBRATION_FILES)
    return [files.path(number * len(files) // count) for number in range(count)]


def _expected_s(config: ProfileConfig) -> float:
    return config.duration_s + _START_UP_GUESS_S


def _samples_needed(config: ProfileConfig, accelerator: AcceleratorModel) -> float:
    """What the hungriest cell can consume at its accelerators' own rate."""
    ranks = max(Topology.parse(t).accelerators for t in config.topologies)
    return (accelerator.samples_per_s or _FASTEST_PER_S) * ranks * config.duration_s


def refuse_inside(run: Path, data: Path) -> None:
    """UsageError when a run directory would lie under the dataset: nothing is written there."""
    if run.resolve().is_relative_to(data.resolve()):
        raise UsageError(
            f"The run directory {run} lies under the dataset {data}, and ioprof never writes "
            "there. Give another --out."
        )


def _refuse_too_few(files: FileList, config: ProfileConfig) -> None:
    ranks = max(Topology.parse(t).accelerators for t in config.topologies)
    if len(files) < ranks:
        raise UsageError(
            f"{config.data} holds {len(files)} usable samples for {ranks} ranks; each needs at "
            "least one. Use fewer accelerators or a larger dataset."
        )


def _with_working_set(dataset: Dataset, *, listed: FileList, files: FileList) -> Dataset:
    if len(files) == len(listed):
        return dataset
    note = (
        f"Cells read a random {len(files):,} of the {len(listed):,} samples: as many as fit in "
        "this node's memory and the accelerators can consume in a cell's duration."
    )
    return msgspec.structs.replace(dataset, notes=(*dataset.notes, note))
