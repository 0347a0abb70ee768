"""What the run says, in sentences that text, figures and page share."""

from __future__ import annotations

from ioprof.record.estimate import Estimate
from ioprof.record.finding import Finding
from ioprof.record.summary import Ceilings, CellSummary, Demand, Summary
from ioprof.units import format_bandwidth, format_percent, format_rate, format_seconds

TRAINED = ("cold", "as-found", "warm")
"""Roles in which samples were read and trained on, the one that sizes storage first."""
FROM_STORAGE = ("cold", "as-found")
"""Roles in which storage was meant to deliver."""

EMULATION_MEANS = "It waits as long as the real one would and computes nothing."

_ORDER = {"invalid": 0, "caution": 1, "note": 2}
_VERDICTS = {
    "compute": "the accelerators are the bottleneck",
    "prep": "preparing samples (prep) is the bottleneck",
    "fetch": "reading from storage (fetch) is the bottleneck",
    "balanced": "no stage is clearly the slowest (balanced)",
    "client-limited": "this host's CPUs are the bottleneck (client-limited)",
    "cache-served": "the page cache served it, not storage",
    "invalid": "the measurement is invalid",
    "unknown": "the bottleneck is unknown",
}


def count(number: int, noun: str) -> str:
    """ "1 accelerator", "2 accelerators", "no accelerators"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number or 'no'} {noun}s"


def share(value: float | None) -> str:
    """A fraction as per cent, with a decimal where rounding would make nothing of it."""
    return format_percent(value, digits=1 if value is not None and 0 < abs(value) < 0.0995 else 0)


def verdict_phrase(verdict: str) -> str:
    """A verdict as half a sentence."""
    return _VERDICTS.get(verdict, verdict)


def bare(reason: str) -> str:
    """A reason without the full stop it may bring, so that it fits inside a sentence."""
    return reason.strip().rstrip(".")


def cell_name(cell: CellSummary) -> str:
    """A cell as people call it: "1x2 torch-files cold", with its number when it was repeated."""
    again = f" #{cell.repeat}" if cell.repeats > 1 else ""
    return f"{cell.topology} {cell.loader} {cell.role}{again}"


def trained_cells(summary: Summary) -> list[CellSummary]:
    """Cells that read and trained: by accelerators, then loaders as planned, cold before warm."""
    loaders = list(dict.fromkeys(cell.loader for cell in summary.cells))
    return sorted(
        (cell for cell in summary.cells if cell.role in TRAINED),
        key=lambda cell: (
            cell.nodes * cell.accelerators_per_node,
            cell.topology,
            loaders.index(cell.loader),
            TRAINED.index(cell.role),
            cell.repeat,
        ),
    )


def all_findings(summary: Summary) -> list[Finding]:
    """Findings of the run and of its cells: invalid first, then cautions, then notes; each once."""
    found = [*summary.findings, *(f for cell in summary.cells for f in cell.findings)]
    return sorted(dict.fromkeys(found), key=lambda finding: _ORDER[finding.level])


def emulation(summary: Summary) -> str | None:
    """What plays the accelerator, when nothing real does; None when a real one did the work."""
    model = summary.accelerator
    if model.kind != "emulated":
        return None
    rate = (
        "an unknown rate"
        if model.samples_per_s is None
        else f"{format_rate(model.samples_per_s)} samples/s"
    )
    return f"Emulated accelerator: {model.name} at {rate} ({model.source})"


def largest_demand(summary: Summary) -> Demand | None:
    """The demand of the most accelerators for which one is known."""
    known = [one for one in summary.demand if one.required_read_bytes_per_s.value is not None]
    return max(known, key=lambda one: one.accelerators, default=None)


def best_cell(summary: Summary, *, topology: str) -> CellSummary | None:
    """The cell of this topology that trained fastest from storage."""
    known = [
        (cell.samples_per_s.median, cell)
        for cell in summary.cells
        if cell.topology == topology and cell.role in FROM_STORAGE and cell.samples_per_s
    ]
    return max(known, key=lambda pair: pair[0], default=(0.0, None))[1]


def answer(summary: Summary) -> str:
    """The verdict of the run in one sentence: what is needed, what came, and what was the limit."""
    demand = largest_demand(summary)
    if demand is None:
        return f"What storage must deliver is not known: {_why_no_demand(summary)}."
    needed = format_bandwidth(demand.required_read_bytes_per_s.value)
    who = count(demand.accelerators, "accelerator")
    verb = "needs" if demand.accelerators == 1 else "need"
    needs = f"{who} {verb} {needed} for AU {format_percent(demand.at_au)}"
    cell = best_cell(summary, topology=demand.topology)
    if cell is None:
        return f"{needs}; no cell read from storage with that many."
    au = "" if cell.au is None else f" (AU {share(cell.au)})"
    if cell.storage_read_bytes_per_s is None:
        came = f"what storage delivered is not known{au}"
    else:
        came = f"this mount delivered {format_bandwidth(cell.storage_read_bytes_per_s)}{au}"
    return f"{needs}; {came}: {verdict_phrase(cell.verdict)}."


def _why_no_demand(summary: Summary) -> str:
    for one in summary.demand:
        for reason in one.reasons.values():
            return bare(reason)
    return "no topology was measured"


def no_storage_ceiling(summary: Summary) -> str | None:
    """Why no storage ceiling is claimed; None when one is."""
    if any(one.storage_read_bytes_per_s is not None for one in summary.ceilings):
        return None
    for one in summary.ceilings:
        for name in ("storage", "storage_read_bytes_per_s"):
            if name in one.reasons:
                return bare(one.reasons[name])
    return "it was not measured"


def storage_ceiling(summary: Summary) -> float | None:
    """The largest storage ceiling claimed, in bytes per second; None when none is."""
    known = [one.storage_read_bytes_per_s for one in summary.ceilings]
    return max((value for value in known if value is not None), default=None)


def stages(one: Ceilings) -> dict[str, Estimate | None]:
    """The ceilings of one topology and loader by stage, from the accelerator down to storage."""
    return {
        "compute": one.compute,
        "prep": one.prep,
        "fetch": one.fetch,
        "storage": one.storage,
    }


def counter(summary: Summary) -> str:
    """Which counter says what storage delivered, why, and what it cannot see."""
    mount = summary.dataset.mount
    source, note = mount.counter_source or "none", bare(mount.counter_note or "")
    told = [note] if note.startswith(source) else list(filter(None, [source, note]))
    told += map(bare, mount.blind_spots)
    if mount.runner_up:
        told.append(f"Next best: {mount.runner_up}")
    first, *rest = told
    return ". ".join([first, *(one[:1].upper() + one[1:] for one in rest)])


def sampler_cost(summary: Summary) -> str:
    """What the measurement itself took, over all cells."""
    used = [cell.sampler for cell in summary.cells if cell.sampler is not None]
    if not used:
        return "not known"
    costs = [one.cpu_fraction for one in used if one.cpu_fraction is not None]
    missed = [one.missed_ticks for one in used if one.missed_ticks is not None]
    cost = f"at most {format_percent(max(costs), digits=1)}" if costs else "an unknown share"
    lost = f"{sum(missed):,}" if missed else "an unknown number"
    return (
        f"every {format_seconds(used[0].interval_s)}, {cost} of one CPU, "
        f"{lost} of {sum(one.ticks for one in used):,} ticks missed"
    )
