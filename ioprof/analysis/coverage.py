"""How much of each bin lies in some spans of time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ioprof.analysis.counters import Floats


def covered_s(spans: Sequence[tuple[float, float]], edges: Floats) -> Floats:
    """Seconds of each bin between two `edges` that the spans cover; they come in order and do not
    overlap."""
    times = np.array(spans)
    lasted = np.stack([np.zeros(len(spans)), times[:, 1] - times[:, 0]], axis=1)
    return np.asarray(np.diff(np.interp(edges, times.ravel(), np.cumsum(lasted.ravel()))))
