"""The report as one HTML file: no request, no script, light and dark, fit for paper."""

from __future__ import annotations

import base64

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from ioprof.record.summary import Ceilings, CellSummary, Summary
from ioprof.report.answer import (
    EMULATION_MEANS,
    all_findings,
    answer,
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
from ioprof.report.figure import Figure
from ioprof.report.gap import Gap, gaps, reasons_of
from ioprof.report.layout import glued
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

_CELL_FIELDS = (
    "samples_per_s",
    "step_s",
    "au",
    "prep_stall_s",
    "fetch_stall_s",
    "consumed_bytes_per_s",
    "requested_bytes_per_s",
    "storage_read_bytes_per_s",
    "peak_storage_read_bytes_per_s",
    "reads_per_s",
    "read_request_bytes",
    "read_latency_s",
    "cache_served",
    "read_amplification",
    "io_pressure",
    "metadata_ops_per_s",
    "cpu_busy",
    "gpu_kernel_busy",
)
_DEMAND_FIELDS = (
    "required_read_bytes_per_s",
    "peak_read_bytes_per_s",
    "required_reads_per_s",
    "required_metadata_ops_per_s",
    "required_write_bytes_per_s",
)


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """One figure in both themes, as data URIs."""

    name: str
    title: str
    caption: str
    alt: str
    timeline: bool
    """It shows one cell, not the whole run."""
    light: str
    dark: str


def render(summary: Summary, light: list[Figure], dark: list[Figure]) -> str:
    """The whole page. `light` and `dark` are the same figures in the two themes."""
    environment = Environment(
        loader=PackageLoader("ioprof.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        bandwidth=format_bandwidth,
        bytes=format_bytes,
        memory=format_memory,
        percent=format_percent,
        rate=format_rate,
        seconds=format_seconds,
        share=share,
    )
    cells = trained_cells(summary)
    return environment.get_template("report.html.j2").render(
        summary=summary,
        answer=glued(answer(summary)),
        headroom=glued(_sentence(summary.headroom.sentence)),
        emulated=emulation(summary),
        emulation_means=EMULATION_MEANS,
        findings=all_findings(summary),
        cells=cells,
        compute_s={cell.id: summary.synthetic_step_s(cell.topology) for cell in cells},
        reconciled=[cell for cell in summary.cells if cell.reconciliation is not None],
        trained=[cell for cell in cells if cell.training is not None],
        pictures=[_picture(*both) for both in zip(light, dark, strict=True)],
        ceiling=storage_ceiling(summary),
        no_ceiling=no_storage_ceiling(summary),
        missing=MISSING,
        name=cell_name,
        spread=_spread,
        stages=_stages,
        gaps=_gaps(summary),
        requests=requests,
        counter=counter(summary),
        sampler=sampler_cost(summary),
    )


def _sentence(text: str) -> str:
    text = text.strip()
    stop = "" if text.endswith((".", "!", "?")) else "."
    return f"{text[:1].upper()}{text[1:]}{stop}"


def _picture(light: Figure, dark: Figure) -> Picture:
    return Picture(
        name=light.name,
        title=light.title,
        caption=light.caption,
        alt=f"{light.title.rstrip('.')}. {light.alt}",
        timeline=light.name.startswith("timeline-"),
        light=_uri(light.svg),
        dark=_uri(dark.svg),
    )


def _uri(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"


def _spread(cell: CellSummary) -> str:
    rate = cell.samples_per_s
    if rate is None or rate.low is None or rate.high is None:
        return ""
    return f"{format_rate(rate.low)}–{format_rate(rate.high)}"


def _stages(one: Ceilings) -> list[tuple[str, str, str]]:
    """Name, value and interval of each ceiling."""
    rows = []
    for name, value in stages(one).items():
        low = value.low if value else None
        high = value.high if value else None
        known = low is not None and high is not None
        interval = f"{format_rate(low)}–{format_rate(high)}" if known else ""
        rows.append((name, format_rate(value.median if value else None), interval))
    return rows


def _gaps(summary: Summary) -> list[Gap]:
    """Why a dash stands in a table of the page."""
    cells = trained_cells(summary)
    return [
        *gaps(map(reasons_of, cells), fields=_CELL_FIELDS),
        *gaps(
            ((f"{one.topology} {one.loader}", one.reasons) for one in summary.ceilings),
            fields=("compute", "prep", "fetch", "storage"),
        ),
        *gaps(((one.topology, one.reasons) for one in summary.demand), fields=_DEMAND_FIELDS),
        *gaps([("headroom", summary.headroom.reasons)], fields=("available_read_bytes_per_s",)),
    ]
