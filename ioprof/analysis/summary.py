"""From a run directory to its summary."""

from __future__ import annotations

from collections.abc import Iterator

from ioprof.analysis.ceilings import Bound, References, ceilings
from ioprof.analysis.cell import cell_summary
from ioprof.analysis.demand import amplification, demands
from ioprof.analysis.doubts import dataset_findings
from ioprof.analysis.headroom import headroom
from ioprof.analysis.observation import Observation, observe
from ioprof.analysis.rates import cpu_busy
from ioprof.errors import RunFileError
from ioprof.record.ceiling import StorageCeiling
from ioprof.record.finding import Finding
from ioprof.record.headline import Access
from ioprof.record.store import FORMAT_VERSION, RunDirectory, read_json
from ioprof.record.study import Study
from ioprof.record.summary import (
    Ceilings,
    CellSummary,
    DatasetSummary,
    MountSummary,
    Summary,
)
from ioprof.units import format_percent

_CLIENT_LIMITED = (
    "{loader} at {topology} was limited by this client, not by storage.",
    "{busy} of the usable CPUs were busy while it prepared samples that nothing consumed.",
    "Use more or faster CPUs, fewer accelerators per node, or a cheaper loader.",
)


def summarise(run: RunDirectory) -> Summary:
    """Everything that a report shows of `run`, from what was recorded alone.

    A run that ended badly is summarised as far as it goes and marked partial. RunFileError only
    when its plan is missing or cannot be read.
    """
    study = read_json(run.study, Study)
    observations = [observe(run, plan) for plan in study.cells]
    references = References(observations)
    storage = _storage(run)
    bound = Bound(all=tuple(_ceilings(study, observations, references, storage)))
    cells = tuple(
        cell_summary(seen, study=study, references=references, bound=bound)
        for seen in observations
        if seen.started
    )
    dataset = _dataset(study, cells)
    cold = [cell for cell in cells if cell.role == "cold"]
    stored_bytes = dataset.stored_bytes_per_sample.mean
    demand = demands(
        study.config.topologies,
        cells=cells,
        ceilings=bound.all,
        stored_bytes=stored_bytes,
        at_au=study.config.target_au,
        emulated=study.accelerator.kind == "emulated",
    )
    return Summary(
        format_version=FORMAT_VERSION,
        ioprof_version=study.ioprof_version,
        created=study.created,
        command=study.command,
        host=study.host,
        dataset=dataset,
        accelerator=study.accelerator,
        cells=cells,
        ceilings=bound.all,
        demand=demand,
        headroom=headroom(
            demand=demand,
            ceilings=bound.all,
            stored_bytes=stored_bytes,
            amplification=amplification(cold),
            at_au=study.config.target_au,
        ),
        findings=(
            *_client_findings(bound, cells),
            *_stack_findings(study),
            *dataset_findings(dataset, memory_bytes=study.host.memory_bytes),
        ),
        partial=_partial(study, observations, cells),
        sources=_sources(observations),
    )


def _storage(run: RunDirectory) -> StorageCeiling | None:
    path = run.fio / "ceiling.json"
    if not path.exists():
        return None
    try:
        return read_json(path, StorageCeiling)
    except RunFileError as error:
        return StorageCeiling(read_bytes_per_s=None, reason=str(error))


def _ceilings(
    study: Study,
    observations: list[Observation],
    references: References,
    storage: StorageCeiling | None,
) -> Iterator[Ceilings]:
    for topology in study.config.topologies:
        for loader in study.config.loaders:
            yield ceilings(
                references,
                topology=topology,
                loader=loader,
                storage=storage,
                mean_stored_bytes=study.dataset.stored_bytes_per_sample.mean,
                cpu_busy=_prep_cpu_busy(observations, topology=topology, loader=loader),
            )


def _prep_cpu_busy(observations: list[Observation], *, topology: str, loader: str) -> float | None:
    """The busiest that the usable CPUs were in a prep cell of this topology and loader."""
    found = [
        cpu_busy(seen.log, seen.stepping.window).value
        for seen in observations
        if (seen.plan.topology, seen.plan.loader, seen.plan.role) == (topology, loader, "prep")
        and seen.log is not None
        and seen.stepping is not None
    ]
    return max((busy for busy in found if busy is not None), default=None)


def _client_findings(bound: Bound, cells: tuple[CellSummary, ...]) -> Iterator[Finding]:
    what, evidence, remedy = _CLIENT_LIMITED
    for found in bound.all:
        if found.bottleneck != "client-limited":
            continue
        prep = [
            c
            for c in cells
            if (c.topology, c.loader, c.role) == (found.topology, found.loader, "prep")
        ]
        busy = max((cell.cpu_busy or 0.0 for cell in prep), default=0.0)
        yield Finding(
            level="caution",
            code="client-limited",
            what=what.format(loader=found.loader, topology=found.topology),
            evidence=evidence.format(busy=format_percent(busy)),
            remedy=remedy,
        )


def _dataset(study: Study, cells: tuple[CellSummary, ...]) -> DatasetSummary:
    dataset, mount, tried = study.dataset, study.mount, study.calibration
    headline = tried.headline if tried else None
    access: Access = "mmap" if study.config.mmap else "read"
    sources = [c.storage_read_source for c in cells if c.storage_read_source is not None]
    return DatasetSummary(
        path=dataset.path,
        layout=dataset.layout,
        samples=dataset.samples,
        classes=dataset.classes,
        stored_bytes=dataset.stored_bytes,
        stored_bytes_per_sample=dataset.stored_bytes_per_sample,
        quarantined=dataset.quarantined,
        quarantined_count=dataset.quarantined_count,
        notes=dataset.notes,
        mount=MountSummary(
            path=mount.path,
            filesystem=mount.filesystem,
            source=mount.source,
            devices=study.devices,
            counter_source=sources[0] if sources else None,
            counter_note=_counter_note(study, cells),
            counter_ratio=headline.ratios.get(access) if headline else None,
            runner_up=tried.runner_up.name if tried and tried.runner_up else None,
            blind_spots=tried.blind_spots if tried else (),
        ),
        survey_s=dataset.survey_s,
    )


def _counter_note(study: Study, cells: tuple[CellSummary, ...]) -> str | None:
    """Why the headline counter was chosen, or why there is none."""
    if study.calibration is not None:
        return study.calibration.why
    source = next((c.storage_read_source for c in cells if c.storage_read_source), None)
    if source is None:
        told = (c.reasons.get("storage_read_bytes_per_s") for c in cells if c.window)
        return study.unavailable.get("block.diskstats") or next(filter(None, told), None)
    if "process" in source:
        return "the device's own counters cannot be read here"
    return "reads of other programs on that device are in it"


def _stack_findings(study: Study) -> Iterator[Finding]:
    for note in study.stack_notes:
        yield Finding(
            level="caution",
            code="devices",
            what="The devices under this mount need care.",
            evidence=note[:1].upper() + note[1:].rstrip(".") + ".",
            remedy="`ioprof doctor --data DIR` shows the whole stack.",
        )


def _partial(
    study: Study, observations: list[Observation], cells: tuple[CellSummary, ...]
) -> str | None:
    left = [seen.plan.id for seen in observations if not seen.started]
    stopped = [seen for seen in observations if seen.outcome and seen.outcome.partial]
    unfinished = [seen.plan.id for seen in observations if seen.started and seen.outcome is None]
    if stopped:
        how = stopped[0].outcome.partial if stopped[0].outcome else ""
        rest = f"; {len(left)} of {len(study.cells)} cells were not run" if left else ""
        return f"{how} in {stopped[0].plan.id}{rest}"
    if unfinished:
        return f"{unfinished[0]} was not finished; {len(left)} cells were not run"
    if left:
        return f"{len(left)} of {len(study.cells)} cells were not run"
    return next((f"{cell.id}: {cell.partial}" for cell in cells if cell.partial), None)


def _sources(observations: list[Observation]) -> dict[str, str]:
    """Every counter source of the first cell: "read", or why it could not be."""
    for seen in observations:
        if seen.node is not None:
            read = {one.series.source: "read" for one in seen.node.columns}
            missing = {one.source: one.reason for one in seen.node.unavailable}
            return {**missing, **read}
    return {}
