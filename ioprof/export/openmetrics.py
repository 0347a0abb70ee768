"""OpenMetrics text with the time of every sample: what Prometheus takes in afterwards.

promtool tsdb create-blocks-from openmetrics FILE
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from typing import BinaryIO

from prometheus_client.core import Metric
from prometheus_client.openmetrics.exposition import generate_latest

from ioprof.export.row import cells
from ioprof.record.columns import Columns
from ioprof.record.store import NodeRecord, RunDirectory, read_node

PREFIX = "ioprof_"
_END = b"# EOF\n"


def write(run: RunDirectory, out: BinaryIO) -> None:
    """Family after family, as the format wants it; within one, series after series."""
    nodes = [(cell, read_node(path)) for cell in cells(run) for path in run.node_files(cell)]
    for name, kind in _families(nodes):
        head = True
        for cell, node in nodes:
            for columns in node.columns:
                names = columns.series.counters if kind == "counter" else columns.series.gauges
                if name in names and columns.times:
                    text = _text(name, kind, cell, node, columns)
                    out.write(text if head else _without_head(text))
                    head = head and not text
    out.write(_END)


def _families(nodes: list[tuple[str, NodeRecord]]) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], None] = {}
    for _, node in nodes:
        for columns in node.columns:
            found |= dict.fromkeys((name, "counter") for name in columns.series.counters)
            found |= dict.fromkeys((name, "gauge") for name in columns.series.gauges)
    return sorted(found)


def _text(name: str, kind: str, cell: str, node: NodeRecord, columns: Columns) -> bytes:
    series = columns.series
    family = PREFIX + name.removesuffix("_total")
    words = name.removesuffix("_total").replace("_", " ")
    metric = Metric(
        family, f"{words}, as the source told it; cumulative counts begin anywhere", kind
    )
    labels = {
        "cell": cell,
        "node": str(node.header.node),
        "hostname": node.header.hostname,
        "source": series.source,
        "instance": series.instance,
        "layer": series.layer.value,
        "scope": series.scope.value,
    }
    offset_s = node.header.clock.offset_s
    sample = f"{family}_total" if kind == "counter" else family
    for t_s, value in zip(columns.times, _column(columns, name, kind), strict=True):
        if not math.isnan(value):
            metric.add_sample(sample, labels, value, round(t_s + offset_s, 6))
    if not metric.samples:
        return b""
    text: bytes = generate_latest(_Registry(metric))  # type: ignore[no-untyped-call]
    return text.removesuffix(_END)


class _Registry:
    """One family, in the form in which prometheus_client asks for it."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


def _column(columns: Columns, name: str, kind: str) -> array[float]:
    names, flat = (
        (columns.series.counters, columns.counters)
        if kind == "counter"
        else (columns.series.gauges, columns.gauges)
    )
    return flat[names.index(name) :: len(names)]


def _without_head(text: bytes) -> bytes:
    return b"".join(line for line in text.splitlines(True) if not line.startswith(b"#"))
