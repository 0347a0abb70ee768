"""The `ioprof` command: finds the subcommand, turns errors into a sentence and a status."""

from __future__ import annotations

import sys

import typer

from ioprof.cli import compare, dataset, doctor, export, profile, report, run, watch
from ioprof.errors import IoprofError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="How much must storage deliver so that N accelerators never wait, and does it?",
)
app.command("profile")(profile.profile)
app.command(
    "run",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)(run.run)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("export")(export.export)
app.command("doctor")(doctor.doctor)
app.command("watch")(watch.watch)
app.add_typer(dataset.app, name="dataset")


@app.callback(invoke_without_command=True)
def _root(
    *,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from ioprof._version import VERSION

        typer.echo(f"ioprof {VERSION}")
        raise typer.Exit


def main() -> None:
    """Run the command line; every error of ours is one message on stderr and its exit status."""
    try:
        app()
    except IoprofError as error:
        typer.echo(f"ioprof: {error}", err=True)
        sys.exit(error.exit_status)
