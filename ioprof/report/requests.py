"""Sentences on what was asked of the filesystem: sizes of its reads, metadata operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ioprof.record.summary import CellSummary, RequestSizes
from ioprof.report.answer import cell_name
from ioprof.units import format_memory, format_rate


def requests(cells: Iterable[CellSummary]) -> Iterator[str]:
    """One sentence for each kind that is known of some cell."""
    known = list(cells)
    # The few reads of a cell that the page cache serves are not its own.
    fed = [c for c in known if c.cache.asked != "warm"]
    sized = [(c, s) for c in fed if (s := c.read_request_sizes) is not None and _reads(s)]
    if sized:
        told = _once(
            [(cell_name(cell), _quantiles(sizes)) for cell, sizes in sized], "cell that storage fed"
        )
        yield f"Request sizes by {sized[0][1].source}: {told}."
    counted = [c for c in known if c.metadata_ops_per_s is not None]
    if counted:
        told = _once(
            [(cell_name(c), f"{format_rate(c.metadata_ops_per_s)}/s") for c in counted], "cell"
        )
        source = counted[0].metadata_ops_source
        yield f"Metadata operations past the kernel's own caches, by {source}: {told}."


def _once(told: list[tuple[str, str]], noun: str) -> str:
    """What is the same of several cells, said once behind their names."""
    cells: dict[str, list[str]] = {}
    for name, what in told:
        cells.setdefault(what, []).append(name)
    if len(cells) == 1 and len(told) > 1:
        return f"{told[0][1]} in every {noun}"
    return "; ".join(f"{', '.join(names)}: {what}" for what, names in cells.items())


def at_most_bytes(sizes: RequestSizes, share: float) -> int | None:
    """The edge below which at least `share` of the reads lie; None when it is beyond the last."""
    wanted, below = share * _reads(sizes), 0.0
    for edge, count in zip(sizes.up_to_bytes, sizes.reads, strict=True):
        below += count
        if below >= wanted:
            return edge
    return None


def _reads(sizes: RequestSizes) -> float:
    return sum(sizes.reads) + sizes.larger


def _quantiles(sizes: RequestSizes) -> str:
    return f"half {_edge(sizes, 0.5)}, 95 % {_edge(sizes, 0.95)}"


def _edge(sizes: RequestSizes, share: float) -> str:
    edge = at_most_bytes(sizes, share)
    # Sizes of requests are powers of two by nature.
    return (
        f"up to {format_memory(edge)}"
        if edge is not None
        else f"beyond {format_memory(sizes.up_to_bytes[-1])}"
    )
