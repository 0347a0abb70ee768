"""CSV: a header, then one row for each value that was read."""

from __future__ import annotations

import csv
import io
from typing import BinaryIO

from ioprof.export.row import Row, rows
from ioprof.record.store import RunDirectory


def write(run: RunDirectory, out: BinaryIO) -> None:
    """RFC 4180 with a header; an empty field where the kernel keeps no value."""
    text = io.TextIOWrapper(out, encoding="utf-8", errors="surrogateescape", newline="")
    writer = csv.writer(text)
    writer.writerow(Row._fields)
    writer.writerows(rows(run))
    text.flush()
    text.detach()
