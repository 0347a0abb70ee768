"""Which counter says what storage delivered, and how that was found out.

Before the first cell a known amount is read from existing files, and every counter is looked at
before and after: that is a *calibration*. What each counter saw of it is its ratio.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ioprof.record.reading import Layer, Scope

Access = Literal["read", "warm", "mmap", "direct"]
"""How the known amount was read: `read()` of evicted files, `read()` again of what the page cache
then holds, through `mmap` of evicted files, and with `O_DIRECT`."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One known amount, read in one way."""

    access: Access
    read_bytes: int
    """What the reader got; 0 where this access is not possible here, and then `reason` says why."""
    page_bytes: int
    """The same in whole pages, which is what storage delivers."""
    seconds: float
    resident_fraction: float | None = None
    """Share of the files that was in the page cache when the reading began, as observed."""
    reason: str | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A counter of bytes, and the share of the known amount that it saw, by access.

    A ratio is None where the counter could not be compared (it fell, or nothing was read so).
    """

    source: str
    instances: tuple[str, ...]
    layer: Layer
    scope: Scope
    counter: str
    """Name of the counter in the source's readings, for instance `read_bytes_total`."""
    ratios: dict[Access, float | None]
    background_bytes_per_s: float | None = None
    """What it moved by while nothing was read here: others' work. Taken off the ratios."""
    note: str | None = None

    @property
    def name(self) -> str:
        """As printed: "nfs.wire /mnt/a (wire, mount)"."""
        instances = [one for one in self.instances if one != "tree"]
        shown = " + ".join(instances[:4])
        if len(self.instances) > 4:
            shown += f" and {len(self.instances) - 4} more"
        whose = {"process": "this process tree", "device": "whole device", "host": "whole node"}
        scope = whose.get(self.scope.value, f"whole {self.scope.value}")
        return " ".join([self.source, *filter(None, [shown]), f"({self.layer.value}, {scope})"])


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried, what each counter saw, and the one that is believed.

    `headline` is None when no counter below the process saw the reads; `why` then says so.
    """

    trials: tuple[Trial, ...]
    candidates: tuple[Candidate, ...]
    headline: Candidate | None
    runner_up: Candidate | None
    why: str
    """One sentence: why this one was chosen, or why none was."""
    blind_spots: tuple[str, ...] = ()
    """What the headline cannot see, and whose reads it includes."""
