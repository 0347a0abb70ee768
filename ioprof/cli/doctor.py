"""`ioprof doctor`: what is visible here, what is not, why, and the remedy."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioprof.cli import untouched
from ioprof.cli.printable import printable
from ioprof.errors import EXIT_MEASURED, EXIT_NOT_MEASURED, MeasureError

if TYPE_CHECKING:
    from ioprof.cli.dataview import DataView
    from ioprof.cli.examination import Check
    from ioprof.sources.source import Fact

_WIDTH = 80
_NAME_WIDTH = 18
_MARGIN = " " * 28
_FACT = " " * 8 + "· "
_FACT_MORE = " " * 10
_MARKS = {"yes": "yes", "no": "NO", "note": "note"}
_TITLES = {
    "host": "This host",
    "data": "The data path",
    "trials": "What each counter saw of a known amount read (1.00: all of it)",
    "counters": "Counters",
    "tools": "Programs and packages",
    "accelerators": "Accelerators",
    "limits": "Limits",
}


def doctor(
    *,
    data: Annotated[
        Path | None, typer.Option(parser=untouched.path, help="A folder on the mount under test.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Say what can be counted here, what cannot, why, and what would help.

    With --data also for the mount that holds it. Nothing is written, and a mount that does not
    answer is named instead of waited for.
    """
    from ioprof._version import VERSION
    from ioprof.cli.dataview import shown
    from ioprof.record.store import encode

    checks, status = examine(data)
    if json:
        report = {"ioprof_version": VERSION, "data": data and shown(data), "checks": checks}
        typer.echo(encode(report).decode(), nl=False)
    else:
        typer.echo(render(checks))
    raise typer.Exit(status)


def examine(data: Path | None) -> tuple[list[Check], int]:
    """All checks in the order of the report, and the exit status."""
    from ioprof.cli import examination as look_at
    from ioprof.cli.dataview import look
    from ioprof.sources.source import Target

    view = None if data is None else look(data)
    target = Target(
        root_pid=os.getpid(),
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        data_path=data if view is not None and view.usable else None,
        mount=view.mount if view is not None else None,
        stack=view.stack if view is not None else None,
    )
    counters = list(look_at.counter_checks(target))
    if data is None:
        counters = [_without_data(check) for check in counters]
    checks = list(look_at.host_checks())
    if view is not None:
        checks += view.checks
        if view.usable:
            checks += _calibration(view)
    checks += counters
    checks += look_at.tool_checks()
    checks += look_at.accelerator_checks()
    checks += look_at.limit_checks()
    return checks, EXIT_MEASURED if view is None or view.usable else EXIT_NOT_MEASURED


def _calibration(view: DataView) -> list[Check]:
    """Try the counters on files of the data path; a mount that stops answering is a check, too."""
    from ioprof.calibration.calibrate import calibrate
    from ioprof.cli.examination import Check, calibration_checks

    if view.mount is None or view.stack is None:
        return []
    if not view.files:
        says = "no file with anything in it was found, so no counter could be tried"
        return [Check(area="data", name="storage bytes", state="note", says=says)]
    try:
        return list(calibration_checks(calibrate(view.paths, mount=view.mount, stack=view.stack)))
    except MeasureError as error:
        return [Check(area="data", name="storage bytes", state="no", says=str(error))]


def _without_data(check: Check) -> Check:
    import msgspec

    if check.state == "no" and check.name.startswith("block."):
        says = "depends on the mount: not looked at"
        return msgspec.structs.replace(check, says=says, remedy="give --data DIR")
    return check


def render(checks: list[Check]) -> str:
    """The checks as text of at most 80 columns."""
    lines: list[str] = []
    for area in dict.fromkeys(check.area for check in checks):
        if lines:
            lines.append("")
        lines.append(_TITLES.get(area, area))
        for check in checks:
            if check.area == area:
                lines += _lines(check)
    missing = sum(check.state == "no" for check in checks)
    lines += ["", f"{len(checks)} things looked at, {missing} not available here."]
    return "\n".join(lines)


def _lines(check: Check) -> list[str]:
    head = f"  {_MARKS[check.state]:<5} {printable(check.name):<{_NAME_WIDTH}}  "
    if len(head) > len(_MARGIN):
        # A name too long for its column has a line of its own.
        lines = [head.rstrip()[:_WIDTH], *_wrapped(printable(check.says), _MARGIN)]
    else:
        lines = _wrapped(printable(check.says), head)
    if check.remedy:
        lines += _wrapped(f"-> {printable(check.remedy)}", _MARGIN)
    for fact in check.facts:
        lines += _fact(fact)
    return lines


def _fact(fact: Fact) -> list[str]:
    """Where counters are from, and how to check them by hand."""
    names = ", ".join(fact.counters)
    return [
        *_wrapped(f"{names}: {fact.file}, {fact.field}, in {fact.unit}; {fact.since}", _FACT),
        *_wrapped(fact.caveat, _FACT_MORE),
        *_wrapped(f"$ {fact.check}", _FACT_MORE),
    ]


def _wrapped(text: str, first: str) -> list[str]:
    rest = " " * min(len(first), len(_MARGIN))
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    ) or [first.rstrip()]
