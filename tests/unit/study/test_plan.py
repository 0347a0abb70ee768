import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ioprof.errors import UsageError
from ioprof.record.accelerators import resolve
from ioprof.record.study import CellPlan, ProfileConfig
from ioprof.study.plan import expand, workers_per_rank

FILELIST = Path("/runs/one/filelist.npz")
CONFIG = ProfileConfig(
    data="/data",
    loaders=("torch-files",),
    topologies=("1x1",),
    accelerator="emulated:h100",
    caches=("cold", "warm"),
    batch=64,
    image_size=224,
    model="resnet50",
    workers=2,
    duration_s=8.0,
    repeats=1,
    interval_s=0.1,
    engine="torchrun",
    fio=True,
    seed=7,
)


def cells(*, usable_cpus: float = 8.0, **changes: Any) -> tuple[CellPlan, ...]:
    config = msgspec.structs.replace(CONFIG, **changes)
    return expand(
        config,
        accelerator=resolve(config.accelerator),
        filelist=FILELIST,
        usable_cpus=usable_cpus,
    )


def of(role: str, **changes: Any) -> CellPlan:
    return next(cell for cell in cells(**changes) if cell.role == role)


def option(cell: CellPlan, name: str) -> str | None:
    found = [part for part in cell.command if part.startswith(f"--{name}=")]
    assert len(found) <= 1
    return found[0].partition("=")[2] if found else None


def test_a_study_runs_every_stage_of_a_topology_in_this_order():
    assert [cell.id for cell in cells()] == [
        "1x1-synthetic",
        "1x1-torch-files-cold",
        "1x1-torch-files-warm",
        "1x1-torch-files-prep",
        "1x1-reads-fetch",
    ]


def test_cells_that_need_a_warm_cache_stand_side_by_side():
    roles = [cell.role for cell in cells(loaders=("torch-files", "dali-files"))]
    assert roles == ["synthetic", *("cold", "warm", "prep") * 2, "fetch"]


def test_a_state_that_was_not_asked_for_is_not_run():
    assert [c.role for c in cells(caches=("cold",))] == ["synthetic", "cold", "prep", "fetch"]


def test_what_nobody_touched_is_measured_before_anything_warms_or_evicts():
    roles = [c.role for c in cells(caches=("cold", "as-found"))]
    assert roles == ["as-found", "synthetic", "cold", "prep", "fetch"]


def test_every_topology_and_repeat_has_all_cells_under_ids_of_their_own():
    found = cells(topologies=("1x1", "1x2"), loaders=("torch-files", "dali-files"), repeats=3)
    assert len(found) == 2 * 3 * 8  # synthetic, 2 × (cold, warm, prep), fetch
    assert len({cell.id for cell in found}) == len(found)
    assert {cell.repeat for cell in found} == {1, 2, 3}
    assert found[8].id == "1x1-synthetic-r2"


@pytest.mark.parametrize(
    ("role", "cache"),
    [
        ("synthetic", None),
        ("cold", "cold"),
        ("warm", "warm"),
        ("prep", "warm"),
        ("fetch", "cold"),
    ],
)
def test_every_stage_has_its_state_of_the_cache(role, cache):
    assert of(role).cache == cache


@pytest.mark.parametrize("role", ["prep", "fetch"])
def test_nothing_consumes_what_a_loader_delivers_alone(role):
    cell = of(role)
    assert cell.accelerator.kind == "none"
    assert option(cell, "accelerator") == "none"
    assert option(cell, "samples-per-s") is None


def test_the_command_is_the_launcher_with_the_trainer_and_all_that_was_asked():
    cell = of("cold", topologies=("1x2",))
    assert cell.command == (
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        "-m",
        "ioprof_pipelines",
        "--filelist=/runs/one/filelist.npz",
        "--loader=torch-files",
        "--accelerator=emulated",
        "--device=cpu",
        "--batch=64",
        "--image-size=224",
        "--workers=2",
        "--duration-s=8",
        "--model=resnet50",
        "--seed=7",
        "--between-epochs=evict",
        "--samples-per-s=2791",
    )


def test_mapped_reading_is_handed_on():
    assert "--mmap" in of("cold", mmap=True).command
    assert "--mmap" not in of("cold").command


@pytest.mark.parametrize(
    ("role", "between"),
    [("cold", "evict"), ("fetch", "evict"), ("warm", "keep"), ("prep", "keep")],
)
def test_a_cold_cell_stays_cold_in_its_next_epoch(role, between):
    assert option(of(role), "between-epochs") == between


def test_an_emulated_step_is_known_beforehand_and_needs_no_long_look():
    assert option(of("synthetic", duration_s=60.0), "duration-s") == "5"
    assert option(of("synthetic", duration_s=2.0), "duration-s") == "2"
    assert option(of("synthetic", duration_s=60.0, accelerator="cpu"), "duration-s") == "60"


def test_a_real_accelerator_is_given_no_rate():
    cell = of("cold", accelerator="cuda")
    assert option(cell, "accelerator") == "cuda"
    assert option(cell, "samples-per-s") is None


@pytest.mark.parametrize(
    ("asked", "usable_cpus", "ranks", "workers"),
    [
        (3, 2.0, 8, 3),  # as asked
        (0, 8.0, 2, 4),
        (0, 7.9, 2, 3),  # seven whole CPUs for two ranks
        (0, 2.0, 8, 1),  # never none
        (0, 0.5, 1, 1),
    ],
)
def test_usable_cpus_are_shared_out_among_the_ranks(asked, usable_cpus, ranks, workers):
    assert workers_per_rank(asked, usable_cpus=usable_cpus, ranks=ranks) == workers


def test_workers_are_those_of_each_rank():
    found = cells(topologies=("1x1", "1x4"), workers=0, usable_cpus=8.0)
    assert {(c.topology, option(c, "workers")) for c in found} == {("1x1", "8"), ("1x4", "2")}


def test_more_than_one_node_is_refused_with_what_can_be_asked():
    with pytest.raises(UsageError, match="Ask for 1x8"):
        cells(topologies=("1x1", "2x8"))


def test_an_unknown_engine_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="torchrun"):
        cells(engine="mpirun")


def test_a_topology_that_is_none_is_refused():
    with pytest.raises(UsageError, match="not a topology"):
        cells(topologies=("8",))
