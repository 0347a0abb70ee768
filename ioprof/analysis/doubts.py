"""Findings: what a reader must know before believing a number."""

from __future__ import annotations

from collections.abc import Iterator

from ioprof.analysis.observation import Observation
from ioprof.record.finding import Finding, Level
from ioprof.record.summary import CellSummary, DatasetSummary, Training
from ioprof.units import format_bytes, format_percent

_MISSED_ABOVE = 0.05
_NAMED = 3
_BUSY_ABOVE = 0.9
"""CPUs that a daemon of one busy thread uses when it is the limit."""


def cell_findings(cell: CellSummary, seen: Observation) -> tuple[Finding, ...]:
    """Doubts about one cell, gravest first."""
    order: dict[Level, int] = {"invalid": 0, "caution": 1, "note": 2}
    found = [
        *_about_run(cell, seen),
        *_about_bytes(cell),
        *_about_cache(cell),
        *_about_daemon(cell, seen),
        *_about_rest(cell),
    ]
    return tuple(sorted(found, key=lambda finding: order[finding.level]))


def _finding(
    level: Level, code: str, what: str, *, evidence: str, remedy: str, cell: str | None
) -> Finding:
    return Finding(level=level, code=code, what=what, evidence=evidence, remedy=remedy, cell=cell)


def _about_run(cell: CellSummary, seen: Observation) -> Iterator[Finding]:
    if seen.outcome is not None and seen.outcome.error is not None:
        yield _finding(
            "invalid",
            "failed",
            f"Cell {cell.id} failed.",
            evidence=seen.outcome.error,
            remedy=f"Its log is cells/{cell.id}/node-0.log in the run directory.",
            cell=cell.id,
        )
    elif cell.partial is not None and seen.started:
        yield _finding(
            "caution",
            "partial",
            f"Cell {cell.id} did not run its course.",
            evidence=_sentence(cell.partial),
            remedy="Run it again before relying on its numbers.",
            cell=cell.id,
        )


def _about_bytes(cell: CellSummary) -> Iterator[Finding]:
    bytes_ = cell.reconciliation
    if cell.verdict == "cache-served" and bytes_ is not None:
        yield _finding(
            "invalid",
            "cache-served",
            f"Cell {cell.id} was served from a cache: it says nothing about this storage.",
            evidence=(
                f"Storage delivered {format_bytes(bytes_.storage_read_bytes)} of the "
                f"{format_bytes(bytes_.consumed_bytes)} consumed."
            ),
            remedy="Run it cold (--cache cold), on a dataset larger than the memory.",
            cell=cell.id,
        )
    elif cell.verdict == "invalid" and cell.window is not None:
        yield _finding(
            "invalid",
            "nothing-read",
            f"Cell {cell.id} read nothing.",
            evidence="No byte was consumed, and storage delivered none.",
            remedy="Check that the loader reads the dataset at all.",
            cell=cell.id,
        )
    elif bytes_ is not None and bytes_.agrees is False and cell.role in ("cold", "fetch"):
        yield _finding(
            "caution",
            "bytes-differ",
            f"The byte counts of cell {cell.id} differ by more than 5 %.",
            evidence=bytes_.why,
            remedy="Compare the three counts in the reconciliation table before using one.",
            cell=cell.id,
        )


def _about_cache(cell: CellSummary) -> Iterator[Finding]:
    cache = cell.cache
    if cache.asked not in ("cold", "warm") or cache.state == cache.asked:
        return
    share = format_percent(cache.observed_resident_fraction, digits=1)
    if cache.state == "unknown":
        what = f"Whether cell {cell.id} was {cache.asked} could not be observed."
        evidence = (
            "The kernel does not tell this user which pages are cached, or this filesystem keeps a "
            "cache outside the page cache."
        )
        remedy = "Run as the owner of the files, or as root; compare the storage bytes."
    else:
        what = f"Cell {cell.id} was asked to be {cache.asked} and was {cache.state}."
        evidence = f"{share} of the dataset's pages were in the page cache at its start."
        remedy = (
            "End the programs that hold these files open or mapped."
            if cache.asked == "cold"
            else "Use a dataset that fits in memory, or free some."
        )
    yield _finding("caution", "cache-state", what, evidence=evidence, remedy=remedy, cell=cell.id)


def _about_daemon(cell: CellSummary, seen: Observation) -> Iterator[Finding]:
    """Whether the daemon of a FUSE mount, rather than what lies behind it, may be the limit."""
    if cell.window is None or seen.log is None:
        return
    start_s, end_s = cell.window.start_s, cell.window.end_s
    for one in seen.log.instances("fuse.daemon"):
        busy = seen.log.growth(
            one.source,
            one.instance,
            "busy_seconds_total",
            start_s=start_s,
            end_s=end_s,
            whole=False,
        ).value
        if busy is None or busy < _BUSY_ABOVE * (end_s - start_s):
            continue
        yield _finding(
            "caution",
            "fuse-daemon-busy",
            f"The daemon of {one.instance} may be the limit of cell {cell.id}.",
            evidence=f"It used {busy / (end_s - start_s):.2f} CPUs: one busy thread uses 1.00.",
            remedy="Give it more threads, or several mounts, before buying storage.",
            cell=cell.id,
        )


def _about_rest(cell: CellSummary) -> Iterator[Finding]:
    sampler = cell.sampler
    if sampler is not None and sampler.missed_ticks:
        share = sampler.missed_ticks / max(1, sampler.missed_ticks + sampler.ticks)
        if share > _MISSED_ABOVE:
            yield _finding(
                "caution",
                "missed-ticks",
                f"The sampler of cell {cell.id} came late too often.",
                evidence=f"{format_percent(share)} of its ticks were missed.",
                remedy="Leave it a CPU, or sample less often (--interval).",
                cell=cell.id,
            )
    if cell.quarantined:
        names = ", ".join(entry.file for entry in cell.quarantined[:_NAMED])
        yield _finding(
            "caution",
            "quarantined",
            f"{len(cell.quarantined)} samples of cell {cell.id} could not be decoded.",
            evidence=f"{names}: {cell.quarantined[0].why}.",
            remedy="Replace these files.",
            cell=cell.id,
        )
    if cell.training is not None and cell.partial is None:
        yield from _about_training(cell, cell.training)


def _about_training(cell: CellSummary, training: Training) -> Iterator[Finding]:
    if training.loss_last is None:
        yield _finding(
            "invalid",
            "loss-not-finite",
            f"The loss of cell {cell.id} is no number.",
            evidence="The last step's loss was infinite or undefined.",
            remedy="Check the dataset's labels and images.",
            cell=cell.id,
        )
    if not training.weights_changed:
        yield _finding(
            "invalid",
            "weights-unchanged",
            f"The weights of cell {cell.id} did not move: nothing was trained.",
            evidence="Their digest is the same before and after.",
            remedy="Look for an error in the log of the cell.",
            cell=cell.id,
        )
    if not training.ranks_agree:
        yield _finding(
            "invalid",
            "ranks-differ",
            f"The ranks of cell {cell.id} ended with different weights.",
            evidence="Their digests differ, or a rank did not say.",
            remedy="Look for an error in the log of the cell.",
            cell=cell.id,
        )


def dataset_findings(dataset: DatasetSummary, *, memory_bytes: int) -> Iterator[Finding]:
    """Doubts about what was read."""
    if dataset.quarantined_count:
        names = ", ".join(entry.file for entry in dataset.quarantined[:_NAMED])
        why = dataset.quarantined[0].why if dataset.quarantined else ""
        yield _finding(
            "caution",
            "quarantined",
            f"{dataset.quarantined_count:,} files of the dataset cannot be samples.",
            evidence=f"{names}: {why}.",
            remedy="All loaders leave them out; `ioprof dataset survey` lists them.",
            cell=None,
        )
    if dataset.stored_bytes < memory_bytes:
        yield _finding(
            "note",
            "fits-in-memory",
            "The dataset fits in this node's memory.",
            evidence=f"It holds {format_bytes(dataset.stored_bytes)}; cold cells evict it.",
            remedy="A larger dataset shows the steady state of a training that does not fit.",
            cell=None,
        )
    if dataset.mount.counter_source is None:
        yield _finding(
            "caution",
            "no-storage-counter",
            "What storage delivered could not be counted on this mount.",
            evidence=_sentence(dataset.mount.counter_note or "no counter source was found"),
            remedy="`ioprof doctor --data DIR` says what is visible here and why.",
            cell=None,
        )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
