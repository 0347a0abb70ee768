"""NVIDIA GPUs by a running dcgm-exporter: what NVML does not tell, such as tensor cores in use.

Only where the environment names it: IOPROF_DCGM_METRICS=http://127.0.0.1:9400/metrics. The exporter
must be on this machine; nothing else is ever asked.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.exporter import Exporter
from ioprof.sources.source import Fact, Found, Roots, Target

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

VARIABLE = "IOPROF_DCGM_METRICS"
_MIB = 2**20
_PERCENT = 0.01
_COUNTERS: dict[str, tuple[str, float]] = {
    "pcie_receive_bytes_total": ("DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL", 1),
    "pcie_transmit_bytes_total": ("DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL", 1),
}
_SHARES: dict[str, tuple[str, float]] = {
    "gpu_kernel_busy": ("DCGM_FI_DEV_GPU_UTIL", _PERCENT),
    "memory_busy": ("DCGM_FI_DEV_MEM_COPY_UTIL", _PERCENT),
    "graphics_engine_active": ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1),
    "sm_active": ("DCGM_FI_PROF_SM_ACTIVE", 1),
    "sm_occupancy": ("DCGM_FI_PROF_SM_OCCUPANCY", 1),
    "tensor_active": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1),
    "dram_active": ("DCGM_FI_PROF_DRAM_ACTIVE", 1),
}
_RATES: dict[str, tuple[str, float]] = {
    # Rates over the exporter's own window, whatever type its configuration gives them.
    "pcie_receive_bytes_per_second": ("DCGM_FI_PROF_PCIE_RX_BYTES", 1),
    "pcie_transmit_bytes_per_second": ("DCGM_FI_PROF_PCIE_TX_BYTES", 1),
}
_LEVELS: dict[str, tuple[str, float]] = {
    "memory_used_bytes": ("DCGM_FI_DEV_FB_USED", _MIB),
    "power_watts": ("DCGM_FI_DEV_POWER_USAGE", 1),
}
_GAUGES = _SHARES | _RATES | _LEVELS
_WANTED = {metric for metric, _ in (_COUNTERS | _GAUGES).values()}
_BLANKS = (2**31 - 16, 2**47)
"""Where the few numbers begin that mean "no value": of 32 bits, and of floats."""
_BLANK_SPAN = 16
_BLANK_64 = 2**63 - 1024
"""Of 64 bits, as near as a float comes to it."""
_CHECK = f"curl -s ${VARIABLE} | grep "

FACTS: tuple[Fact, ...] = (
    Fact(
        source="dcgm",
        layer=Layer.HOST,
        scope=Scope.DEVICE,
        counters=tuple(_SHARES),
        file=f"dcgm-exporter's text, where {VARIABLE} names it",
        field="DCGM_FI_DEV_GPU_UTIL, MEM_COPY_UTIL; DCGM_FI_PROF_GR_ENGINE_ACTIVE, SM_*, *_ACTIVE",
        unit="per cent (DEV), share 0-1 (PROF)",
        since="dcgm-exporter; PROF fields on data centre GPUs, where its configuration has them",
        caveat="GPU_UTIL is time with any kernel; PROF fields stop while another profiler runs",
        check=_CHECK + "-E 'UTIL|ACTIVE|OCCUPANCY'",
    ),
    Fact(
        source="dcgm",
        layer=Layer.HOST,
        scope=Scope.DEVICE,
        counters=tuple(_RATES),
        file=f"dcgm-exporter's text, where {VARIABLE} names it",
        field="DCGM_FI_PROF_PCIE_RX_BYTES and TX_BYTES",
        unit="bytes per second, headers included",
        since="dcgm-exporter, where its configuration has them",
        caveat="a rate even where the text calls it a counter: never added up; RX: host to device",
        check=_CHECK + "PCIE",
    ),
    Fact(
        source="dcgm",
        layer=Layer.HOST,
        scope=Scope.DEVICE,
        counters=tuple(_COUNTERS),
        file=f"dcgm-exporter's text, where {VARIABLE} names it",
        field="DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL and TX_BYTES_TOTAL",
        unit="bytes",
        since="recent DCGM (fields 1091 and 1092), where the configuration has them",
        caveat="in the GPU's direction: RX is host to device",
        check=_CHECK + "PCIE",
    ),
    Fact(
        source="dcgm",
        layer=Layer.HOST,
        scope=Scope.DEVICE,
        counters=tuple(_LEVELS),
        file=f"dcgm-exporter's text, where {VARIABLE} names it",
        field="DCGM_FI_DEV_FB_USED, DCGM_FI_DEV_POWER_USAGE",
        unit="MiB, watts",
        since="dcgm-exporter",
        caveat="as old as the exporter's own interval, 30 s by default",
        check=_CHECK + "-E 'FB_USED|POWER_USAGE'",
    ),
)  # fmt: skip


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The exporter that the environment names; nothing when it names none."""
    address = os.environ.get(VARIABLE)
    if not address:
        return []
    try:
        exporter = Exporter(address)
    except ValueError:
        return [
            Unavailable(
                source="dcgm",
                reason=f"{VARIABLE} names no exporter of this machine: {address}",
                remedy=f"{VARIABLE}=http://127.0.0.1:9400/metrics",
            )
        ]
    return [Aside(DcgmSource(exporter))]


def parse(text: bytes) -> dict[str, dict[str, Number]]:
    """Values by our names, by GPU: "0", or "0/3" for the third instance of a GPU with MIG.

    What is not a number, and what DCGM marks as blank, is left out.
    """
    found: dict[str, dict[str, Number]] = {}
    for line in text.decode(errors="replace").splitlines():
        if line.partition("{")[0].split(" ", 1)[0] in _WANTED:
            for sample in _samples(line):
                gpu = sample.labels.get("gpu")
                if gpu and _is_value(sample.value):
                    part = sample.labels.get("GPU_I_ID")
                    instance = f"{gpu}/{part}" if part else gpu
                    found.setdefault(instance, {})[sample.name] = sample.value
    return found


def _samples(line: str) -> list[Sample]:
    # Imported where an exporter is read: hardly any machine has one.
    from prometheus_client.parser import text_string_to_metric_families

    # Line by line: one that cannot be read must not take the others with it.
    try:
        return [s for family in text_string_to_metric_families(line) for s in family.samples]
    except (ValueError, LookupError):
        return []


def _is_value(value: float) -> bool:
    blank = value >= _BLANK_64 or any(b <= value < b + _BLANK_SPAN for b in _BLANKS)
    return math.isfinite(value) and value >= 0 and not blank


def _named(
    values: Mapping[str, Number], names: Mapping[str, tuple[str, float]]
) -> dict[str, Number | None]:
    return {
        name: None if metric not in values else values[metric] * scale
        for name, (metric, scale) in names.items()
    }


class DcgmSource:
    """Readings "dcgm", one for each GPU, or for each instance of one."""

    name = "dcgm"
    every_ticks = 1

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def read(self) -> Iterable[Reading]:
        """One look; OSError when the exporter does not answer in time."""
        for gpu, values in parse(self._exporter.fetch()).items():
            yield Reading(
                source="dcgm",
                instance=gpu,
                layer=Layer.HOST,
                scope=Scope.DEVICE,
                counters=_named(values, _COUNTERS),
                gauges=_named(values, _GAUGES),
            )

    def close(self) -> None:
        """Nothing is kept open."""
