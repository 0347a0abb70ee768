"""What a running study shows: on a terminal one live line, elsewhere one line per step."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from ioprof.units import format_seconds


class ConsoleProgress:
    """Draws a study's progress on stderr, so that stdout holds the result and nothing else."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID | None = None
        self._what = ""

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def say(self, sentence: str) -> None:
        """Print a sentence above the live line."""
        self._console.print(sentence, markup=False, soft_wrap=True)

    def begin(self, what: str, *, expected_s: float, left_s: float) -> None:
        """Name the step and how long is left for all."""
        self._what = what
        left = f"about {format_seconds(left_s)} left" if left_s else ""
        if self._console.is_terminal:
            self._task = self._live.add_task(what, total=None, left=left)
        else:
            self.say(f"{what}" + (f", {left}" if left else ""))

    def count(self, done: int) -> None:
        """Show how many items of the step are done."""
        if self._task is not None:
            self._live.update(self._task, description=f"{self._what}  {done:,}")

    def end(self, *, took_s: float) -> None:
        """Take the step off the live line."""
        if self._task is not None:
            self._live.remove_task(self._task)
            self._task = None
