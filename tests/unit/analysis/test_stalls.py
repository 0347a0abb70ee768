import msgspec
import pytest

from ioprof.analysis.ceilings import Bound, References
from ioprof.analysis.cell import cell_summary
from ioprof.record.summary import CellSummary
from tests.unit.analysis.records import rank
from tests.unit.analysis.runs import Cell, counted, observed, outcome, plan, study

STALLS = ("au", "data_stall_s", "prep_stall_s", "fetch_stall_s")


def of(role, **step_s: float) -> CellSummary:
    """The cell `role` among cells whose steps take so long: 1 of warm-up, then 29."""
    seen = {}
    for name, seconds in step_s.items():
        own = plan(name)  # type: ignore[arg-type]
        steps = rank([seconds] * 30)
        cell = Cell(plan=own, outcome=outcome(own.id), node=counted(steps), ranks=(steps,))
        seen[name] = observed(cell)
    return cell_summary(
        seen[role],
        study=study([one.plan for one in seen.values()]),
        references=References(list(seen.values())),
        bound=Bound(all=()),
    )


def test_utilisation_is_the_synthetic_step_over_the_real_one():
    # 0.2 ÷ 0.25.
    assert of("cold", synthetic=0.2, cold=0.25, warm=0.22).au == pytest.approx(0.8)


def test_the_data_stall_is_prep_and_fetch_together():
    # 0.25 − 0.20 = (0.22 − 0.20) + (0.25 − 0.22).
    found = of("cold", synthetic=0.2, warm=0.22, cold=0.25)
    assert found.data_stall_s == pytest.approx(0.05)
    assert found.prep_stall_s == pytest.approx(0.02)
    assert found.fetch_stall_s == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("synthetic", "warm", "cold"), [(0.1, 0.3, 0.7), (0.2, 0.2, 0.2), (0.31, 0.3, 0.29)]
)
def test_the_parts_add_up_exactly(synthetic, warm, cold):
    found = of("cold", synthetic=synthetic, warm=warm, cold=cold)
    assert found.prep_stall_s is not None and found.fetch_stall_s is not None
    assert found.data_stall_s == pytest.approx(found.prep_stall_s + found.fetch_stall_s, abs=1e-15)


def test_a_small_negative_stall_is_noise_and_is_kept():
    found = of("cold", synthetic=0.2, warm=0.199, cold=0.201)
    assert found.prep_stall_s == pytest.approx(-0.001)
    assert found.fetch_stall_s == pytest.approx(0.002)


def test_a_utilisation_slightly_above_one_is_kept_too():
    assert of("cold", synthetic=0.2, cold=0.199).au == pytest.approx(0.2 / 0.199)


def test_a_warm_cell_has_no_fetch_stall():
    found = of("warm", synthetic=0.2, warm=0.25, cold=0.4)
    assert found.au == pytest.approx(0.8)
    assert found.data_stall_s == found.prep_stall_s == pytest.approx(0.05)
    assert found.fetch_stall_s is None
    assert found.reasons["fetch_stall_s"] == "a warm cell reads nothing from storage"


def test_without_a_warm_cell_the_parts_are_unknown_and_the_whole_is_known():
    found = of("cold", synthetic=0.2, cold=0.25)
    assert found.data_stall_s == pytest.approx(0.05)
    assert found.prep_stall_s is None and found.fetch_stall_s is None
    assert "no warm cell" in found.reasons["prep_stall_s"]
    assert "no warm cell" in found.reasons["fetch_stall_s"]


def test_without_a_synthetic_cell_all_stalls_are_unknown():
    found = of("cold", cold=0.25, warm=0.22)
    for name in STALLS:
        assert getattr(found, name) is None
        assert "no synthetic cell" in found.reasons[name]


@pytest.mark.parametrize("role", ["synthetic", "prep", "fetch"])
def test_a_cell_that_measures_one_stage_has_no_stalls(role):
    found = of(role, synthetic=0.2, warm=0.22, cold=0.25, prep=0.1, fetch=0.1)
    assert found.verdict == "reference"
    for name in STALLS:
        assert getattr(found, name) is None
        assert found.reasons[name]


def test_stalls_are_those_of_the_pooled_repeats():
    # Cold runs of 0.24 and 0.26 s: median 0.25 over both, so AU is 0.8 for either.
    synthetic, first, second = plan("synthetic"), plan("cold"), plan("cold")
    second = msgspec.structs.replace(second, id=f"{second.id}-r2", repeat=2)
    seen = []
    for own, seconds in ((synthetic, 0.2), (first, 0.24), (second, 0.26)):
        steps = rank([seconds] * 30)
        seen.append(observed(Cell(plan=own, node=counted(steps), ranks=(steps,))))
    for one in seen[1:]:
        found = cell_summary(
            one,
            study=study([own.plan for own in seen]),
            references=References(seen),
            bound=Bound(all=()),
        )
        assert found.au == pytest.approx(0.8)
        assert found.repeats == 2


def test_steps_that_took_no_time_have_no_utilisation():
    # 28 of 29 steps ended in the moment they began: their median is no divisor.
    own, beside = plan("cold"), plan("synthetic")
    seen = []
    for one, times in ((own, [0.0] * 29 + [0.5]), (beside, [0.2] * 30)):
        steps = rank(times)
        seen.append(observed(Cell(plan=one, node=counted(steps), ranks=(steps,))))
    found = cell_summary(
        seen[0], study=study([own, beside]), references=References(seen), bound=Bound(all=())
    )
    for name in STALLS:
        assert getattr(found, name) is None
        assert "no time" in found.reasons[name]
