"""`ioprof report RUN`: everything again from the run directory alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioprof.errors import EXIT_INVALID, EXIT_MEASURED

if TYPE_CHECKING:
    from ioprof.record.store import RunDirectory
    from ioprof.record.summary import Summary


def report(
    run: Annotated[Path, typer.Argument(help="The directory of a run.")],
    *,
    json: Annotated[
        bool, typer.Option("--json", help="Print summary.json and nothing else.")
    ] = False,
    figures: Annotated[bool, typer.Option(help="Draw the figures and the page again.")] = True,
) -> None:
    """Recompute summary, text, figures and page of a run from what was recorded.

    Needs neither the dataset nor the machine that the run was made on.
    """
    from ioprof.cli.run import show_recorded
    from ioprof.record.store import RunDirectory

    if RunDirectory(run).recorded.exists():
        show_recorded(RunDirectory(run), as_json=json)
        return
    raise typer.Exit(show(RunDirectory(run), as_json=json, figures=figures))


def show(run: RunDirectory, *, as_json: bool, figures: bool) -> int:
    """Write and print the report of `run`; the exit status says whether it may be used."""
    from ioprof.analysis.summary import summarise
    from ioprof.analysis.timeline import timeline
    from ioprof.record.store import encode, write_json
    from ioprof.report import text
    from ioprof.report.answer import trained_cells
    from ioprof.report.write import write

    summary = summarise(run)
    write_json(run.summary, summary)
    if figures:
        found = {cell.id: timeline(run, cell.id) for cell in trained_cells(summary)}
        write(run, summary, {name: line for name, line in found.items() if line is not None})
    typer.echo(encode(summary).decode() if as_json else text.render(summary), nl=not as_json)
    return exit_status(summary)


def exit_status(summary: Summary) -> int:
    """1 when a finding makes the result invalid, else 0."""
    findings = [*summary.findings, *(f for cell in summary.cells for f in cell.findings)]
    invalid = any(finding.level == "invalid" for finding in findings)
    return EXIT_INVALID if invalid else EXIT_MEASURED
