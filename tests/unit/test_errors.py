"""The tree of errors is as its docstring draws it."""

from __future__ import annotations

import inspect
import re

from ioprof import errors
from ioprof.errors import IoprofError

LINE = re.compile(r"^    (?P<lines>[│├└─ ]*)(?P<name>[A-Z]\w+Error)\s+(?:\((?P<status>\d)\)\s+)?\S")


def drawn() -> dict[str, tuple[str | None, int | None]]:
    """Class name → (parent, exit status if drawn), from the docstring."""
    found: dict[str, tuple[str | None, int | None]] = {}
    stack: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        depth = len(match["lines"])
        while stack and stack[-1][0] >= depth:
            stack.pop()
        status = int(match["status"]) if match["status"] else None
        found[match["name"]] = (stack[-1][1] if stack else None, status)
        stack.append((depth, match["name"]))
    return found


def classes() -> dict[str, type[IoprofError]]:
    return {
        name: item
        for name, item in inspect.getmembers(errors, inspect.isclass)
        if issubclass(item, IoprofError)
    }


def test_the_docstring_draws_every_error_and_no_other():
    assert set(drawn()) == set(classes())


def test_each_error_hangs_where_it_is_drawn():
    for name, (parent, _) in drawn().items():
        assert classes()[name].__base__ is (Exception if parent is None else classes()[parent])


def test_each_error_returns_the_exit_status_that_is_drawn():
    for name, (_, status) in drawn().items():
        if status is not None:
            assert classes()[name].exit_status == status


def test_every_error_says_what_it_means():
    assert all(inspect.getdoc(item) for item in classes().values())


def test_the_exit_statuses_are_those_of_the_command_line():
    assert errors.EXIT_MEASURED == 0
    assert errors.EXIT_INVALID == 1
    assert errors.EXIT_USAGE == 2
    assert errors.EXIT_NOT_MEASURED == 3
    assert errors.EXIT_INTERRUPTED == 130
