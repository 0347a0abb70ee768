import pytest

from ioprof.analysis.headroom import headroom
from ioprof.record.estimate import Estimate, Interval
from ioprof.record.summary import Ceilings, Demand, Headroom


def at(median: float | None) -> Estimate | None:
    return None if median is None else Estimate(median=median, mad=0.0, n=9)


def limits(
    *,
    topology="1x2",
    loader="torch-files",
    compute=2000.0,
    prep=9000.0,
    fetch=4000.0,
    storage=400e6,
    bottleneck="fetch",
    why="fio was not run",
) -> Ceilings:
    return Ceilings(
        topology=topology,
        loader=loader,
        compute=at(compute),
        prep=at(prep),
        fetch=at(fetch),
        storage=at(None if storage is None else storage / 100_000),
        storage_read_bytes_per_s=storage,
        bottleneck=bottleneck,
        reasons={"storage": why} if storage is None else {},
    )


def asked(topology="1x2", accelerators=2) -> Demand:
    return Demand(
        topology=topology,
        accelerators=accelerators,
        phase="first-epoch",
        basis="measured",
        at_au=0.9,
        required_read_bytes_per_s=Interval(value=1.0),
        peak_read_bytes_per_s=None,
        required_reads_per_s=None,
        required_metadata_ops_per_s=None,
        required_write_bytes_per_s=None,
        emulated=True,
    )


ASKED = (asked(),)


def of(*ceilings: Ceilings, demand=ASKED, amplification: float | None = 1.0) -> Headroom:
    return headroom(
        demand=demand,
        ceilings=ceilings,
        stored_bytes=100_000,
        amplification=amplification,
        at_au=0.9,
    )


def test_a_mount_feeds_as_many_as_its_bandwidth_holds():
    # One of two takes 1,000/s: 0.9 × 1,000 × 100 kB = 90 MB/s. 400 ÷ 90 = 4.4: four.
    found = of(limits())
    assert found.max_accelerators == 4
    assert found.first_limit == "storage"
    assert found.available_read_bytes_per_s == 400e6
    assert "this mount delivers 400 MB/s" in found.sentence
    assert "needs 90.0 MB/s" in found.sentence
    assert found.sentence.endswith(
        "feeds at most 4 accelerators at AU 90 %; the first limit is storage"
    )
    assert found.reasons == {}


def test_a_part_of_an_accelerator_is_none():
    assert of(limits(storage=179e6)).max_accelerators == 1
    assert of(limits(storage=89e6)).max_accelerators == 0
    assert "feeds no accelerator at" in of(limits(storage=89e6)).sentence
    assert "at most 1 accelerator at" in of(limits(storage=179e6)).sentence


def test_amplified_reads_leave_fewer():
    # 400 ÷ (90 × 1.5) = 2.96.
    assert of(limits(), amplification=1.5).max_accelerators == 2


def test_unknown_amplification_counts_as_none():
    assert of(limits(), amplification=None).max_accelerators == 4


def test_the_largest_measured_topology_decides():
    # With two ranks each takes 1,000/s; with one it took 4,000.
    found = of(limits(topology="1x1", compute=4000.0), limits(), demand=(asked("1x1", 1), asked()))
    assert found.max_accelerators == 4


def test_the_reads_alone_stand_in_for_fio_where_they_were_the_limit():
    # 1,000/s × 100 kB = 100 MB/s; 100 ÷ 90 = 1.1.
    found = of(limits(fetch=1000.0, storage=None))
    assert found.max_accelerators == 1
    assert found.available_read_bytes_per_s == pytest.approx(100e6)
    assert found.first_limit == "storage"


@pytest.mark.parametrize("bottleneck", ["prep", "client-limited"])
def test_a_client_that_binds_is_told_instead_of_storage(bottleneck):
    # The better of two loaders prepares 2,000/s; 2,000 ÷ (0.9 × 1,000) = 2.2.
    why = "the client was the limit: storage was not driven to its own; fio read at least 400 MB/s"
    slow = limits(prep=700.0, storage=None, bottleneck=bottleneck, why=why)
    fast = limits(loader="dali-files", prep=2000.0, storage=None, bottleneck=bottleneck, why=why)
    found = of(slow, fast)
    assert found.max_accelerators == 2
    assert found.first_limit == "client"
    assert found.available_read_bytes_per_s is None
    assert found.reasons["available_read_bytes_per_s"] == why
    assert "this client prepares 2,000 samples/s" in found.sentence
    assert "at most 2 accelerators at AU 90 %" in found.sentence
    assert "not storage" in found.sentence


def test_one_loader_that_drives_storage_is_enough_to_judge_it():
    found = of(limits(prep=700.0, storage=None, bottleneck="prep"), limits(loader="dali-files"))
    assert found.first_limit == "storage"
    assert found.available_read_bytes_per_s == 400e6


def test_without_a_storage_ceiling_the_answer_is_unknown_and_says_why():
    found = of(limits(storage=None, bottleneck="balanced"))
    assert found.max_accelerators is None
    assert found.first_limit == "unknown"
    assert "fio was not run" in found.sentence
    for name in ("max_accelerators", "available_read_bytes_per_s"):
        assert "fio was not run" in found.reasons[name]


@pytest.mark.parametrize(
    ("ceilings", "demand"),
    [((), (asked(),)), ((limits(),), ()), ((limits(compute=None),), (asked(),))],
)
def test_without_a_synthetic_cell_the_answer_is_unknown(ceilings, demand):
    found = of(*ceilings, demand=demand)
    assert found.max_accelerators is None
    assert found.first_limit == "unknown"
    assert "synthetic" in found.reasons["max_accelerators"]


def test_where_reading_was_seen_to_bind_no_more_is_promised_than_it_reached():
    # fio reads 400 MB/s; the loader's own reads, opens and all, reach 1,000/s × 100 kB.
    found = of(limits(fetch=1000.0))
    assert found.available_read_bytes_per_s == pytest.approx(100e6)
    assert found.max_accelerators == 1  # 90 MB/s each


def test_a_client_that_cannot_prepare_for_more_is_the_first_limit():
    # Storage would feed 4; this client prepares 1,900/s, enough for 2 at 0.9 × 1,000/s.
    found = of(limits(prep=1900.0, bottleneck="compute"))
    assert (found.max_accelerators, found.first_limit) == (2, "client")


@pytest.mark.parametrize(("compute", "stored_bytes"), [(0.0, 100_000.0), (2000.0, 0.0)])
def test_an_accelerator_that_needs_nothing_leaves_the_answer_unknown(compute, stored_bytes):
    found = headroom(
        demand=[asked()],
        ceilings=[limits(compute=compute)],
        stored_bytes=stored_bytes,
        amplification=1.0,
        at_au=0.9,
    )
    assert (found.max_accelerators, found.first_limit) == (None, "unknown")
    assert "empty" in found.reasons["max_accelerators"]


def test_with_a_stage_unmeasured_no_limit_is_claimed():
    # An interrupt before the prep cell: fio's 400 MB/s does not show that storage binds first.
    found = of(limits(prep=None, bottleneck="unknown"))
    assert found.first_limit == "unknown"
    assert found.max_accelerators is None
    assert found.available_read_bytes_per_s is None
    assert "not measured" in found.reasons["max_accelerators"]
