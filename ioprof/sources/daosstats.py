"""Counters of DAOS clients, from the text that the node's agent gives to Prometheus.

One line per process, pool and container. A process that ends takes its lines with it.
"""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from ioprof.record.reading import Number
from ioprof.sources.numeral import MOST

_OPS = "client_dfs_ops_"
_METADATA = ("open", "opendir", "lookup", "stat", "getsize", "readdir")
_COUNTERS: dict[str, tuple[str, ...]] = {
    "read_bytes_total": ("client_dfs_read_bytes_sum",),
    "read_operations_total": (_OPS + "read",),
    "write_bytes_total": ("client_dfs_write_bytes_sum",),
    "write_operations_total": (_OPS + "write",),
    "open_operations_total": (_OPS + "open",),
    "lookup_operations_total": (_OPS + "lookup",),
    "getattr_operations_total": (_OPS + "stat", _OPS + "getsize"),
    "readdir_operations_total": (_OPS + "opendir", _OPS + "readdir"),
    "metadata_operations_total": tuple(_OPS + name for name in _METADATA),
}
NAMES = tuple(_COUNTERS)
_WANTED = frozenset(name for parts in _COUNTERS.values() for name in parts)

Key = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name, and its labels in order."""


def parse(text: bytes) -> dict[Key, Number]:
    """The lines that are used, each by its name and labels; others are passed over."""
    found: dict[Key, Number] = {}
    for line in text.decode(errors="replace").splitlines():
        name = line.partition("{")[0].strip()
        if name not in _WANTED:
            continue
        for sample in _samples(line):
            # Also false for what is not a number.
            if sample.name == name and 0 <= sample.value <= MOST:
                found[name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def _samples(line: str) -> list[Sample]:
    # Line by line: one that cannot be read must not take the others with it.
    try:
        return [s for family in text_string_to_metric_families(line) for s in family.samples]
    except (ValueError, LookupError):
        return []


class Tally:
    """Adds up all processes that were ever seen, so that one which ends takes nothing away."""

    def __init__(self) -> None:
        self._last: dict[Key, Number] = {}
        self._ended: dict[str, Number] = {}
        """By name: what lines had counted that began again, since a pid was given anew."""

    def counters(self, now: dict[Key, Number]) -> dict[str, Number | None]:
        """The sums by our names with one more look; None for what was never seen."""
        for key, value in now.items():
            before = self._last.get(key, 0)
            if value < before:
                self._ended[key[0]] = self._ended.get(key[0], 0) + before
            self._last[key] = value
        sums = dict(self._ended)
        for (name, _), value in self._last.items():
            sums[name] = sums.get(name, 0) + value
        return {name: _sum(sums, parts) for name, parts in _COUNTERS.items()}


def _sum(sums: dict[str, Number], parts: tuple[str, ...]) -> Number | None:
    known = [sums[part] for part in parts if part in sums]
    return sum(known) if known else None
