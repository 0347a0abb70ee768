"""What `ioprof watch` shows: a screen of 80 columns, or one line for each interval."""

from __future__ import annotations

import textwrap
from types import TracebackType
from typing import Protocol, Self

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.live import Live
from rich.text import Text

from ioprof.cli.printable import printable
from ioprof.live.view import View
from ioprof.units import (
    MISSING,
    format_bandwidth,
    format_bytes,
    format_percent,
    format_rate,
    format_seconds,
)

WIDTH = 80
_LABEL_WIDTH = 18
_VALUE_WIDTH = 11
_NAMES = {
    "storage_read_bytes_per_s": "storage read",
    "reads_per_s": "reads",
    "read_request_bytes": "mean size",
    "read_latency_s": "mean latency",
    "metadata_ops_per_s": "metadata",
    "cache_served": "served from cache",
    "gpu_kernel_busy": "GPU busy",
    "cpu_busy": "CPU busy",
    "receive_bytes_per_s": "NIC receive",
    "processes": "processes",
}
"""How a number is called on the screen, in the order in which it stands there."""
_MANY_GPUS = 8
_WHAT_WIDTH = WIDTH - _LABEL_WIDTH - _VALUE_WIDTH - 5
"""Columns for the words after a value."""


class Display(Protocol):
    """Where views are shown, one after another."""

    def show(self, view: View, *, time: str) -> None:
        """Show the newest view; `time` is the time of day."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the terminal as it was."""


class Screen:
    """A terminal: the same lines, drawn anew for each view. The last one stays when it ends."""

    def __init__(self, *, title: str, console: Console) -> None:
        self._title = title
        self._width = min(console.width, WIDTH)
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="ellipsis")

    def show(self, view: View, *, time: str) -> None:
        """Draw the view."""
        text = render(view, title=self._title, time=time, width=self._width)
        self._live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        self._live.update(Text(f"{printable(self._title)}: looking ..."), refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()


class Lines:
    """No terminal: one line for each view; why a number is missing is said once, on stderr."""

    def __init__(self, *, console: Console, errors: Console) -> None:
        self._console = console
        self._errors = errors
        self._said: set[str] = set()

    def show(self, view: View, *, time: str) -> None:
        """Print the view's line."""
        for line in footer(view):
            if line not in self._said:
                self._said.add(line)
                self._errors.print(line, markup=False, highlight=False, soft_wrap=True)
        text = one_line(view, time=time)
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is left to do."""


def render(view: View, *, title: str, time: str, width: int = WIDTH) -> str:
    """The view as lines of at most `width` columns."""
    lines = [_spread(printable(title), time, width), ""]
    lines += [_row(label, value, what) for label, value, what in _rows(view)]
    lines += ["", *_process_lines(view)]
    lines = [_cut(line, width) for line in lines]
    missing = footer(view)
    if missing:
        lines.append("")
    for line in missing:
        lines += textwrap.wrap(line, width, subsequent_indent="  ")
    return "\n".join(lines)


def _rows(view: View) -> list[tuple[str, str, str]]:
    size, latency = format_bytes(view.read_request_bytes), format_seconds(view.read_latency_s)
    served = view.cache_served_source
    return [
        (
            "Storage read",
            format_bandwidth(view.storage_read_bytes_per_s),
            _shortened(view.storage_read_source or ""),
        ),
        ("Reads", _per_second(view.reads_per_s), f"mean size {size}, mean latency {latency}"),
        ("Metadata", _per_second(view.metadata_ops_per_s), view.metadata_ops_source or ""),
        (
            "Served from cache",
            format_percent(view.cache_served),
            _shortened(served or "") if view.cache_served is not None else "",
        ),
        ("GPU busy", format_percent(view.gpu_kernel_busy), _gpu_words(view)),
        ("CPU busy", format_percent(view.cpu_busy), "of the CPUs that may be used here"),
        ("NIC receive", format_bandwidth(view.receive_bytes_per_s), view.receive_link or ""),
    ]


def _shortened(source: str) -> str:
    """A source with many or long instances, so that its layer and scope still find room."""
    name, bracket, layer = source.rpartition(" (")
    room = _WHAT_WIDTH - cell_len(bracket + layer)
    return f"{_cut(printable(name), room)}{bracket}{layer}"


def _per_second(value: float | None) -> str:
    return MISSING if value is None else f"{format_rate(value)}/s"


def _gpu_words(view: View) -> str:
    if not view.gpus:
        return ""
    each = " ".join(format_percent(gpu.gpu_kernel_busy) for gpu in view.gpus[:_MANY_GPUS])
    more = f" and {len(view.gpus) - _MANY_GPUS} more" if len(view.gpus) > _MANY_GPUS else ""
    return f"any kernel running; {each}{more}" if len(view.gpus) > 1 else "any kernel running"


def _process_lines(view: View) -> list[str]:
    unreadable = view.unreadable_processes
    hidden = f" ({format_rate(unreadable)} may not be read)" if unreadable else ""
    head = _row("Processes", "asked for", f"{'pid':>9}  name{hidden}")
    if view.processes is None:
        return [head, _row("", MISSING, "")]
    if not view.processes:
        return [head, _row("", "", "none asked for anything")]
    return [
        head,
        *(
            _row("", format_bandwidth(one.requested_bytes_per_s), f"{one.pid:>9}  {one.name}")
            for one in view.processes
        ),
    ]


def _row(label: str, value: str, what: str) -> str:
    line = f"  {label:<{_LABEL_WIDTH}}{value:>{_VALUE_WIDTH}}   {printable(what)}"
    return line.rstrip()


def footer(view: View) -> list[str]:
    """Why numbers are missing: one sentence for all that have the same reason."""
    by_reason: dict[str, list[str]] = {}
    for key, name in _NAMES.items():
        if key in view.reasons:
            by_reason.setdefault(view.reasons[key], []).append(name)
    return [
        f"{MISSING} {', '.join(names)}: {printable(reason)}" for reason, names in by_reason.items()
    ]


def one_line(view: View, *, time: str) -> str:
    """The view in one line, always with the same parts in the same order."""
    layer = view.storage_read_layer
    busiest = view.processes[0] if view.processes else None
    parts = [
        time,
        f"read {format_bandwidth(view.storage_read_bytes_per_s)}" + (f" ({layer})" * bool(layer)),
        f"{_per_second(view.reads_per_s)} of {format_bytes(view.read_request_bytes)}",
        f"latency {format_seconds(view.read_latency_s)}",
        f"metadata {_per_second(view.metadata_ops_per_s)}",
        f"cache {format_percent(view.cache_served)}",
        f"GPU {format_percent(view.gpu_kernel_busy)}",
        f"CPU {format_percent(view.cpu_busy)}",
        f"NIC {format_bandwidth(view.receive_bytes_per_s)}",
        f"top {busiest.name} {busiest.pid}" if busiest else f"top {MISSING}",
    ]
    return printable("  ".join(parts))


def _spread(left: str, right: str, width: int) -> str:
    room = max(width - cell_len(right) - 2, 0)
    return (
        f"{_cut(left, room)}{' ' * max(width - cell_len(_cut(left, room)) - len(right), 0)}{right}"
    )


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"
