"""The exported fio job, run by a real fio: it makes the load that was demanded."""

import io
import json
import os
import shutil
import subprocess

import pytest

from ioprof.export import fiojob
from ioprof.export.load import load_of
from ioprof.record.filelist import FileList
from tests.unit.analysis.runs import whole_cells, write_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio: apt-get install fio"),
]

NEED = 0.9 * 250 * 100_000
"""250 samples/s of 100,000 B at AU 90 %: 22.5 MB/s, which any disk delivers."""


def test_fio_shows_the_demand_that_was_recorded_and_changes_no_file(tmp_path):
    data = tmp_path / "set"
    data.mkdir()
    names = [f"{number}: a, b.jpg" for number in range(60)]
    for name in names:
        (data / name).write_bytes(os.urandom(120_000))
    run = write_run(tmp_path / "run", whole_cells())
    FileList.of(
        data,
        paths=[name.encode() for name in names],
        stored_bytes=[120_000] * 60,
        labels=[0] * 60,
        classes=(b".",),
    ).write(run.filelist)
    before = {path.name: path.stat().st_mtime_ns for path in data.iterdir()}
    out = io.BytesIO()
    fiojob.write(load_of(run), out)
    job = tmp_path / "demand.fio"
    job.write_bytes(out.getvalue().replace(b"runtime=60s", b"runtime=4s"))
    ran = subprocess.run(
        ["fio", "--readonly", "--output-format=json", str(job)],
        check=True,
        capture_output=True,
        cwd=tmp_path,
    )
    (answer,) = json.loads(ran.stdout)["jobs"]
    read_bytes_per_s = answer["read"]["io_bytes"] / (answer["read"]["runtime"] / 1000)
    # One group of three readers: bytes and time are the group's.
    assert answer["error"] == 0
    assert read_bytes_per_s == pytest.approx(NEED, rel=0.1)
    assert {path.name: path.stat().st_mtime_ns for path in data.iterdir()} == before
