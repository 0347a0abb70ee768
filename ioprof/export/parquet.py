"""Parquet: the rows of the CSV with their types, in a fraction of its size."""

from __future__ import annotations

from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

from ioprof.errors import UsageError
from ioprof.export.row import Row, rows
from ioprof.record.store import RunDirectory

if TYPE_CHECKING:
    import pyarrow

_BATCH_ROWS = 100_000
_NUMBERS = {"node": "int32", "t_s": "float64", "value": "float64"}
"""Other columns are texts: few of them differ, and Parquet keeps each once."""


def write(run: RunDirectory, out: BinaryIO) -> None:
    """One table, batch by batch: a long run is never whole in memory."""
    arrow, parquet = _pyarrow()
    schema = arrow.schema([(name, _type(arrow, name)) for name in Row._fields])
    found = rows(run)
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        while batch := list(islice(found, _BATCH_ROWS)):
            columns = [
                arrow.array(column, type=_type(arrow, name))
                for name, column in zip(Row._fields, zip(*batch, strict=True), strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))


def _type(arrow: ModuleType, name: str) -> pyarrow.DataType:
    return getattr(arrow, _NUMBERS.get(name, "string"))()


def _pyarrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError(
            "Parquet is written by pyarrow, which is not installed. "
            "Run: pip install 'ioprof[export]'"
        ) from None
    return pyarrow, pyarrow.parquet
