"""Tidy rows, and the tables made of them."""

import csv
import io

import pytest

from ioprof.export import csvfile, parquet
from ioprof.export.row import Row, rows
from tests.unit.export import recorded


def test_every_value_is_a_row_in_the_order_of_recording(tmp_path):
    found = list(rows(recorded.write(tmp_path / "run")))
    readings = [row for row in found if row.kind != "step"]
    assert len(readings) == 5 * 3
    assert readings[0] == Row(
        cell="command",
        node=0,
        hostname="n1",
        t_s=10.0,
        time="2023-11-14T22:13:20.000000+00:00",
        source="block.diskstats",
        instance="vda",
        layer="wire",
        scope="device",
        role="top",
        kind="counter",
        name="read_bytes_total",
        value=0,
    )
    assert [r.value for r in readings if r.name == "read_bytes_total"] == list(recorded.BYTES)
    assert [r.value for r in readings if r.name == "in_flight"] == list(recorded.IN_FLIGHT)
    assert {r.value for r in readings if r.name == "merges_total"} == {None}


def test_a_step_is_a_row_for_each_fact_of_it(tmp_path):
    steps = [row for row in rows(recorded.write(tmp_path / "run")) if row.kind == "step"]
    first = {row.name: row.value for row in steps if row.t_s == 10.2}
    assert first == {
        "step_seconds": pytest.approx(0.2),
        "wait_seconds": 0.05,
        "copy_seconds": None,
        "samples": 4,
        "stored_bytes": 900,
        "epoch": 0,
    }
    assert {row.instance for row in steps} == {"rank-0"}


def test_cells_come_in_the_order_in_which_they_ran(tmp_path):
    found = rows(recorded.write(tmp_path / "run", cells=("1x1-b", "1x1-a")))
    # Both began at the same moment here: then by name.
    assert list(dict.fromkeys(row.cell for row in found)) == ["1x1-a", "1x1-b"]


def test_csv_reads_back_with_an_empty_field_where_nothing_is_known(tmp_path):
    out = io.BytesIO()
    csvfile.write(recorded.write(tmp_path / "run"), out)
    back = list(csv.DictReader(io.StringIO(out.getvalue().decode())))
    assert list(back[0]) == list(Row._fields)
    counted = [row["value"] for row in back if row["name"] == "read_bytes_total"]
    assert counted == ["0", "1000", "1000", "500", "700"]
    assert [r["value"] for r in back if r["name"] == "in_flight"] == ["3", "3", "", "5", "5"]


def test_parquet_holds_the_same_rows_with_types(tmp_path):
    tables = pytest.importorskip("pyarrow.parquet")
    run = recorded.write(tmp_path / "run")
    with (tmp_path / "run.parquet").open("wb") as out:
        parquet.write(run, out)
    table = tables.read_table(tmp_path / "run.parquet")
    assert table.column_names == list(Row._fields)
    assert table.schema.field("value").type == "double"
    assert table.to_pylist() == [row._asdict() for row in rows(run)]
