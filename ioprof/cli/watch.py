"""`ioprof watch --data DIR`: the live view of the same counters that a run records."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ioprof.cli import untouched
from ioprof.errors import EXIT_MEASURED, MeasureError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from ioprof.cli.dataview import DataView
    from ioprof.cli.openmetrics import Address, Exporter
    from ioprof.cli.screen import Display
    from ioprof.live.view import View
    from ioprof.sources.source import Target

_SHORTEST_S = 0.1


def watch(
    *,
    data: Annotated[
        Path, typer.Option(parser=untouched.path, help="A folder on the mount to watch.")
    ],
    interval: Annotated[str, typer.Option(help="Between two looks at the counters.")] = "1s",
    duration: Annotated[str | None, typer.Option(help="End after this long [never].")] = None,
    once: Annotated[bool, typer.Option("--once", help="Two looks, one view, and end.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print views as JSON, in base units.")
    ] = False,
    listen: Annotated[
        str | None,
        typer.Option(help="Serve OpenMetrics here too: 127.0.0.1:9400, [::1]:9400 or :9400."),
    ] = None,
    listen_anywhere: Annotated[
        bool,
        typer.Option("--listen-anywhere", help="Let --listen be reached from other machines."),
    ] = False,
) -> None:
    """Show what storage delivers now, how busy CPUs and GPUs are, and who reads.

    Nothing is recorded, nothing is written, and the data is only read by others. Ctrl-C ends it.
    """
    from ioprof.units import parse_duration_s

    interval_s = parse_duration_s(interval)
    duration_s = None if duration is None else parse_duration_s(duration)
    if interval_s < _SHORTEST_S:
        raise UsageError(f"--interval {interval} is too short. Give 100ms or more.")
    if duration_s is not None and duration_s < interval_s:
        raise UsageError(f"--duration {duration} ends before the first --interval of {interval}.")
    address = _address(listen, once=once, anywhere=listen_anywhere)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        found = _look(data)
        with contextlib.ExitStack() as stack:
            exporter = None if address is None else _serve(stack, address)
            views = _views(_target(data, found), exporter, interval_s=interval_s, once=once)
            stack.enter_context(contextlib.closing(views))
            _show(views, data, found, once=once, json=json, end_s=duration_s, interval_s=interval_s)
    raise typer.Exit(EXIT_MEASURED)


def _address(listen: str | None, *, once: bool, anywhere: bool) -> Address | None:
    if listen is None:
        if anywhere:
            raise UsageError("--listen-anywhere does nothing alone. Give --listen ADDRESS:PORT.")
        return None
    if once:
        raise UsageError("--once ends before anybody could ask --listen. Leave out one of them.")
    from ioprof.cli.openmetrics import parse_address

    return parse_address(listen, anywhere=anywhere)


def _look(data: Path) -> DataView:
    """The data path as a child saw it; the error that says what is wrong with it."""
    from ioprof.cli.dataview import look

    found = look(data)
    if found.usable:
        return found
    wrong = next(check for check in found.checks if check.state == "no")
    remedy = f" {wrong.remedy[:1].upper()}{wrong.remedy[1:]}." if wrong.remedy else ""
    raise MeasureError(f"{wrong.says.rstrip('.')}.{remedy}")


def _target(data: Path, found: DataView) -> Target:
    from ioprof.sources.source import Target

    return Target(
        # No tree is recorded: what the whole node asks for is what the cache may have served.
        root_pid=1,
        excluded_pids=frozenset((os.getpid(),)),
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        data_path=data.absolute(),
        mount=found.mount,
        stack=found.stack,
    )


def _views(
    target: Target, exporter: Exporter | None, *, interval_s: float, once: bool
) -> Generator[tuple[float, View], None, None]:
    """Seconds since the first look, and the view of each later one."""
    from ioprof.clock import MonotonicClock, ticks
    from ioprof.live.looks import Looks
    from ioprof.live.processes import PERIOD_S, Processes
    from ioprof.live.view import view
    from ioprof.sources.registry import find_all

    clock = MonotonicClock()
    processes = Processes(clock=clock, period_s=max(PERIOD_S, interval_s))
    with Looks(find_all(target), clock=clock) as looks:
        start_s = clock.now_s()
        for index, t_s in ticks(clock, interval_s=interval_s, start_s=start_s):
            look, top = looks.take(fresh=once), processes.top(fresh=once)
            if exporter is not None:
                exporter.look = look
            if index > 0:
                yield t_s - start_s, view(look, top)


def _serve(stack: contextlib.ExitStack, address: Address) -> Exporter:
    """An exporter that is served until the stack is left; it is handed each look."""
    from ioprof.cli.openmetrics import Exporter, Listener

    exporter = Exporter()
    listener = stack.enter_context(Listener(exporter, address=address))
    typer.echo(f"OpenMetrics at {listener.address.url}", err=True)
    return exporter


def _show(
    views: Iterator[tuple[float, View]],
    data: Path,
    found: DataView,
    *,
    once: bool,
    json: bool,
    interval_s: float,
    end_s: float | None,
) -> None:
    from datetime import datetime

    import msgspec

    from ioprof.clock import now_iso
    from ioprof.record.store import encode

    display = None if json or once else _display(data, found)
    with display or contextlib.nullcontext():
        for since_s, view in views:
            now = now_iso()
            time = datetime.fromisoformat(now).strftime("%H:%M:%S")
            if json:
                report = _report(view, data, found, time=now, interval_s=interval_s)
                # Many of them are one a line, for programs that read line by line.
                text = encode(report) if once else msgspec.json.encode(report) + b"\n"
                typer.echo(text.decode(), nl=False)
            elif display is None:
                from ioprof.cli.screen import render

                typer.echo(render(view, title=_title(data, found), time=time))
            else:
                display.show(view, time=time)
            if once or (end_s is not None and since_s >= end_s):
                return


def _display(data: Path, found: DataView) -> Display:
    from rich.console import Console

    from ioprof.cli.screen import Lines, Screen

    console: Console = Console(highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        return Screen(title=_title(data, found), console=console)
    return Lines(console=console, errors=Console(stderr=True, highlight=False))


def _title(data: Path, found: DataView) -> str:
    from ioprof.cli.dataview import shown

    mount = found.mount
    on = "" if mount is None else f" on {mount.filesystem} {mount.source or mount.path}"
    return f"{shown(data)}{on}"


def _report(
    view: View, data: Path, found: DataView, *, time: str, interval_s: float
) -> dict[str, Any]:
    """A view with what it is of. The keys stay; numbers are in base units, null with a reason."""
    from ioprof._version import VERSION
    from ioprof.cli.dataview import shown

    return {
        "ioprof_version": VERSION,
        "time": time,
        "data": shown(data),
        "mount": found.mount,
        "interval_s": interval_s,
        **{name: getattr(view, name) for name in view.__struct_fields__},
    }
