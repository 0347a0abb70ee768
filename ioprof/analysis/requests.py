"""What was asked of a filesystem beside bytes: metadata operations, and the sizes of its reads."""

from __future__ import annotations

from collections.abc import Callable

from ioprof.analysis.counters import CounterLog
from ioprof.record import sizes
from ioprof.record.reading import Role, Scope, Series
from ioprof.record.summary import RequestSizes, Window

_METADATA = "metadata_operations_total"
_NARROW = (Scope.PROCESS, Scope.MOUNT, Scope.DEVICE, Scope.HOST)


def metadata_operations(
    log: CounterLog, *, start_s: float, end_s: float, whole: bool = False
) -> tuple[float | None, str | None]:
    """Opens, lookups, attribute and directory reads of the span, and the source that tells them.

    Of several sources the one that includes the least of others' work.
    """
    source = _narrowest(log, lambda series: _METADATA in series.counters)
    if source is None:
        return None, None
    grown = [
        _grown(log, one, _METADATA, start_s=start_s, end_s=end_s, whole=whole)
        for one in log.instances(source)
    ]
    if any(value is None for value in grown):
        return None, None
    return sum(value or 0.0 for value in grown), source


def request_sizes(log: CounterLog, window: Window) -> RequestSizes | None:
    """The histogram of the window, all parts of the mount together; None when none was recorded."""
    source = _narrowest(log, lambda series: any(map(sizes.edge, series.counters)))
    if source is None:
        return None
    counts = dict.fromkeys(sizes.names(), 0.0)
    for one in log.instances(source):
        for name in counts:
            grown = (
                _grown(log, one, name, start_s=window.start_s, end_s=window.end_s)
                if name in one.counters
                else 0.0
            )
            if grown is None:
                return None
            counts[name] += grown
    *within, larger = counts.values()
    return RequestSizes(source=source, up_to_bytes=sizes.EDGES, reads=tuple(within), larger=larger)


def _narrowest(log: CounterLog, tells: Callable[[Series], bool]) -> str | None:
    found = [one for one in log.every() if one.role in (None, Role.TOP) and tells(one)]
    return min(found, key=lambda one: _NARROW.index(one.scope)).source if found else None


def _grown(
    log: CounterLog, series: Series, name: str, *, start_s: float, end_s: float, whole: bool = False
) -> float | None:
    grown = log.growth(
        series.source, series.instance, name, start_s=start_s, end_s=end_s, whole=whole
    )
    return grown.value
