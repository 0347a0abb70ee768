"""All counter sources. A new one is its file, one line here, and one in the contract test."""

from __future__ import annotations

from typing import Protocol

from ioprof.sources import block, cpu, network, nvml, pressure, process, vmstat
from ioprof.sources.source import Found, Roots, Target


class Finder(Protocol):
    """Looks for one family of counters."""

    def __call__(self, target: Target, *, roots: Roots = ...) -> list[Found]:
        """The sources found, and an `Unavailable` for each that cannot be read here."""


FINDERS: tuple[Finder, ...] = (
    block.find,
    process.find,
    vmstat.find,
    cpu.find,
    pressure.find,
    network.find,
    nvml.find,
)


def find_all(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """What every finder gives, in the order in which a tick reads it: storage first."""
    return [found for find in FINDERS for found in find(target, roots=roots)]
