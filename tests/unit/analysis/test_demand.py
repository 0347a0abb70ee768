import msgspec
import pytest

from ioprof.analysis.ceilings import Bound, References
from ioprof.analysis.cell import cell_summary
from ioprof.analysis.demand import amplification, demands, required_bytes_per_s
from ioprof.record.estimate import Estimate
from ioprof.record.summary import Ceilings, CellSummary, Demand
from tests.unit.analysis.records import rank
from tests.unit.analysis.runs import Cell, counted, observed, outcome, plan, study


def cold(topology="1x1", **changes) -> CellSummary:
    """A cold cell of a mount that delivers just what is consumed, with some fields replaced."""
    steps = rank([0.5] * 10)
    own = plan("cold", topology=topology)
    seen = observed(Cell(plan=own, outcome=outcome(own.id), node=counted(steps), ranks=(steps,)))
    made = cell_summary(
        seen, study=study([own]), references=References([seen]), bound=Bound(all=())
    )
    return msgspec.structs.replace(made, **{"verdict": "fetch", **changes})


def row(topology: str, compute: float | None, *, spread=0.0) -> Ceilings:
    estimate = None
    if compute is not None:
        estimate = Estimate(
            median=compute, mad=0.0, n=9, low=compute - spread, high=compute + spread
        )
    return Ceilings(
        topology=topology,
        loader="torch-files",
        compute=estimate,
        prep=None,
        fetch=None,
        storage=None,
        storage_read_bytes_per_s=None,
        bottleneck="unknown",
    )


def of(topology="1x1", *, compute=1000.0, cells=(), stored_bytes=100_000.0, spread=0.0) -> Demand:
    (found,) = demands(
        [topology],
        cells=list(cells),
        ceilings=[row(topology, compute, spread=spread)],
        stored_bytes=stored_bytes,
        at_au=0.9,
        emulated=True,
    )
    return found


def test_mlperf_storage_resnet_50_by_hand():
    # Batch 400 in 0.224 s: 1,786 samples/s, of 114,660 B each 204.8 MB/s; eight at 90 %: 1.47 GB/s.
    rate = 400 / 0.224
    assert round(rate) == 1786
    one = required_bytes_per_s(rate, at_au=1.0, stored_bytes=114_660)
    assert one == pytest.approx(204.8e6, rel=0.001)
    eight = required_bytes_per_s(8 * rate, at_au=0.9, stored_bytes=114_660)
    assert eight == pytest.approx(1.47e9, rel=0.005)


def test_a_published_training_of_imagenet_by_hand():
    # 2,940 images/s of 113,044 B: 332.3 MB/s.
    found = required_bytes_per_s(2940, at_au=1.0, stored_bytes=113_044)
    assert found == pytest.approx(332.3e6, rel=0.001)


def test_demand_grows_with_what_storage_reads_beyond_the_request():
    # 0.9 × 1,000/s × 100 kB × 1.2.
    found = required_bytes_per_s(1000, at_au=0.9, stored_bytes=100_000, amplification=1.2)
    assert found == pytest.approx(108e6)


def test_demand_of_a_topology_is_that_of_all_its_accelerators():
    # Its synthetic cell consumes 8,000/s in all: 0.9 × 8,000 × 100 kB = 720 MB/s.
    found = of("2x4", compute=8000.0)
    assert found.accelerators == 8
    assert found.required_read_bytes_per_s.value == pytest.approx(720e6)
    assert (found.phase, found.basis, found.at_au) == ("first-epoch", "measured", 0.9)
    assert found.emulated is True


def test_the_interval_is_that_of_the_synthetic_cell():
    # 0.9 × (1,000 ± 100) × 100 kB.
    interval = of(spread=100.0).required_read_bytes_per_s
    assert interval.low == pytest.approx(81e6)
    assert interval.value == pytest.approx(90e6)
    assert interval.high == pytest.approx(99e6)


def test_measured_amplification_is_the_median_of_the_cold_cells():
    # 1.1, 1.2 and 1.9: 1.2 times 90 MB/s.
    cells = [cold(read_amplification=a) for a in (1.9, 1.1, 1.2)]
    assert amplification(cells) == 1.2
    found = of(cells=cells)
    assert found.required_read_bytes_per_s.value == pytest.approx(108e6)
    assert "required_read_bytes_per_s" not in found.reasons


@pytest.mark.parametrize("verdict", ["cache-served", "invalid"])
def test_cells_that_a_cache_served_say_nothing_of_amplification(verdict):
    cells = [cold(read_amplification=0.1, verdict=verdict)]
    assert amplification(cells) is None
    found = of(cells=cells)
    assert found.required_read_bytes_per_s.value == pytest.approx(90e6)
    assert "lower bound" in found.reasons["required_read_bytes_per_s"]


def test_reads_per_second_follow_from_the_size_of_a_read():
    # 90 MB/s in reads of 50 kB.
    found = of(cells=[cold(read_amplification=1.0, read_request_bytes=50_000.0)])
    assert found.required_reads_per_s == pytest.approx(1800.0)


def test_the_peak_is_as_far_above_the_mean_as_in_the_cold_cell():
    # 15 ÷ 10 MB/s: 1.5 times 90 MB/s.
    own = cold(
        read_amplification=1.0,
        peak_storage_read_bytes_per_s=15e6,
        storage_read_bytes_per_s=10e6,
    )
    assert of(cells=[own]).peak_read_bytes_per_s == pytest.approx(135e6)


def test_what_was_not_measured_is_missing_with_a_reason():
    found = of()
    for name in (
        "peak_read_bytes_per_s",
        "required_reads_per_s",
        "required_metadata_ops_per_s",
        "required_write_bytes_per_s",
    ):
        assert getattr(found, name) is None
        assert found.reasons[name]


def test_cold_cells_of_other_topologies_do_not_count():
    found = of("1x1", cells=[cold("1x2", read_amplification=3.0)])
    assert found.required_read_bytes_per_s.value == pytest.approx(90e6)


def test_a_topology_without_a_synthetic_cell_has_no_demand():
    found = demands(
        ["1x1", "1x2"],
        cells=[],
        ceilings=[row("1x1", 1000.0), row("1x2", None)],
        stored_bytes=100_000,
        at_au=0.9,
        emulated=False,
    )
    assert [one.topology for one in found] == ["1x1"]
