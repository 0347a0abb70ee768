"""Runs side by side: what is compared, what is refused."""

import msgspec
import pytest

from ioprof.analysis.compare import compare
from ioprof.errors import UsageError
from ioprof.record.store import read_json, write_json
from ioprof.record.study import Study
from tests.unit.analysis.records import rank
from tests.unit.analysis.runs import Cell, counted, outcome, plan, whole_cells, write_run
from tests.unit.export import recorded


def cold(step_s, *, storage=1.0) -> list[Cell]:
    """A cold cell whose steps take about `step_s`, with a tenth of scatter that repeats itself."""
    own = plan("cold")
    marks = rank([step_s * (0.95 + 0.1 * (i % 2)) for i in range(60)])
    return [
        Cell(
            plan=own, outcome=outcome(own.id), node=counted(marks, storage=storage), ranks=(marks,)
        )
    ]


def of(found, name, run=1):
    (one,) = [d for d in found.differences if d.name == name and d.run == run]
    return one


def test_each_number_of_a_common_cell_is_compared(tmp_path):
    first = write_run(tmp_path / "a", cold(0.2))
    other = write_run(tmp_path / "b", cold(0.25))
    found = compare([first, other])
    assert found.runs == (str(tmp_path / "a"), str(tmp_path / "b"))
    # 50 samples in 0.2 s are 250/s, in 0.25 s 200/s: a fifth less; the step is a quarter longer.
    assert of(found, "samples_per_s").relative.value == pytest.approx(-0.2, abs=0.005)
    assert of(found, "step_s").relative.value == pytest.approx(0.25, abs=0.005)
    # Storage delivered what was consumed: 100,000 B a sample.
    storage = of(found, "storage_read_bytes_per_s")
    assert storage.first.value == pytest.approx(25e6, rel=0.02)
    assert storage.other.value == pytest.approx(20e6, rel=0.02)
    assert of(found, "samples_per_s").significant is True
    assert any("ran once" in caution for caution in found.cautions)


def test_a_run_does_not_differ_from_itself(tmp_path):
    run = write_run(tmp_path / "a", whole_cells())
    found = compare([run, run, run])
    assert {d.run for d in found.differences} == {1, 2}
    assert not any(d.significant for d in found.differences)
    assert {d.role for d in found.differences} == {"synthetic", "cold", "warm", "prep", "fetch"}
    # What a warm cell reads from storage is noise, and synthetic reads nothing.
    read = {d.role for d in found.differences if d.name == "storage_read_bytes_per_s"}
    assert read == {"cold", "fetch"}


def test_other_work_is_refused_unless_it_is_asked_for(tmp_path):
    first = write_run(tmp_path / "a", cold(0.2))
    other = write_run(tmp_path / "b", cold(0.2))
    study = read_json(other.study, Study)
    data = msgspec.structs.replace(study.dataset, samples=5000)
    config = msgspec.structs.replace(study.config, batch=128)
    write_json(other.study, msgspec.structs.replace(study, dataset=data, config=config))
    with pytest.raises(UsageError, match=r"number of samples is 4,000 in .* and 5,000 .*--anyway"):
        compare([first, other])
    found = compare([first, other], anyway=True)
    assert len(found.unlike) == 2 and "the batch is 50 in" in found.unlike[1]


def test_the_same_dataset_on_another_mount_may_be_compared(tmp_path):
    first = write_run(tmp_path / "a", cold(0.2))
    other = write_run(tmp_path / "b", cold(0.2))
    study = read_json(other.study, Study)
    config = msgspec.structs.replace(study.config, data="/mnt/other")
    write_json(other.study, msgspec.structs.replace(study, config=config))
    assert compare([first, other]).unlike == ()


def test_runs_without_a_common_cell_are_refused(tmp_path):
    first = write_run(tmp_path / "a", cold(0.2))
    own = plan("cold", loader="dali-files")
    marks = rank([0.2] * 40)
    cell = Cell(plan=own, outcome=outcome(own.id), node=counted(marks), ranks=(marks,))
    other = write_run(tmp_path / "b", [cell])
    with pytest.raises(UsageError, match="have no cell in common"):
        compare([first, other])


def test_pauses_between_epochs_are_not_in_the_rates(tmp_path):
    own = plan("cold")
    marks = rank([0.25] * 64, epochs=[32, 32], pause_s=3.0)
    cell = Cell(plan=own, outcome=outcome(own.id), node=counted(marks), ranks=(marks,))
    run = write_run(tmp_path / "a", [cell])
    seconds = of(compare([run, run]), "storage_read_bytes_per_s").first
    # 2 x 8 s of stepping and 3 s of pause: whole seconds of stepping only.
    assert 12 <= seconds.n <= 16


def test_a_recorded_command_is_no_study(tmp_path):
    run = recorded.write(tmp_path / "a")
    run.recorded.write_text("{}")
    with pytest.raises(UsageError, match="is a recorded command"):
        compare([run, run])
