"""Every released run format keeps loading. `tests/data/runs/v1` was laid down once, by

    write_run(path, whole_cells(steps=10, interval_s=0.5), storage=FIO)

of `tests.unit.analysis.runs`, and is never written anew: a new format gets a folder beside it.
"""

from pathlib import Path

import pytest

from ioprof.analysis.summary import summarise
from ioprof.analysis.timeline import timeline
from ioprof.record.store import FORMAT_VERSION, RunDirectory

RUNS = Path(__file__).parents[2] / "data" / "runs"


def test_every_format_up_to_this_one_has_a_run():
    kept = {path.name for path in RUNS.iterdir()}
    assert kept == {f"v{version}" for version in range(1, FORMAT_VERSION + 1)}


@pytest.mark.parametrize("path", sorted(RUNS.iterdir()), ids=lambda path: path.name)
def test_every_released_run_format_keeps_loading(path):
    # 50 samples of 100 kB in 0.25 s where 0.2 s are possible; one accelerator needs
    # 0.9 × 250/s × 100 kB = 22.5 MB/s of the 50 MB/s that fio read.
    run = RunDirectory(path)
    found = summarise(run)
    cold = next(cell for cell in found.cells if cell.role == "cold")
    assert found.partial is None
    assert len(found.cells) == 5
    assert cold.verdict == "fetch"
    assert cold.au == pytest.approx(0.8)
    assert cold.storage_read_bytes_per_s == pytest.approx(20e6)
    assert cold.reconciliation is not None and cold.reconciliation.agrees is True
    assert found.headroom.max_accelerators == 0
    assert timeline(run, cold.id) is not None
