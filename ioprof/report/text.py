"""The report as text: the answer first, headroom last, no line over 79 characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ioprof.record.finding import Finding
from ioprof.record.summary import CellSummary, Demand, Summary
from ioprof.report.answer import (
    EMULATION_MEANS,
    all_findings,
    answer,
    bare,
    cell_name,
    counter,
    emulation,
    no_storage_ceiling,
    sampler_cost,
    share,
    stages,
    storage_ceiling,
    trained_cells,
)
from ioprof.report.gap import gaps, reasons_of
from ioprof.report.layout import paragraph, table
from ioprof.report.requests import requests
from ioprof.units import (
    MISSING,
    format_bandwidth,
    format_bytes,
    format_memory,
    format_percent,
    format_rate,
    format_seconds,
)

_FOOTNOTES = 8


def render(summary: Summary) -> str:
    """The whole report. It ends with the headroom sentence and no newline."""
    sections = [
        _findings(summary, "invalid"),
        _head(summary),
        _cells(summary),
        _steps(summary),
        _reading(summary),
        _reconciliations(summary),
        _ceilings(summary),
        _demand(summary),
        _findings(summary, "caution"),
        _findings(summary, "note"),
        _provenance(summary),
        paragraph(summary.headroom.sentence),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _head(summary: Summary) -> list[str]:
    lines: list[str] = []
    emulated = emulation(summary)
    if emulated is not None:
        lines += paragraph(f"{emulated}. {EMULATION_MEANS}")
    if summary.partial is not None:
        lines += paragraph(
            f"Partial: {bare(summary.partial)}. What was measured until then is below."
        )
    return [*lines, *paragraph(answer(summary))]


def _findings(summary: Summary, level: str) -> list[str]:
    lines: list[str] = []
    for finding in all_findings(summary):
        if finding.level == level:
            lines += _finding(finding)
    return lines


def _finding(finding: Finding) -> list[str]:
    where = "" if finding.cell is None else f"[{finding.cell}] "
    label = f"{finding.level.upper()}: " if finding.level == "invalid" else f"{finding.level}: "
    said = " ".join(part for part in (finding.evidence, finding.remedy) if part)
    return [
        *paragraph(f"{where}{finding.what}", first=label, rest="  "),
        *(paragraph(said, first="  ") if said else []),
    ]


def _cells(summary: Summary) -> list[str]:
    cells = trained_cells(summary)
    if not cells:
        return ["No cell that trains was run."]
    rows = [
        (
            cell_name(cell),
            share(cell.au),
            format_rate(cell.samples_per_s.median if cell.samples_per_s else None),
            _spread(cell),
            f"{cell.window.steps}/{format_seconds(cell.window.seconds)}"
            if cell.window
            else MISSING,
            cell.verdict,
        )
        for cell in cells
    ]
    header = ("Cell", "AU", "samples/s", "± MAD", "steps/window", "bottleneck")
    return [
        "AU (vs synthetic): step time without reading ÷ step time with it",
        *table(header, rows, align="lrrrrl"),
        *(
            line
            for cell in cells
            if cell.partial is not None
            for line in paragraph(
                f"{cell_name(cell)} is partial: {bare(cell.partial)}.", first="  "
            )
        ),
        *_footnotes(cells, "samples_per_s", "au"),
    ]


def _spread(cell: CellSummary) -> str:
    rate = cell.samples_per_s
    if rate is None or not rate.median:
        return MISSING
    return format_percent(rate.mad / rate.median, digits=1)


def _steps(summary: Summary) -> list[str]:
    cells = trained_cells(summary)
    rows = [
        (
            cell_name(cell),
            format_seconds(cell.step_s.median if cell.step_s else None),
            format_seconds(summary.synthetic_step_s(cell.topology)),
            format_seconds(cell.prep_stall_s),
            format_seconds(cell.fetch_stall_s) if cell.role != "warm" else "",
        )
        for cell in cells
    ]
    if not rows:
        return []
    header = ("Step time", "step", "= compute", "+ prep stall", "+ fetch stall")
    return [
        *table(header, rows, align="lrrrr"),
        *_footnotes(cells, "step_s", "prep_stall_s", "fetch_stall_s"),
    ]


def _reading(summary: Summary) -> list[str]:
    read = [*trained_cells(summary), *(c for c in summary.cells if c.role == "fetch")]
    cells = [cell for cell in read if cell.consumed_bytes_per_s is not None]
    if not cells:
        return []
    rows = [
        (
            cell_name(cell),
            format_bandwidth(cell.consumed_bytes_per_s),
            format_bandwidth(cell.storage_read_bytes_per_s),
            format_rate(cell.reads_per_s),
            format_bytes(cell.read_request_bytes),
            format_percent(cell.cache_served),
        )
        for cell in cells
    ]
    header = ("Reading", "ingest", "storage", "IOPS", "mean request", "from cache")
    sources = dict.fromkeys(c.storage_read_source for c in cells if c.storage_read_source)
    layers = "; ".join(sources) or "no counter could be read"
    return [
        *table(header, rows, align="lrrrrr"),
        *paragraph(f"Ingest is what training consumed. Storage by {layers}.", rest="  "),
        *(line for text in requests(cells) for line in paragraph(text, rest="  ")),
        *_footnotes(cells, "storage_read_bytes_per_s", "reads_per_s", "read_request_bytes"),
    ]


def _reconciliations(summary: Summary) -> list[str]:
    known = [(cell, cell.reconciliation) for cell in summary.cells if cell.reconciliation]
    if not known:
        return []
    rows = [
        (
            cell_name(cell),
            format_bytes(count.consumed_bytes),
            format_bytes(count.requested_bytes),
            format_bytes(count.storage_read_bytes),
            {True: "yes", False: "NO", None: MISSING}[count.agrees],
        )
        for cell, count in known
    ]
    whom: dict[str, list[str]] = {}
    for cell, count in known:
        whom.setdefault(count.why, []).append(cell_name(cell))
    lines = table(
        ("Reconciliation", "consumed", "requested", "storage", "as expected"),
        rows,
        align="lrrrr",
    )
    for why, names in whom.items():
        who = names[0] if len(names) == 1 else f"{len(names)} cells"
        lines += paragraph(f"{who}: {why}", first="  ", rest="    ")
    return lines


def _ceilings(summary: Summary) -> list[str]:
    if not summary.ceilings:
        return []
    header = ("Ceilings, samples/s", "compute", "prep", "fetch", "storage", "bottleneck")
    rows = [
        (
            f"{one.topology} {one.loader}",
            *(format_rate(e.median if e else None) for e in stages(one).values()),
            one.bottleneck,
        )
        for one in summary.ceilings
    ]
    why = no_storage_ceiling(summary)
    storage = (
        f"Storage ceiling: {format_bandwidth(storage_ceiling(summary))} (fio)."
        if why is None
        else f"No storage ceiling is claimed: {why}."
    )
    return [
        *table(header, rows, align="lrrrrl"),
        *paragraph(storage, rest="  "),
        *_gaps(
            ((f"{one.topology} {one.loader}", one.reasons) for one in summary.ceilings),
            "compute",
            "prep",
            "fetch",
        ),
    ]


def _demand(summary: Summary) -> list[str]:
    if not summary.demand:
        return []
    header = ("Required", "AU", "bandwidth", "range", "peak", "IOPS", "basis")
    rows = [_demand_row(one) for one in summary.demand]
    return [
        *table(header, rows, align="lrrrrrl"),
        *_gaps(
            ((one.topology, one.reasons) for one in summary.demand), "required_read_bytes_per_s"
        ),
    ]


def _demand_row(one: Demand) -> tuple[str, ...]:
    need = one.required_read_bytes_per_s
    known = need.low is not None and need.high is not None
    return (
        f"{one.topology} {one.phase}",
        format_percent(one.at_au),
        format_bandwidth(need.value),
        f"{format_bytes(need.low)} – {format_bytes(need.high)}" if known else MISSING,
        format_bandwidth(one.peak_read_bytes_per_s),
        format_rate(one.required_reads_per_s),
        one.basis,
    )


def _provenance(summary: Summary) -> list[str]:
    data, mount, host = summary.dataset, summary.dataset.mount, summary.host
    size = data.stored_bytes_per_sample
    lines = [
        *paragraph(
            f"{data.path}: {data.samples:,} samples in {data.classes:,} classes, "
            f"{format_bytes(data.stored_bytes)}; per sample mean {format_bytes(size.mean)}, "
            f"median {format_bytes(size.p50)}, p95 {format_bytes(size.p95)}, "
            f"p99 {format_bytes(size.p99)}",
            first="dataset  ",
        ),
        *paragraph(f"{mount.path} ({mount.filesystem} on {mount.source})", first="mount    "),
        *paragraph(counter(summary), first="counter  "),
        *paragraph(
            f"{host.hostname}: {host.cpu}, {host.usable_cpus:g} of {host.logical_cpus} CPUs "
            f"usable, {format_memory(host.memory_bytes)}, Linux {host.kernel}",
            first="host     ",
        ),
        *paragraph(sampler_cost(summary), first="sampler  "),
    ]
    trained = _training(summary)
    if trained is not None:
        lines += paragraph(trained, first="training ")
    if data.quarantined_count:
        lines += paragraph(f"{data.quarantined_count:,} files left out", first="         ")
    return lines


def _training(summary: Summary) -> str | None:
    """Proof from the last cell that training was real; None when nothing real trained."""
    known = [cell for cell in summary.cells if cell.training is not None]
    if not known or (proof := known[-1].training) is None:
        return None
    first, last = format_rate(proof.loss_first), format_rate(proof.loss_last)
    return (
        f"loss {first} to {last}, weights {'changed' if proof.weights_changed else 'NOT changed'}, "
        f"ranks {'hold equal' if proof.ranks_agree else 'hold DIFFERENT'} weights"
    )


def _footnotes(cells: Iterable[CellSummary], *fields: str) -> list[str]:
    return _gaps(map(reasons_of, cells), *fields)


def _gaps(reasons: Iterable[tuple[str, Mapping[str, str]]], *fields: str) -> list[str]:
    """Why a dash stands in the table above."""
    return [
        line
        for gap in gaps(reasons, fields=fields)[:_FOOTNOTES]
        for line in paragraph(
            f"{MISSING} {gap.field} of {gap.owner}: {gap.reason}.", first="  ", rest="    "
        )
    ]
