"""What a recorded command says of its own steps."""

from typing import Any

import msgspec
import pytest

from ioprof.analysis.marks import marks
from tests.unit.analysis.records import rank


def told(*ranks) -> Any:
    """The marks of these ranks; there are some."""
    found = marks(ranks)
    assert found is not None
    return found


def test_steps_waits_and_au_by_hand():
    # 50 samples in 0.2 s are 250/s; 0.05 s of each step are waited: three quarters are work.
    found = told(rank([0.2] * 40, wait_s=0.05))
    assert found.ranks == 1
    assert found.samples_per_s.median == pytest.approx(250)
    assert found.step_s.median == pytest.approx(0.2)
    assert found.wait_s.median == pytest.approx(0.05)
    assert found.au == pytest.approx(0.75)
    # 100,000 B a sample.
    assert found.consumed_bytes_per_s == pytest.approx(25e6)


def test_all_ranks_together_make_the_rate():
    found = told(rank([0.2] * 40, world=2), rank([0.2] * 40, number=1, world=2))
    assert found.ranks == 2
    assert found.samples_per_s.median == pytest.approx(500)


def test_without_waits_there_is_no_au():
    found = told(rank([0.2] * 40, wait_s=None))
    assert found.step_s.median == pytest.approx(0.2)
    assert found.wait_s is None and found.au is None


def test_samples_of_unknown_size_have_no_bandwidth():
    found = told(rank([0.2] * 40, sample_bytes=None))
    assert found.consumed_bytes_per_s is None


def test_a_rank_that_marked_nothing_takes_nothing_from_the_others():
    silent = msgspec.structs.replace(rank([0.2] * 3, number=1), steps=())
    assert marks((silent,)) is None
    assert marks(()) is None
    assert told(rank([0.2] * 40), silent).ranks == 1
