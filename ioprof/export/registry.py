"""Every format, by the name that `ioprof export --to` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from ioprof.export import csvfile, dlio, elbencho, fiojob, openmetrics, parquet, trace
from ioprof.export.load import Load
from ioprof.record.store import RunDirectory

RECORD: dict[str, Callable[[RunDirectory, BinaryIO], None]] = {
    "csv": csvfile.write,
    "parquet": parquet.write,
    "perfetto": trace.write,
    "openmetrics": openmetrics.write,
}
"""What was recorded, value by value."""

LOAD: dict[str, Callable[[Load, BinaryIO], None]] = {
    "fio": fiojob.write,
    "elbencho": elbencho.write,
    "dlio": dlio.write,
}
"""What was demanded, as a load that other programs make."""
