"""`ioprof compare A B [C …]`: is B other than A, and is that significant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ioprof.errors import EXIT_INVALID, EXIT_MEASURED, MeasureError, UsageError

if TYPE_CHECKING:
    from ioprof.record.comparison import Comparison, Difference

_CONDITION = re.compile(r"\s*([a-z_0-9]+)\s*([<>])\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*%\s*")


class Condition(NamedTuple):
    """When a difference is a failure: below or above so many per cent."""

    name: str
    below: bool
    relative: float

    def holds(self, one: Difference) -> bool:
        """Whether a difference is one; only what is significant fails."""
        value = one.relative.value
        if one.name != self.name or not one.significant or value is None:
            return False
        return value < self.relative if self.below else value > self.relative


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two runs or more; the first is the measure.")],
    *,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(help="Exit with 1 if so in any cell: 'samples_per_s < -5%'."),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare runs that did different work.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the differences into this .png or .svg.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Put runs side by side, cell by cell: each difference with its interval, and whether it is
    significant. Refuses runs of different work.
    """
    from ioprof.analysis.compare import NAMES
    from ioprof.analysis.compare import compare as side_by_side
    from ioprof.record.store import RunDirectory, encode
    from ioprof.report.comparison import render

    if len(runs) < 2:
        raise UsageError("compare needs two runs or more. Give the directories of both.")
    conditions = [parse_condition(text, names=NAMES) for text in fail_if or ()]
    found = side_by_side([RunDirectory(run) for run in runs], anyway=anyway)
    if figure is not None:
        _draw(found, figure)
    typer.echo(encode(found).decode() if json else render(found), nl=not json)
    raise typer.Exit(_status(found, conditions, quiet=json))


def parse_condition(text: str, *, names: tuple[str, ...]) -> Condition:
    """The condition of --fail-if; UsageError says how one is written."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--fail-if {text!r} is no condition. Write a number, < or >, and per cent: "
            "'samples_per_s < -5%'."
        )
    if match[1] not in names:
        raise UsageError(f"--fail-if: {match[1]} is not compared. There is: {', '.join(names)}.")
    return Condition(match[1], match[2] == "<", float(match[3]) / 100)


def _status(found: Comparison, conditions: list[Condition], *, quiet: bool) -> int:
    from ioprof.report.comparison import signed

    for condition in conditions:
        if not any(
            d.name == condition.name and d.significant is not None for d in found.differences
        ):
            raise MeasureError(
                f"--fail-if: {condition.name} could not be compared in any cell, so nothing can be "
                "said of it. See the reasons above; longer cells give more observations."
            )
    failed = [d for c in conditions for d in found.differences if c.holds(d)]
    for one in failed:
        if not quiet:
            typer.echo(f"FAILED    {one.cell}: {one.name} {signed(one.relative.value)}")
    return EXIT_INVALID if failed else EXIT_MEASURED


def _draw(found: Comparison, path: Path) -> None:
    from ioprof.report.figures.comparison import draw

    if path.suffix not in (".png", ".svg"):
        raise UsageError(f"--figure {path} is neither a .png nor a .svg. Name it so.")
    drawn = draw(found)
    try:
        path.write_bytes(drawn.png if path.suffix == ".png" else drawn.svg)
    except OSError as error:
        raise UsageError(f"--figure {path} cannot be written: {error.strerror}.") from None
