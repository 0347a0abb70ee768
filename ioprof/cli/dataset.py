"""`ioprof dataset`: make a synthetic set, or see what a folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioprof.cli import untouched

if TYPE_CHECKING:
    from ioprof.record.dataset import Dataset

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Make a synthetic dataset, or survey one."
)


@app.command()
def make(
    path: Annotated[Path, typer.Argument(help="The new folder.")],
    *,
    samples: Annotated[int, typer.Option(min=1, help="How many images.")],
    layout: Annotated[str, typer.Option(help="How samples are stored: files.")] = "files",
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same bytes.")] = 0,
) -> None:
    """Make real JPEGs with the stored sizes of ImageNet (mean 113 kB) in class folders."""
    from ioprof.cli.progress import ConsoleProgress
    from ioprof.dataset.make import make as make_dataset

    with ConsoleProgress() as progress:
        progress.begin(f"making {samples:,} images in {path}", expected_s=0.0, left_s=0.0)
        make_dataset(path, samples=samples, seed=seed, layout=layout, progress=progress.count)
        progress.end(took_s=0.0)
    typer.echo(f"made {samples:,} images")


@app.command()
def survey(
    path: Annotated[
        Path, typer.Argument(parser=untouched.path, help="The folder that holds the samples.")
    ],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Count and measure the samples of a folder, and name what cannot be one."""
    from ioprof.cli.progress import ConsoleProgress
    from ioprof.dataset.survey import survey as survey_dataset
    from ioprof.record.store import encode
    from ioprof.sources.probe import require_answer

    require_answer(path)
    with ConsoleProgress() as progress:
        progress.begin(f"surveying {path}", expected_s=0.0, left_s=0.0)
        dataset, _ = survey_dataset(path, progress=progress.count)
        progress.end(took_s=dataset.survey_s)
    if json:
        typer.echo(encode(dataset).decode(), nl=False)
    else:
        for line in _lines(dataset):
            typer.echo(line)


def _lines(dataset: Dataset) -> list[str]:
    from ioprof.report.layout import one_line
    from ioprof.units import format_bytes, format_seconds

    sizes = dataset.stored_bytes_per_sample
    shape = "  ".join(
        f"{name} {format_bytes(value)}"
        for name, value in (
            ("mean", sizes.mean),
            ("std", sizes.std),
            ("median", sizes.p50),
            ("p95", sizes.p95),
            ("p99", sizes.p99),
            ("largest", sizes.max),
        )
    )
    named = [f"    {entry.file}: {entry.why}" for entry in dataset.quarantined[:20]]
    more = dataset.quarantined_count - len(named)
    lines = [
        dataset.path,
        f"  {dataset.samples:,} samples in {dataset.classes:,} classes, "
        f"{format_bytes(dataset.stored_bytes)}",
        f"  per sample: {shape}",
        f"  scanned in {format_seconds(dataset.survey_s)}",
        f"  quarantined: {dataset.quarantined_count:,}",
        *named,
        *([f"    and {more:,} more"] if more > 0 else []),
        *(f"  note: {note}" for note in dataset.notes),
    ]
    return [one_line(line) for line in lines]
