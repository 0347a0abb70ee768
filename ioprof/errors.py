"""Every error ioprof raises on purpose. A message has three parts: what happened, what was
seen, what to do.

    IoprofError                    base; carries the exit status the command line returns
    ├── UsageError          (2)    what was asked for cannot be done as asked
    ├── MeasureError        (3)    the measurement could not be made
    │   ├── DatasetError           the dataset cannot be used
    │   └── ToolError              a program we drive (fio, torchrun) failed
    └── RunFileError        (3)    a run directory cannot be read
        ├── NotARunError           it is not ours
        ├── TruncatedRunError      it ends too early to mean anything
        └── FutureRunError         a newer ioprof wrote it

Findings about a run (`ioprof.record.finding`) are not errors: they are results.
"""

EXIT_MEASURED = 0
EXIT_INVALID = 1
EXIT_USAGE = 2
EXIT_NOT_MEASURED = 3
EXIT_INTERRUPTED = 130


class IoprofError(Exception):
    """Base of all; `exit_status` is what the command line returns for it."""

    exit_status = EXIT_NOT_MEASURED


class UsageError(IoprofError):
    """What was asked for cannot be done as asked."""

    exit_status = EXIT_USAGE


class MeasureError(IoprofError):
    """The measurement could not be made."""


class DatasetError(MeasureError):
    """The dataset cannot be used: missing, empty, unreadable."""


class ToolError(MeasureError):
    """A program that ioprof drives failed; the message holds its own last words."""


class RunFileError(IoprofError):
    """A run directory or one of its files cannot be read."""


class NotARunError(RunFileError):
    """The file or directory was not written by ioprof."""


class TruncatedRunError(RunFileError):
    """The file ends before it says anything useful."""


class FutureRunError(RunFileError):
    """The file has a format version that this ioprof does not know."""
