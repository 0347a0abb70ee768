"""`ioprof run -- CMD …`: record any command, unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioprof.cli import untouched
from ioprof.errors import MeasureError, UsageError

if TYPE_CHECKING:
    from ioprof.cli.dataview import DataView
    from ioprof.record.store import RunDirectory


def run(
    command: Annotated[list[str], typer.Argument(help="The command, after --.")],
    *,
    data: Annotated[
        Path | None,
        typer.Option(parser=untouched.path, help="The folder that it reads: its mount is counted."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory [reports/DATE-HOST-run].")] = None,
    interval: Annotated[str, typer.Option(help="Between two samples of the counters.")] = "100ms",
    duration: Annotated[
        str | None, typer.Option(help="Ask it to end (SIGTERM) after this long [never].")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier run at --out.")
    ] = False,
) -> None:
    """Run a command as if alone, record what it reads, and pass its exit status through.

    Its input, output, terminal and signals are its own; what ioprof has to say goes to standard
    error when it has ended. `ioprof report RUN` says it again.
    """
    from ioprof.record.store import RunDirectory
    from ioprof.study.command import record_command
    from ioprof.units import parse_duration_s

    interval_s = parse_duration_s(interval)
    if interval_s <= 0:
        raise UsageError("--interval must be longer than nothing.")
    duration_s = None if duration is None else parse_duration_s(duration)
    view = None if data is None else _look(data)
    root = _own(out or _default_out())
    if data is not None and root.absolute().is_relative_to(data.absolute()):
        raise UsageError(
            f"The run directory {root} lies under {data}, and ioprof never writes there. "
            "Give another --out."
        )
    directory = RunDirectory.create(root, overwrite=force)
    ended = record_command(
        command,
        run=directory,
        data=data,
        mount=view.mount if view else None,
        stack=view.stack if view else None,
        files=view.paths if view else (),
        interval_s=interval_s,
        duration_s=duration_s,
    )
    show_recorded(directory, as_json=False, err=True)
    typer.echo(f"run       {root}", err=True)
    raise typer.Exit(ended.exit_status or 0)


def show_recorded(run: RunDirectory, *, as_json: bool, err: bool = False) -> None:
    """Print what a recorded command read, and leave it in the run directory."""
    from ioprof.analysis.recorded import totals
    from ioprof.record.store import encode, write_json
    from ioprof.report.recorded import render

    found = totals(run)
    write_json(run.summary, found)
    typer.echo(encode(found).decode() if as_json else render(found), nl=not as_json, err=err)


def _look(data: Path) -> DataView:
    from ioprof.cli.dataview import look

    view = look(data)
    if not view.usable:
        check = next(check for check in view.checks if check.state == "no")
        remedy = f" Remedy: {check.remedy}." if check.remedy else ""
        raise MeasureError(f"{check.says}.{remedy}")
    return view


def _own(root: Path) -> Path:
    """A folder of this rank's own, where an engine starts ioprof once for each of several ranks:
    all of them are given the same --out."""
    import socket

    from ioprof import mark

    if mark.world_size() < 2:
        return root
    return root / f"{socket.gethostname()}-rank-{mark.rank()}"


def _default_out() -> Path:
    import socket
    from datetime import datetime

    stamp = datetime.now().strftime("%Y-%m-%d-%H%M%S")
    return Path("reports") / f"{stamp}-{socket.gethostname()}-run"
