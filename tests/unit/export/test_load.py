"""The measured demand as a load for fio, elbencho and DLIO."""

import io
import re
from pathlib import Path

import pytest

from ioprof.errors import UsageError
from ioprof.export import dlio, elbencho, fiojob
from ioprof.export.load import load_of
from ioprof.record.filelist import FileList
from tests.unit.analysis.records import SAMPLE_BYTES
from tests.unit.analysis.runs import whole_cells, write_run

NEED = round(0.9 * 250.0 * SAMPLE_BYTES)
"""250 samples/s without reading, at AU 90 %; storage read no more than was consumed."""
NAMES = (b"n0/a.jpg", b"n0/b c.jpg", b"n1/d:e.jpg", b"n1/f#.jpg", b"n1/g\nh.jpg", b"n1/small.jpg")
SIZES = (100_000, 120_000, 110_000, 130_000, 140_000, 5_000)


@pytest.fixture
def run(tmp_path):
    run = write_run(tmp_path / "run", whole_cells())
    FileList.of(
        Path("/data/set"), paths=NAMES, stored_bytes=SIZES, labels=[0] * 6, classes=(b"n0",)
    ).write(run.filelist)
    return run


def text_of(write, load) -> str:
    out = io.BytesIO()
    write(load, out)
    return out.getvalue().decode()


def options(text: str) -> dict[str, str]:
    rows = (line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] != "#")
    return {name: value for name, value in rows if name != "filename"}


def test_the_demand_and_how_it_is_asked_for(run):
    load = load_of(run)
    assert load.read_bytes_per_s.value == pytest.approx(NEED, rel=0.01)
    assert load.readers.value == 3
    assert load.compute_s.value == pytest.approx(0.2)
    # Mean of the list 100,833 B, third quartile 127,500 B: 24 whole pages.
    assert load.block_bytes == 24 * 4096


def test_fio_is_held_to_the_demand_and_reads_only_files_that_are_there(run):
    load = load_of(run)
    text = text_of(fiojob.write, load)
    told = options(text)
    assert int(told["rate"]) * 3 == pytest.approx(load.read_bytes_per_s.value, abs=3)
    assert told["bs"] == str(24 * 4096)
    assert told["allow_file_create"] == "0" and told["rw"] == "read"
    assert text.count("[reader") == 3
    files = re.findall(r"^filename=(.*)$", text, re.M)
    # Not the ones whose names fio cannot take, nor the one that holds no whole block.
    assert sorted(files) == [
        "/data/set/n0/a.jpg",
        "/data/set/n0/b c.jpg",
        "/data/set/n1/d\\:e.jpg",
    ]
    assert "required by 1x1 at AU 90%" in text and "The accelerator was emulated: H100." in text


def test_a_set_that_fio_cannot_read_is_refused_with_the_reason(run):
    FileList.of(
        Path("/data/set"), paths=[b"a#.jpg"], stored_bytes=[9_000], labels=[0], classes=(b".",)
    ).write(run.filelist)
    with pytest.raises(UsageError, match=r"fio can read none of the .* samples"):
        text_of(fiojob.write, load_of(run))


def test_elbenchos_tree_lists_every_folder_and_file_that_a_line_can_hold(run):
    text = text_of(elbencho.write, load_of(run))
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("d ")] == ["d n0", "d n1"]
    assert [line for line in lines if line.startswith("f ")] == [
        "f 100000 n0/a.jpg",
        "f 120000 n0/b c.jpg",
        "f 110000 n1/d:e.jpg",
        "f 130000 n1/f#.jpg",
        "f 5000 n1/small.jpg",
    ]
    assert "# Left out for their names: 1 files." in lines
    limit = re.search(r"--limitread (\d+)", text)
    assert limit and int(limit[1]) * 3 == pytest.approx(NEED, rel=0.01)


def test_dlios_workload_holds_what_was_measured(run):
    yaml = pytest.importorskip("yaml")
    load = load_of(run)
    told = yaml.safe_load(text_of(dlio.write, load))
    assert told["train"]["computation_time"] == pytest.approx(0.2, abs=1e-3)
    assert told["reader"]["batch_size"] == 50
    assert told["reader"]["read_threads"] == 3
    assert told["dataset"]["record_length"] == pytest.approx(SAMPLE_BYTES, rel=0.2)
    assert told["dataset"]["num_files_train"] == load.samples
    assert not str(told["dataset"]["data_folder"]).startswith(f"{load.data}/")


def test_a_topology_without_demand_is_refused_with_those_that_have_one(run):
    with pytest.raises(UsageError, match=r"no demand of '9x9'\. There is: 1x1\."):
        load_of(run, topology="9x9")


def test_a_recorded_command_has_no_demand(tmp_path):
    from tests.unit.export import recorded

    with pytest.raises(UsageError, match="is a recorded command"):
        load_of(recorded.write(tmp_path / "run"))
