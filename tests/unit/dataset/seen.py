"""What a survey found, in the words of a test."""

from __future__ import annotations

import os

from ioprof.record.dataset import Dataset
from ioprof.record.filelist import FileList


def names(files: FileList) -> list[str]:
    """Relative path of each sample, in the list's order."""
    return [os.fsdecode(files.relative(i)) for i in range(len(files))]


def reasons(dataset: Dataset) -> dict[str, str]:
    """Why each quarantined file is, by name."""
    return {entry.file: entry.why for entry in dataset.quarantined}
