"""The I/O of a process tree, added up without counting anything twice.

What /proc/PID/io says of a process is its own I/O, all threads, dead ones too, and that of every
child it has waited for: the kernel folds a child into its parent at `wait`, and only then is the
child gone. So the sum over the root and all its descendants, zombies among them, is right at any
instant, and worker processes that come and go leave it right. Three things disturb it:

- Processes are read one after another. Parents are read before their children, so a child that is
  folded in between is missed for one tick and never counted twice. The running maximum is given
  out, so nothing ever falls.
- A child that nobody waits for (SIGCHLD ignored, or adopted by a process outside the tree) is not
  folded into anything. What was last seen of it is then kept for good. Its parent's growth tells:
  a parent that took the child in has grown by at least as much.
- Processes of the tree did things before the first look: that sum is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from ioprof.sources.pidio import ZERO, Counters, add, parse_io, sum_io


class Parenting(Enum):
    """What a process does with a child that ends."""

    WAITS = "waits"
    """It is expected to wait for it, which folds the child's counters into its own."""
    IGNORES = "ignores"
    """SIGCHLD is ignored: the child vanishes unfolded."""
    DEAD = "dead"
    """Its main thread has ended: its children may have been adopted by an ancestor."""


class Member:
    """One process of the tree, or one that was in it."""

    __slots__ = ("before", "gone", "parent", "pid", "text")

    def __init__(self, pid: int, parent: Member | None) -> None:
        self.pid = pid
        self.parent = parent
        self.text = b""
        """Its `io` file as last seen; empty when it could never be read."""
        self.before = b""
        """The same at the tick before the last."""
        self.gone = False

    def see(self, text: bytes | None) -> None:
        """Note what its `io` file says at this tick; None keeps what was seen last."""
        self.before = self.text
        if text is not None:
            self.text = text

    def ancestors(self) -> list[Member]:
        """Parent, grandparent and so on, gone ones too."""
        found: list[Member] = []
        member = self.parent
        while member is not None:
            found.append(member)
            member = member.parent
        return found


class _Vanished:
    """A process that is gone and not yet found in an ancestor's counters."""

    def __init__(self, member: Member, value: Counters) -> None:
        self.member = member
        self.value = value
        self.first_tick = True
        # What each ancestor had before it could have taken this one in.
        self.bases = {a: _counters(a.before) for a in member.ancestors()}

    def order(self) -> tuple[int, int]:
        """Sort key: nearest to the root first, then the largest."""
        return len(self.member.ancestors()), -sum(self.value)


class Tree:
    """Totals of a root process and its descendants. Drive it tick by tick:
    `join` the new, let each member `see` in the order of `members`, `close_tick`.
    """

    def __init__(self, root_pid: int, *, parenting: Callable[[int], Parenting]) -> None:
        self.members: dict[int, Member] = {root_pid: Member(root_pid, None)}
        """Living and zombie processes by pid, parents before their children."""
        self._parenting = parenting
        self._ended: list[Member] = []
        self._vanished: list[_Vanished] = []
        self._retained = ZERO
        self._highest = ZERO
        self._baseline: Counters | None = None

    def join(self, pid: int, parent_pid: int) -> Member:
        """Add a process whose parent is a member."""
        member = Member(pid, self.members[parent_pid])
        self.members[pid] = member
        return member

    def lose(self, member: Member) -> None:
        """Note that a member is gone: its parent has waited for it, or nobody will."""
        member.gone = True
        del self.members[member.pid]
        self._ended.append(member)

    def orphans(self) -> list[Member]:
        """Members whose parent was lost in this tick: they have a new one, see `adopt`."""
        if not self._ended:
            return []
        return [m for m in self.members.values() if m.parent is not None and m.parent.gone]

    def adopt(self, member: Member, parent_pid: int) -> None:
        """Note an orphan's new parent; it stays a member when that one is outside the tree."""
        member.parent = self.members.get(parent_pid)

    def close_tick(self) -> Counters:
        """Totals since the first tick. They never fall."""
        for member in self._ended:
            value = _counters(member.text)
            if any(value):
                self._vanished.append(_Vanished(member, value))
        self._ended.clear()
        waiting = self._settle()
        living = sum_io([member.text for member in self.members.values() if member.text])
        total = add(self._retained, waiting, living)
        if self._baseline is None:
            self._baseline = total
        self._highest = tuple(
            max(high, now - base)
            for high, now, base in zip(self._highest, total, self._baseline, strict=True)
        )
        return self._highest

    def _settle(self) -> Counters:
        """Decide where the vanished went; the sum of those that cannot be told before next tick.

        An ancestor may be read before it takes a child in that is read as gone later in the same
        tick, so only the next tick shows for certain that none did.
        """
        if not self._vanished:
            return ZERO
        claimed: dict[Member, Counters] = {}
        undecided: list[_Vanished] = []
        waiting = ZERO
        # Parents first, as a child's parent can only be told once its own fate is; then the
        # largest, as what is left of an ancestor's growth must not be too small for it.
        for one in sorted(self._vanished, key=_Vanished.order):
            if self._absorbed(one, claimed):
                continue
            if one.first_tick:
                one.first_tick = False
                undecided.append(one)
                waiting = add(waiting, one.value)
            else:
                self._retained = add(self._retained, one.value)
        self._vanished = undecided
        return waiting

    def _absorbed(self, one: _Vanished, claimed: dict[Member, Counters]) -> bool:
        """Whether an ancestor has grown by at least what `one` had, beyond what others explain."""
        for ancestor in one.member.ancestors():
            if ancestor.gone:
                continue
            parenting = self._parenting(ancestor.pid)
            taken = claimed.get(ancestor, ZERO)
            base = one.bases.get(ancestor, ZERO)
            now = _counters(ancestor.text)
            grown = all(
                n - b - t >= v for n, b, t, v in zip(now, base, taken, one.value, strict=True)
            )
            if grown and parenting is not Parenting.IGNORES:
                claimed[ancestor] = add(taken, one.value)
                return True
            if ancestor is one.member.parent and parenting is not Parenting.DEAD:
                # Nobody but a living parent can wait for its child.
                return False
        return False


def _counters(text: bytes) -> Counters:
    try:
        return parse_io(text)
    except ValueError:
        return ZERO
