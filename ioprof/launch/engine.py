"""What an engine is, and which there are."""

from __future__ import annotations

from typing import Protocol

from ioprof.errors import UsageError
from ioprof.launch.torchrun import Torchrun
from ioprof.record.study import Topology


class Engine(Protocol):
    """Builds the command that starts the ranks; ioprof starts nothing over the network itself."""

    def command(self, trainer: tuple[str, ...], *, topology: Topology) -> tuple[str, ...]:
        """The argument vector that runs `python <trainer>` on every rank of `topology`."""


ENGINES: dict[str, Engine] = {
    "torchrun": Torchrun(),
}


def engine(name: str) -> Engine:
    """The engine called `name`; UsageError names those there are."""
    found = ENGINES.get(name)
    if found is None:
        raise UsageError(f"There is no engine {name!r}. Choose from: {', '.join(ENGINES)}.")
    return found
