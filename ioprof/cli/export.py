"""`ioprof export RUN --to FORMAT`: a run in the formats of other tools."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from ioprof.errors import NotARunError, UsageError


def export(
    run: Annotated[Path, typer.Argument(help="The directory of a run.")],
    *,
    to: Annotated[
        str,
        typer.Option(help="csv, parquet, perfetto, openmetrics; fio, elbencho, dlio."),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write [standard output].")
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(help="Whose demand fio, elbencho or dlio shall make [the largest]."),
    ] = None,
) -> None:
    """Write what was recorded as csv, parquet, perfetto or openmetrics, or what was demanded of
    storage as a load for fio, elbencho or dlio.
    """
    from ioprof.export.load import load_of
    from ioprof.export.registry import LOAD, RECORD
    from ioprof.record.store import RunDirectory

    if to not in RECORD and to not in LOAD:
        known = ", ".join([*RECORD, *LOAD])
        raise UsageError(f"--to {to} is no format that ioprof writes. Give one of: {known}.")
    if topology is not None and to not in LOAD:
        raise UsageError(f"--topology does nothing for --to {to}: all cells are written.")
    directory = RunDirectory(run)
    if not directory.study.exists() and not directory.recorded.exists():
        raise NotARunError(f"{run} holds no run. Give the folder that holds study.json.")
    load = load_of(directory, topology=topology) if to in LOAD else None
    with _opened(output) as out:
        if load is not None:
            LOAD[to](load, out)
        else:
            RECORD[to](directory, out)


@contextlib.contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that is there whole or not at all."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    temporary = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(output)
    except OSError as error:
        raise UsageError(
            f"{output} cannot be written: {error.strerror}. Give another --output."
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
