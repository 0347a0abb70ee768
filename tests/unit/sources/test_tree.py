"""The arithmetic of the process tree, with hand-made counters. One number stands for all seven."""

import pytest

from ioprof.sources.pidio import ZERO
from ioprof.sources.tree import Parenting, Tree

KEYS = ["rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"]


def io_text(value):
    return "".join(f"{key}: {value}\n" for key in KEYS).encode()


class Story:
    """Drives a tree the way the source does: a dict of pid → value is what one tick sees."""

    def __init__(self, root_value=0, parenting=None):
        self.parenting = dict(parenting or {})
        self.tree = Tree(1, parenting=lambda pid: self.parenting.get(pid, Parenting.WAITS))
        self.parents = {}
        assert self.tick({1: root_value}) == 0

    def tick(self, values, adopted=None):
        for pid, entry in values.items():
            if isinstance(entry, tuple):
                self.tree.join(pid, entry[0])
        for member in list(self.tree.members.values()):
            if member.pid not in values:
                self.tree.lose(member)
                continue
            value = values[member.pid]
            value = value[1] if isinstance(value, tuple) else value
            member.see(None if value is None else io_text(value))
        for orphan in self.tree.orphans():
            self.tree.adopt(orphan, (adopted or {}).get(orphan.pid, 1))
        totals = self.tree.close_tick()
        assert len(set(totals)) == 1
        return totals[0]


def test_what_was_read_before_the_first_look_is_left_out():
    story = Story(root_value=1000)
    assert story.tick({1: 1000}) == 0
    assert story.tick({1: 1005}) == 5


def test_root_and_descendants_are_added_up():
    story = Story()
    assert story.tick({1: 1, 2: (1, 10), 3: (2, 100)}) == 111


def test_a_reaped_child_is_counted_once():
    # The kernel folds its 50 into the parent, which then says 1 + 50.
    story = Story()
    assert story.tick({1: 1, 2: (1, 50)}) == 51
    assert story.tick({1: 51}) == 51
    assert story.tick({1: 51}) == 51


def test_three_generations_of_workers_are_not_counted_twice():
    """HSF/prmon#35, #173, ROCm/omnistat#291, snakemake/snakemake#2147"""
    # Each epoch: two workers read 32, end, and are folded. A sum of increases per pid gives 320.
    story = Story()
    story.tick({1: 0, 10: (1, 0)})
    total = 0
    for epoch in range(3):
        first, second = 100 + epoch, 200 + epoch
        assert story.tick({1: 0, 10: total, first: (10, 16), second: (10, 16)}) == total + 32
        assert story.tick({1: 0, 10: total, first: 32, second: 32}) == total + 64
        total += 64
        assert story.tick({1: 0, 10: total}) == total
    assert total == 192


def test_a_child_that_lived_between_two_ticks_is_counted_through_its_parent():
    story = Story()
    assert story.tick({1: 0}) == 0
    assert story.tick({1: 70}) == 70


def test_a_child_reaped_after_its_parent_was_read_never_counts_twice():
    story = Story()
    assert story.tick({1: 0, 2: (1, 50)}) == 50
    # Parent read (0), then child reaped, then child read: gone.
    assert story.tick({1: 0}) == 50
    assert story.tick({1: 50}) == 50
    assert story.tick({1: 57}) == 57


def test_other_processes_still_count_while_a_reaped_child_is_in_flight():
    story = Story()
    story.tick({1: 0, 2: (1, 50), 3: (1, 5)})
    assert story.tick({1: 0, 3: 9}) == 59
    assert story.tick({1: 50, 3: 11}) == 61


def test_a_child_that_nobody_waits_for_keeps_what_it_had():
    story = Story(parenting={1: Parenting.IGNORES})
    assert story.tick({1: 0, 2: (1, 50)}) == 50
    assert story.tick({1: 3}) == 53
    assert story.tick({1: 4}) == 54
    assert story.tick({1: 4}) == 54


def test_a_busy_parent_that_ignores_its_children_does_not_hide_them():
    # The parent reads 80 of its own: growth alone would look like having taken in the 50.
    story = Story(parenting={1: Parenting.IGNORES})
    assert story.tick({1: 0, 2: (1, 50)}) == 50
    assert story.tick({1: 80}) == 130
    assert story.tick({1: 80}) == 130


def test_an_idle_parent_shows_that_it_did_not_take_the_child_in():
    # SA_NOCLDWAIT cannot be seen from outside; missing growth can.
    story = Story()
    assert story.tick({1: 0, 2: (1, 50)}) == 50
    assert story.tick({1: 3}) == 53
    assert story.tick({1: 4}) == 54


def test_two_children_of_which_one_was_waited_for():
    story = Story()
    story.tick({1: 0, 2: (1, 50), 3: (1, 70)})
    assert story.tick({1: 70}) == 120
    assert story.tick({1: 70}) == 120


def test_parent_and_child_that_vanish_together_fold_into_the_grandparent():
    story = Story()
    assert story.tick({1: 0, 2: (1, 10), 3: (2, 50)}) == 60
    assert story.tick({1: 60}) == 60
    assert story.tick({1: 60}) == 60


def test_a_grandchild_that_outlives_its_parent_is_adopted_by_the_root():
    story = Story()
    assert story.tick({1: 0, 2: (1, 10), 3: (2, 50)}) == 60
    assert story.tick({1: 10, 3: 55}) == 65
    assert story.tick({1: 68}) == 68  # 10 + 58: it read 3 more and was waited for
    assert story.tick({1: 68}) == 68


def test_parent_and_orphan_that_vanish_in_one_tick_fold_into_different_ancestors():
    # 2 (child of 10) dies first, so that 3 is adopted by the root, which waits for it.
    story = Story()
    assert story.tick({1: 0, 10: (1, 0), 2: (10, 40), 3: (2, 50)}) == 90
    assert story.tick({1: 50, 10: 40}) == 90
    assert story.tick({1: 50, 10: 40}) == 90


def test_an_orphan_of_a_zombie_is_found_in_the_root():
    # 2 is dead but not waited for: its child 3 has been adopted already, which ppid did not show.
    story = Story(parenting={2: Parenting.DEAD})
    assert story.tick({1: 0, 2: (1, 10), 3: (2, 50)}) == 60
    assert story.tick({1: 50, 2: 10}) == 60
    assert story.tick({1: 60}) == 60


def test_an_orphan_adopted_outside_the_tree_keeps_what_it_had():
    story = Story()
    assert story.tick({1: 0, 2: (1, 10), 3: (2, 50)}) == 60
    assert story.tick({1: 10, 3: 55}, adopted={3: 999}) == 65
    assert story.tick({1: 10}) == 65
    assert story.tick({1: 10}) == 65


def test_an_unreadable_process_keeps_its_last_value():
    story = Story()
    assert story.tick({1: 0, 2: (1, 50)}) == 50
    assert story.tick({1: 1, 2: None}) == 51
    assert story.tick({1: 1, 2: 60}) == 61


def test_a_process_that_was_never_readable_adds_nothing_and_breaks_nothing():
    story = Story()
    assert story.tick({1: 0, 2: (1, None)}) == 0
    assert story.tick({1: 0}) == 0


def test_the_last_tick_stands_when_the_root_is_gone():
    story = Story()
    assert story.tick({1: 5, 2: (1, 50)}) == 55
    assert story.tick({2: 60}, adopted={2: 999}) == 65
    assert story.tick({}) == 65
    assert story.tick({}) == 65


def test_a_pid_that_is_used_again_starts_a_new_process():
    story = Story()
    assert story.tick({1: 0, 2: (1, 50)}) == 50
    assert story.tick({1: 50}) == 50
    assert story.tick({1: 50, 2: (1, 7)}) == 57


@pytest.mark.parametrize("drop", [1, 49])
def test_totals_never_fall(drop):
    story = Story()
    assert story.tick({1: 50}) == 50
    assert story.tick({1: 50 - drop}) == 50


def test_a_tree_of_which_nothing_can_be_read_is_zero():
    tree = Tree(1, parenting=lambda pid: Parenting.WAITS)
    assert tree.close_tick() == ZERO
