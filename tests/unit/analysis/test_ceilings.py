import msgspec
import pytest

from ioprof.analysis.ceilings import References, bottleneck, ceilings
from ioprof.record.ceiling import StorageCeiling
from ioprof.record.estimate import Estimate
from ioprof.record.summary import Ceilings
from tests.unit.analysis.records import rank
from tests.unit.analysis.runs import Cell, observed, plan

FIO = StorageCeiling(read_bytes_per_s=20e6)


def between(low: float, median: float, high: float) -> Estimate:
    return Estimate(median=median, mad=1.0, n=9, low=low, high=high)


def exactly(median: float) -> Estimate:
    return Estimate(median=median, mad=0.0, n=1)


def steps(role, step_s, *, loader="torch-files", topology="1x1"):
    """A cell whose steps of 50 samples take so long."""
    cell = Cell(plan=plan(role, loader=loader, topology=topology), ranks=(rank(step_s),))
    return observed(cell)


def of(
    *, synthetic=0.2, prep=0.1, fetch=0.25, storage: StorageCeiling | None = FIO, cpu_busy=0.3
) -> Ceilings:
    """Stages of 50 samples per so many seconds; None where the cell did not run."""
    found = [
        steps(role, [step_s] * 10)
        for role, step_s in (("synthetic", synthetic), ("prep", prep), ("fetch", fetch))
        if step_s is not None
    ]
    return ceilings(
        References(found),
        topology="1x1",
        loader="torch-files",
        storage=storage,
        mean_stored_bytes=100_000,
        cpu_busy=cpu_busy,
    )


def test_the_lowest_stage_binds_when_its_interval_lies_below_the_next():
    stages: dict[str, Estimate | None] = {
        "compute": between(240, 250, 260),
        "prep": between(490, 500, 510),
        "fetch": between(190, 200, 239),
    }
    assert bottleneck(stages) == "fetch"


@pytest.mark.parametrize("high", [240, 255])
def test_stages_whose_intervals_meet_are_balanced(high):
    stages: dict[str, Estimate | None] = {
        "compute": between(240, 250, 260),
        "prep": between(490, 500, 510),
        "fetch": between(190, 200, high),
    }
    assert bottleneck(stages) == "balanced"


def test_without_an_interval_no_stage_is_named():
    assert bottleneck({"compute": exactly(250), "prep": exactly(10.0)}) == "balanced"


def test_a_missing_stage_leaves_the_bottleneck_unknown():
    assert bottleneck({"compute": exactly(250), "prep": None, "fetch": exactly(10)}) == "unknown"


def test_every_stage_is_told_in_samples_per_second():
    # 50 samples in 0.2, 0.1 and 0.25 s; 20 MB/s of 100 kB samples.
    found = of()
    assert found.compute is not None and found.compute.median == pytest.approx(250.0)
    assert found.prep is not None and found.prep.median == pytest.approx(500.0)
    assert found.fetch is not None and found.fetch.median == pytest.approx(200.0)
    assert found.storage is not None and found.storage.median == pytest.approx(200.0)
    assert found.storage_read_bytes_per_s == 20e6
    assert found.bottleneck == "fetch"
    assert found.reasons == {}


@pytest.mark.parametrize(
    ("step_s", "binding"),
    [((0.4, 0.1, 0.2), "compute"), ((0.1, 0.4, 0.2), "prep"), ((0.1, 0.2, 0.4), "fetch")],
)
def test_the_slowest_stage_is_the_bottleneck(step_s, binding):
    synthetic, prep, fetch = step_s
    assert of(synthetic=synthetic, prep=prep, fetch=fetch).bottleneck == binding


@pytest.mark.parametrize(
    ("cpu_busy", "binding"),
    [(0.84, "prep"), (0.85, "client-limited"), (1.0, "client-limited"), (None, "prep")],
)
def test_preparation_that_fills_the_cpus_is_limited_by_the_client(cpu_busy, binding):
    assert of(prep=0.9, cpu_busy=cpu_busy).bottleneck == binding


def test_a_busy_client_is_no_limit_where_another_stage_binds():
    assert of(fetch=0.9, cpu_busy=1.0).bottleneck == "fetch"


@pytest.mark.parametrize("cpu_busy", [0.3, 0.97])
def test_nothing_is_claimed_of_storage_when_the_client_was_the_limit(cpu_busy):
    found = of(prep=0.9, cpu_busy=cpu_busy)
    assert found.storage is None
    assert found.storage_read_bytes_per_s is None
    for name in ("storage", "storage_read_bytes_per_s"):
        assert "the client was the limit" in found.reasons[name]
        assert "at least 20.0 MB/s" in found.reasons[name]


@pytest.mark.parametrize(
    ("storage", "why"),
    [
        (None, "fio was not run"),
        (StorageCeiling(read_bytes_per_s=None, reason="fio is not installed"), "not installed"),
        (StorageCeiling(read_bytes_per_s=None), "no result"),
    ],
)
def test_without_fio_the_storage_ceiling_is_missing_with_the_reason(storage, why):
    found = of(storage=storage)
    assert found.storage is None
    assert why in found.reasons["storage"]
    assert why in found.reasons["storage_read_bytes_per_s"]


def test_a_storage_that_delivered_nothing_has_no_ceiling_in_samples():
    found = of(storage=StorageCeiling(read_bytes_per_s=0.0))
    assert (found.storage_read_bytes_per_s, found.storage) == (0.0, None)
    assert "fio read nothing" in found.reasons["storage"]


@pytest.mark.parametrize("stage", ["synthetic", "prep", "fetch"])
def test_a_stage_that_did_not_run_is_missing_with_the_reason(stage):
    found = of(**{stage: None})
    name = {"synthetic": "compute"}.get(stage, stage)
    assert getattr(found, name) is None
    assert stage in found.reasons[name]
    assert found.bottleneck == "unknown"


def test_the_fetch_and_synthetic_cells_serve_all_loaders_of_their_topology_alone():
    seen = [
        steps("synthetic", [0.2] * 10),
        steps("fetch", [0.25] * 10),
        steps("prep", [0.1] * 10, loader="dali-files"),
        steps("synthetic", [0.9] * 10, topology="1x2"),
    ]
    found = ceilings(
        References(seen),
        topology="1x1",
        loader="dali-files",
        storage=FIO,
        mean_stored_bytes=100_000,
        cpu_busy=None,
    )
    assert found.compute is not None and found.compute.median == pytest.approx(250.0)
    assert found.bottleneck == "fetch"


def test_repeats_are_pooled():
    # 9 steps each at 250/s and at 200/s after warm-up: median (200 + 250) ÷ 2.
    again = msgspec.structs.replace(plan("synthetic"), id="1x1-synthetic-r2", repeat=2)
    second = observed(Cell(plan=again, ranks=(rank([0.25] * 10),)))
    references = References([steps("synthetic", [0.2] * 10), second])
    found = references.samples_per_s("1x1", None, "synthetic")
    assert found is not None
    assert found.n == 18
    assert found.median == pytest.approx(225.0)
    assert references.repeats("1x1", "synthetic", "synthetic") == 2
