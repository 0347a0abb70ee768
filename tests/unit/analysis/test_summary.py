import json
import math
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest

from ioprof.analysis.summary import summarise
from ioprof.errors import NotARunError
from ioprof.record.schema import summary_schema
from ioprof.record.store import encode
from ioprof.record.study import Residency
from ioprof.record.summary import CellSummary, Summary
from tests.unit.analysis.records import rank
from tests.unit.analysis.runs import FIO, Cell, counted, outcome, plan, whole_cells, write_run

STRUCTURAL = {"window", "sampler", "reconciliation", "training", "partial", "storage_scope"}
"""Fields whose absence is a fact of its own, told by the verdict, by `partial` or by the role."""


def of(tmp_path, cells, *, storage=FIO, **changes) -> Summary:
    found = summarise(write_run(tmp_path / "run", cells, storage=storage, **changes))
    hold_up(found)
    return found


def cell(summary: Summary, role: str) -> CellSummary:
    return next(one for one in summary.cells if one.role == role)


def hold_up(summary: Summary) -> None:
    """What holds for every summary, however the run ended."""
    for one in reasoned(summary):
        for name in one.__struct_fields__:
            if getattr(one, name) is None and name not in STRUCTURAL:
                assert one.reasons.get(name), f"{name} of {one} is null without a reason"
    assert all(math.isfinite(number) for number in numbers(msgspec.to_builtins(summary)))
    written = encode(summary)
    jsonschema.validate(json.loads(written), summary_schema())
    assert msgspec.json.decode(written, type=Summary) == summary


def reasoned(summary: Summary) -> Iterator[Any]:
    """Every part that explains what it lacks."""
    yield from summary.cells
    yield from (one.reconciliation for one in summary.cells if one.reconciliation)
    yield from summary.ceilings
    yield from summary.demand
    yield summary.headroom


def numbers(value: object) -> Iterator[float]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from numbers(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from numbers(inner)
    elif isinstance(value, int | float):
        yield float(value)


def replaced(cells: list[Cell], role: str, **changes) -> list[Cell]:
    return [
        msgspec.structs.replace(one, **changes) if one.plan.role == role else one for one in cells
    ]


def codes(summary: Summary) -> set[str]:
    return {f.code for f in (*summary.findings, *(f for c in summary.cells for f in c.findings))}


def test_a_whole_run_is_summarised_from_end_to_end(tmp_path):
    found = of(tmp_path, whole_cells())
    cold = cell(found, "cold")
    assert found.partial is None
    assert [one.id for one in found.cells] == [
        "1x1-synthetic",
        "1x1-torch-files-cold",
        "1x1-torch-files-warm",
        "1x1-torch-files-prep",
        "1x1-reads-fetch",
    ]
    assert cold.verdict == "fetch"  # 208/s below compute's 250 and prep's 500
    assert cold.au == pytest.approx(0.8)  # 0.2 ÷ 0.25
    assert cold.samples_per_s is not None
    assert cold.samples_per_s.median == pytest.approx(200.0)  # 50 ÷ 0.25
    assert cold.storage_read_bytes_per_s == pytest.approx(20e6)  # 200 × 100 kB
    assert cold.read_amplification == pytest.approx(1.0)
    assert cold.reconciliation is not None and cold.reconciliation.agrees is True
    assert cold.findings == ()
    assert cell(found, "warm").cache_served == pytest.approx(1.0)
    assert cell(found, "warm").verdict == "compute"  # 250/s below prep's 500
    assert [one.bottleneck for one in found.ceilings] == ["fetch"]


def test_a_whole_run_tells_demand_and_headroom(tmp_path):
    found = of(tmp_path, whole_cells())
    # 0.9 × 250/s × 100 kB = 22.5 MB/s; fio read 50 MB/s, but reading bound at 208/s × 100 kB.
    (row,) = found.demand
    assert row.required_read_bytes_per_s.value == pytest.approx(22.5e6)
    assert row.emulated is True
    assert found.headroom.max_accelerators == 0
    assert found.headroom.available_read_bytes_per_s == pytest.approx(20.83e6, rel=0.001)
    assert found.headroom.first_limit == "storage"
    assert found.sources["block.diskstats"] == "read"
    assert found.sources["nvml"] == "no NVIDIA driver is loaded here"


def test_the_sampler_says_what_it_cost(tmp_path):
    # 1 % of a CPU by its own account.
    sampler = cell(of(tmp_path, whole_cells()), "cold").sampler
    assert sampler is not None
    assert sampler.cpu_fraction == pytest.approx(0.01)
    assert (sampler.interval_s, sampler.missed_ticks) == (0.1, 0)


def test_a_cold_cell_that_a_cache_served_is_no_verdict_on_storage(tmp_path):
    found = of(tmp_path, whole_cells(storage={"cold": 0.1}))
    cold = cell(found, "cold")
    assert cold.verdict == "cache-served"
    assert [(f.level, f.code) for f in cold.findings] == [("invalid", "cache-served")]
    # Its read amplification of 0.1 does not make the demand ten times smaller.
    assert found.demand[0].required_read_bytes_per_s.value == pytest.approx(22.5e6)


def test_a_cell_that_read_nothing_is_invalid(tmp_path):
    nothing = rank([0.25] * 40, sample_bytes=0)
    cells = replaced(whole_cells(), "cold", ranks=(nothing,), node=counted(nothing))
    cold = cell(of(tmp_path, cells), "cold")
    assert cold.verdict == "invalid"
    assert cold.findings[0].code == "nothing-read"


def test_a_cell_asked_cold_and_found_half_cached_is_called_partial(tmp_path):
    half = outcome(plan("cold").id, resident=0.5)
    cold = cell(of(tmp_path, replaced(whole_cells(), "cold", outcome=half)), "cold")
    assert (cold.cache.asked, cold.cache.state) == ("cold", "partial")
    assert [(f.level, f.code) for f in cold.findings] == [("caution", "cache-state")]


@pytest.mark.parametrize(
    ("resident", "state"),
    [(0.0, "cold"), (0.009, "cold"), (0.01, "partial"), (0.99, "partial"), (0.991, "warm")],
)
def test_the_state_of_the_cache_is_the_one_observed(tmp_path, resident, state):
    seen = outcome(plan("cold").id, resident=resident)
    found = of(tmp_path, replaced(whole_cells(), "cold", outcome=seen))
    assert cell(found, "cold").cache.state == state


def test_residency_that_cannot_be_observed_is_unknown(tmp_path):
    hidden = Residency(resident_fraction=None, reason="the files are not ours")
    seen = outcome(plan("cold").id, residency_before=hidden)
    cache = cell(of(tmp_path, replaced(whole_cells(), "cold", outcome=seen)), "cold").cache
    assert (cache.state, cache.observed_resident_fraction) == ("unknown", None)


@pytest.mark.parametrize(("cpus", "told"), [(0.85, False), (0.95, True), (None, False)])
def test_the_daemon_of_a_fuse_mount_may_be_the_limit(tmp_path, cpus, told):
    marks = rank([0.9] * 12)
    node = counted(marks, daemon_cpus=cpus)
    cold = cell(of(tmp_path, replaced(whole_cells(), "cold", ranks=(marks,), node=node)), "cold")
    found = [one for one in cold.findings if one.code == "fuse-daemon-busy"]
    assert bool(found) is told
    if told:
        assert found[0].level == "caution"
        assert found[0].what == "The daemon of /data may be the limit of cell " + cold.id + "."
        assert found[0].evidence == "It used 0.95 CPUs: one busy thread uses 1.00."


def test_a_busy_client_is_told_instead_of_storage(tmp_path):
    slow = rank([0.9] * 12)
    cells = replaced(whole_cells(), "prep", ranks=(slow,), node=counted(slow, cpu_busy=0.98))
    found = of(tmp_path, cells)
    assert cell(found, "cold").verdict == "client-limited"
    assert found.headroom.first_limit == "client"
    assert found.headroom.available_read_bytes_per_s is None
    assert "client-limited" in codes(found)


def test_a_mount_without_a_counter_is_summarised_without_storage_bytes(tmp_path):
    why = {"block.diskstats": "nfs4 has no block device", "nvml": "no NVIDIA driver"}
    cells = [
        msgspec.structs.replace(one, node=counted(one.ranks, storage=None, unavailable=why))
        for one in whole_cells()
    ]
    found = of(tmp_path, cells, devices=(), top_devices=(), unavailable=why)
    cold = cell(found, "cold")
    assert cold.storage_read_bytes_per_s is None
    assert cold.reasons["storage_read_bytes_per_s"] == "nfs4 has no block device"
    assert found.dataset.mount.counter_source is None
    assert "no-storage-counter" in codes(found)


def test_a_killed_sampler_leaves_a_partial_cell(tmp_path):
    whole = whole_cells()
    node = counted(whole[1].ranks, until_s=104.0)
    found = of(tmp_path, replaced(whole, "cold", node=node))
    cold = cell(found, "cold")
    assert cold.partial is not None and "sampler" in cold.partial
    assert cold.sampler is not None and cold.sampler.missed_ticks is None
    assert cold.storage_read_bytes_per_s is None
    assert cold.samples_per_s is not None
    assert cold.samples_per_s.median == pytest.approx(200.0)  # the marks are whole
    assert found.partial is not None and cold.id in found.partial


def test_a_line_cut_short_by_a_kill_is_left_out(tmp_path):
    run = write_run(tmp_path / "run", whole_cells(), storage=FIO)
    path = run.cell(plan("cold").id) / "rank-0.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    found = summarise(run)
    hold_up(found)
    assert cell(found, "cold").samples_per_s is not None


def test_a_rank_that_left_no_marks_makes_its_cell_partial(tmp_path):
    two = [
        msgspec.structs.replace(one, plan=plan(one.plan.role, topology="1x2"))
        for one in whole_cells()
    ]
    named = [msgspec.structs.replace(one, outcome=outcome(one.plan.id)) for one in two]
    found = of(tmp_path, named)
    assert cell(found, "cold").partial == "1 of 2 ranks left no marks"
    assert found.partial is not None


def test_an_interrupted_cell_and_those_never_run_are_marked(tmp_path):
    whole = whole_cells()
    stopped = outcome(plan("warm").id, exit_status=130, partial="interrupted")
    never = [Cell(plan=one.plan) for one in whole[3:]]
    cells = [*whole[:2], msgspec.structs.replace(whole[2], outcome=stopped), *never]
    found = of(tmp_path, cells)
    assert found.partial == "interrupted in 1x1-torch-files-warm; 2 of 5 cells were not run"
    assert [one.role for one in found.cells] == ["synthetic", "cold", "warm"]
    assert cell(found, "warm").partial == "interrupted"
    assert "partial" in codes(found)
    # prep and fetch did not run: nothing binds for sure.
    assert cell(found, "cold").verdict == "unknown"
    assert cell(found, "cold").au == pytest.approx(0.8)


def test_a_cell_in_which_the_profiler_itself_was_killed_is_not_finished(tmp_path):
    cells = replaced(whole_cells(), "cold", outcome=None)
    found = of(tmp_path, cells)
    assert cell(found, "cold").partial == "it was not finished"
    assert found.partial is not None and "not finished" in found.partial


def test_a_cell_that_failed_is_invalid_and_its_log_is_the_evidence(tmp_path):
    error = "Cell 1x1-torch-files-cold ended with status 1. Its last words:\nout of /dev/shm"
    failed = outcome(plan("cold").id, exit_status=1, error=error)
    found = of(tmp_path, replaced(whole_cells(), "cold", outcome=failed, ranks=()))
    cold = cell(found, "cold")
    assert cold.verdict == "invalid"
    assert cold.window is None and cold.step_s is None
    assert cold.partial == "Cell 1x1-torch-files-cold ended with status 1."
    assert cold.findings[0].code == "failed"
    assert "/dev/shm" in cold.findings[0].evidence


def test_a_cell_without_any_counter_keeps_its_steps(tmp_path):
    found = of(tmp_path, replaced(whole_cells(), "cold", node=None))
    cold = cell(found, "cold")
    assert cold.au == pytest.approx(0.8)
    assert cold.sampler is None and cold.reconciliation is None


def test_a_run_of_which_only_the_plan_is_there_is_summarised(tmp_path):
    found = of(tmp_path, [Cell(plan=one.plan) for one in whole_cells()], storage=None)
    assert found.partial == "5 of 5 cells were not run"
    assert found.cells == () and found.demand == ()
    assert found.headroom.first_limit == "unknown"


def test_a_broken_fio_file_is_a_reason_and_not_an_error(tmp_path):
    run = write_run(tmp_path / "run", whole_cells())
    (run.fio / "ceiling.json").write_bytes(b'{"read_bytes_per_s": 5')
    found = summarise(run)
    hold_up(found)
    assert "ceiling.json" in found.ceilings[0].reasons["storage"]


def test_a_folder_without_a_plan_is_refused(tmp_path):
    run = write_run(tmp_path / "run", whole_cells())
    run.study.unlink()
    with pytest.raises(NotARunError, match="holds study"):
        summarise(run)
