"""What a rank says about itself: steps and events, as `ioprof.mark` writes them."""

from __future__ import annotations

import msgspec

Scalar = str | int | float | bool | None


class Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="step"):
    """One optimiser update on one rank; times are monotonic seconds of its node."""

    index: int
    epoch: int
    start_s: float
    end_s: float
    samples: int
    stored_bytes: int | None = None
    wait_s: float | None = None
    h2d_s: float | None = None
    phase: str = "steady"
    """"steady", or "drain": taken after the clock was stopped, to account for prefetched reads."""

    @property
    def step_s(self) -> float:
        """Step time: end of the previous step to the end of this one."""
        return self.end_s - self.start_s


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="event"):
    """Something that happened at `t_s`, by name, with plain facts.

    Names the analysis knows: `loader` (loader, workers, prefetch_batches, batch_samples, …),
    `accelerator` (name, kind, samples_per_s, source), `epoch_start`, `epoch_end` (epoch),
    `quarantine` (file, why), `trained` (loss_first, loss_last, weights_changed, weights_digest).
    """

    t_s: float
    name: str
    fields: dict[str, Scalar] = {}
