"""The measured demand of a run as a load that other programs can make without accelerators."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ioprof.analysis.summary import summarise
from ioprof.errors import UsageError
from ioprof.record.filelist import FileList
from ioprof.record.fiofiles import ALIGNMENT_BYTES, block_bytes_for
from ioprof.record.store import RunDirectory, read_json, read_rank
from ioprof.record.study import Study
from ioprof.record.summary import CellSummary, Demand, Summary


class Known(msgspec.Struct, frozen=True):
    """A value and where it is from, for the comment beside it."""

    value: float
    why: str


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the accelerators of one topology demand, and how their loaders ask for it."""

    run: str
    """Name of the run directory, for the first comment."""
    data: Path
    files: FileList
    topology: str
    accelerators: int
    read_bytes_per_s: Known
    readers: Known
    """Requests that are outstanding at once: loader workers of all ranks."""
    batch: Known
    samples: int
    sample_bytes: Known
    sample_bytes_std: Known
    compute_s: Known
    """Time of a step without any reading."""
    emulated: str | None
    """The accelerator that the demand rests on, when it is an emulated one."""

    @property
    def block_bytes(self) -> int:
        """Request size, as for a measured ceiling; at least a page."""
        return block_bytes_for(self.files.stored_bytes) or ALIGNMENT_BYTES

    @property
    def reader_count(self) -> int:
        """`readers` as a number to count with: one at least."""
        return max(1, round(self.readers.value))

    @property
    def heading(self) -> tuple[str, str]:
        """What the load is, for the first two comments."""
        return (
            f"The storage demand that ioprof measured in {plain(self.run)}, without accelerators.",
            f"{self.accelerators} accelerators ({self.topology}) need "
            f"{self.read_bytes_per_s.value:.0f} B/s: {self.read_bytes_per_s.why}.",
        )


def load_of(run: RunDirectory, *, topology: str | None = None) -> Load:
    """The demand of `topology`, or of the largest one that has a demand.

    UsageError when the run holds none: its synthetic cell is missing, or it is a recorded command.
    """
    if not run.study.exists():
        raise UsageError(
            f"{run.root} is a recorded command: what it demands of storage is not known, only what "
            "it got. Make the load from a run of `ioprof profile`."
        )
    study = read_json(run.study, Study)
    summary = summarise(run)
    demand = _demand(summary, topology, run)
    need = demand.required_read_bytes_per_s.value
    assert need is not None
    size = summary.dataset.stored_bytes_per_sample
    alone = summary.synthetic_step_s(demand.topology)
    assert alone is not None  # the demand was made of it
    emulated = summary.accelerator.kind == "emulated"
    return Load(
        run=run.root.name,
        data=Path(study.config.data),
        files=FileList.read(run.filelist),
        topology=demand.topology,
        accelerators=demand.accelerators,
        read_bytes_per_s=Known(
            need,
            f"required by {demand.topology} at AU {demand.at_au:.0%}, {demand.phase}, "
            f"{demand.basis}",
        ),
        readers=_readers(run, summary, demand),
        batch=Known(study.config.batch, "samples of a step on each accelerator, as profiled"),
        samples=summary.dataset.samples,
        sample_bytes=Known(size.mean, "mean stored bytes of a sample, surveyed"),
        sample_bytes_std=Known(size.std, "their standard deviation, surveyed"),
        compute_s=Known(alone, f"median step of {demand.topology} without reading"),
        emulated=summary.accelerator.name if emulated else None,
    )


def _demand(summary: Summary, topology: str | None, run: RunDirectory) -> Demand:
    known = [d for d in summary.demand if d.required_read_bytes_per_s.value is not None]
    if not known:
        raise UsageError(
            f"{run.root} holds no measured demand: no synthetic cell of it ended. Profile again."
        )
    if topology is None:
        return max(known, key=lambda one: one.accelerators)
    for one in known:
        if one.topology == topology:
            return one
    there = ", ".join(dict.fromkeys(one.topology for one in known))
    raise UsageError(f"{run.root} holds no demand of {topology!r}. There is: {there}.")


def _readers(run: RunDirectory, summary: Summary, demand: Demand) -> Known:
    """Loader workers of all ranks in the cold cell that read fastest."""
    cells = [c for c in summary.cells if c.topology == demand.topology and c.role == "cold"]
    for cell in sorted(cells, key=_speed, reverse=True):
        workers = [
            event.fields.get("workers")
            for path in run.rank_files(cell.id)
            for event in read_rank(path).events
            if event.name == "loader"
        ]
        known = [int(one) for one in workers if isinstance(one, int | float) and one >= 1]
        if known:
            return Known(sum(known), f"loader workers of all ranks of {cell.id}, recorded")
    return Known(demand.accelerators, "one for each accelerator: no loader said its workers")


def _speed(cell: CellSummary) -> float:
    return cell.samples_per_s.median if cell.samples_per_s else 0.0


def plain(text: str) -> str:
    """A name from a file, kept to the one line of its comment."""
    return re.sub(r"[^\x20-\x7e]", "?", text)
