"""What storage must deliver so that the accelerators of a topology reach the target AU.

required bytes/s = α · N·M · r · s · (1 − h) · A: target utilisation, accelerators, samples per
second of one of them at that topology (from its synthetic cell), stored bytes per sample, byte hit
ratio, read amplification. Here h = 0: the first epoch, or any epoch of a dataset that no cache
holds. Check by hand: batch 400 in 0.224 s is 1,786 samples/s; of 114,660 B each that is 204.8 MB/s,
and eight of them at 90 % need 1.47 GB/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ioprof.record.estimate import Estimate, Interval
from ioprof.record.summary import Ceilings, CellSummary, Demand

_NO_METADATA = (
    "not counted here; a dataset of files costs at least one open per sample, that is the samples "
    "per second"
)


def required_bytes_per_s(
    samples_per_s: float, *, at_au: float, stored_bytes: float, amplification: float = 1.0
) -> float:
    """Bytes per second for accelerators that consume `samples_per_s` in all when never waiting."""
    return at_au * samples_per_s * stored_bytes * amplification


def demands(
    topologies: Sequence[str],
    *,
    cells: Sequence[CellSummary],
    ceilings: Sequence[Ceilings],
    stored_bytes: float,
    at_au: float,
    emulated: bool,
) -> tuple[Demand, ...]:
    """One row per measured topology, first epoch. A topology without a synthetic cell has none."""
    found = []
    for topology in topologies:
        compute = next((c.compute for c in ceilings if c.topology == topology and c.compute), None)
        if compute is None:
            continue
        cold = [c for c in cells if c.topology == topology and c.role == "cold"]
        found.append(
            _demand(
                topology,
                compute=compute,
                cold=cold,
                stored_bytes=stored_bytes,
                at_au=at_au,
                emulated=emulated,
            )
        )
    return tuple(found)


def amplification(cold: Sequence[CellSummary]) -> float | None:
    """Median read amplification of cold cells that storage really served."""
    known = [
        cell.read_amplification
        for cell in cold
        if cell.read_amplification is not None
        and cell.cache.state in ("cold", "unknown")
        and cell.verdict not in ("cache-served", "invalid")
    ]
    return median(known) if known else None


def _demand(
    topology: str,
    *,
    compute: Estimate,
    cold: Sequence[CellSummary],
    stored_bytes: float,
    at_au: float,
    emulated: bool,
) -> Demand:
    reasons = {"required_write_bytes_per_s": "this phase only reads"}
    each = _metadata_per_sample(cold)
    if each is None:
        reasons["required_metadata_ops_per_s"] = _NO_METADATA
    measured = amplification(cold)
    if measured is None:
        reasons["required_read_bytes_per_s"] = (
            "read amplification was not measured: taken as 1, so this is a lower bound"
        )

    def bytes_for(samples_per_s: float | None) -> float | None:
        if samples_per_s is None:
            return None
        return required_bytes_per_s(
            samples_per_s,
            at_au=at_au,
            stored_bytes=stored_bytes,
            amplification=1.0 if measured is None else measured,
        )

    required = bytes_for(compute.median) or 0.0
    peak = _typical([(c.peak_storage_read_bytes_per_s, c.storage_read_bytes_per_s) for c in cold])
    if peak is None:
        reasons["peak_read_bytes_per_s"] = "no cold cell of this topology ran long enough"
    sizes = [c.read_request_bytes for c in cold if c.read_request_bytes]
    if not sizes:
        reasons["required_reads_per_s"] = "the size of the reads was not measured"
    return Demand(
        topology=topology,
        accelerators=_accelerators(topology),
        phase="first-epoch",
        basis="measured",
        at_au=at_au,
        required_read_bytes_per_s=Interval(
            value=required, low=bytes_for(compute.low), high=bytes_for(compute.high)
        ),
        peak_read_bytes_per_s=None if peak is None else required * peak,
        required_reads_per_s=required / median(sizes) if sizes else None,
        required_metadata_ops_per_s=None if each is None else at_au * compute.median * each,
        required_write_bytes_per_s=None,
        emulated=emulated,
        reasons=reasons,
    )


def _metadata_per_sample(cold: Sequence[CellSummary]) -> float | None:
    """Median of the metadata operations that a sample costs."""
    known = [
        cell.metadata_ops_per_s / cell.samples_per_s.median
        for cell in cold
        if cell.metadata_ops_per_s is not None and cell.samples_per_s and cell.samples_per_s.median
    ]
    return median(known) if known else None


def _typical(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Median of peak ÷ mean."""
    ratios = [peak / mean for peak, mean in pairs if peak is not None and mean]
    return median(ratios) if ratios else None


def _accelerators(topology: str) -> int:
    nodes, _, each = topology.partition("x")
    return int(nodes) * int(each)
