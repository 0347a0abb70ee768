"""Run one cell: bring the page cache to the state asked for, look, record, look again."""

from __future__ import annotations

from pathlib import Path

from ioprof import cachestate
from ioprof.clock import Clock
from ioprof.record.filelist import FileList
from ioprof.record.store import RunDirectory, write_json
from ioprof.record.study import CacheState, CellOutcome, CellPlan, ProfileConfig, Residency
from ioprof.recorder import RecordSpec, log_tail, record
from ioprof.study.progress import Progress

START_UP_S = 120.0
"""How long an engine may take to import its framework and to end, beside the measured time."""
_STRETCH = 4.0
"""A slow cell may take this many times its duration before it is ended."""


def run_cell(
    plan: CellPlan,
    *,
    config: ProfileConfig,
    run: RunDirectory,
    files: FileList,
    cpus: tuple[int, ...],
    progress: Progress,
    clock: Clock,
) -> CellOutcome:
    """Run `plan` and write its outcome beside its record. A failure is an outcome, not an error."""
    folder = run.cell(plan.id)
    before = bring_to(plan.cache, files, progress=progress) if plan.cache else None
    result = record(
        RecordSpec(
            command=plan.command,
            folder=folder,
            data_path=files.path(0),
            interval_s=config.interval_s,
            cpus=cpus,
            environment=_environment(plan, cpus=len(cpus)),
            deadline_s=START_UP_S + _STRETCH * config.duration_s,
        ),
        clock=clock,
    )
    outcome = CellOutcome(
        id=plan.id,
        exit_status=result.exit_status,
        started_s=result.started_s,
        ended_s=result.ended_s,
        residency_before=before,
        residency_after=cachestate.observe(files) if plan.cache else None,
        partial=result.ended_by,
        error=_error(plan, status=result.exit_status, ended_by=result.ended_by, folder=folder),
    )
    write_json(folder / "cell.json", outcome)
    return outcome


def bring_to(state: CacheState, files: FileList, *, progress: Progress) -> Residency:
    """Evict or warm the dataset's own pages and report what is then observed, whatever it is."""
    match state:
        case "cold":
            cachestate.evict(files, progress=progress.count)
        case "warm":
            cachestate.warm(files, progress=progress.count)
        case "as-found":
            pass
    return cachestate.observe(files)


def _environment(plan: CellPlan, *, cpus: int) -> dict[str, str]:
    # Loader workers are the parallelism that is measured; a thread pool in each rank beside them
    # would fight them for the same CPUs. Real CPU training is the exception: its threads are the
    # accelerator, shared out alike in every topology.
    real = plan.accelerator.kind == "cpu"
    threads = max(1, cpus // plan.accelerators_per_node) if real else 1
    return {"OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}


def _error(plan: CellPlan, *, status: int, ended_by: str | None, folder: Path) -> str | None:
    if status == 0 or ended_by == "interrupted":
        return None
    how = f"did not end in time (exit {status})" if ended_by else f"ended with status {status}"
    return f"Cell {plan.id} {how}. {_last_words(log_tail(folder, lines=200))}"


def _last_words(log: str) -> str:
    """What the ranks said of their own failure; else the end of the log."""
    ranks = [line for line in log.splitlines() if line.startswith("rank ")]
    if ranks:
        return "; ".join(ranks)
    return "Its log ends:\n" + "\n".join(log.splitlines()[-8:])
