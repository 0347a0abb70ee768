"""What every finder and every source keeps to, whoever wrote it."""

import os
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources import nvml
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import find_mount
from ioprof.sources.registry import FACTS, FAMILIES, find_all
from ioprof.sources.source import Roots, Target

UNITS = (
    "_bytes", "_seconds", "_operations", "_calls", "_merges", "_major", "_pages", "_requests",
    "_hits", "_misses", "_packets", "retransmits", "_ticks",
)  # fmt: skip


@pytest.fixture(scope="module")
def target():
    mount = find_mount(Path(__file__))
    return Target(
        root_pid=os.getpid(),
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        data_path=Path(__file__).parent,
        mount=mount,
        stack=find_stack(mount),
    )


def test_every_module_that_finds_sources_is_registered():
    folder = Path(nvml.__file__).parent
    with_finders = {
        f"ioprof.sources.{path.stem}"
        for path in folder.glob("*.py")
        if path.stem not in ("registry", "source") and "\ndef find(" in path.read_text()
    }
    assert {family.__name__ for family in FAMILIES} == with_finders


def test_a_counter_has_one_fact_that_says_where_it_is_from():
    named = [(fact.source, counter) for fact in FACTS for counter in fact.counters]
    assert len(named) == len(set(named))
    for fact in FACTS:
        for text in (fact.file, fact.field, fact.unit, fact.since, fact.caveat, fact.check):
            assert text.strip(), f"{fact.source} leaves something out"


@pytest.fixture(params=FAMILIES, ids=lambda module: module.__name__.rpartition(".")[2])
def finder(request):
    return request.param.find


def test_it_finds_a_source_or_says_why_not(finder, target):
    for one in finder(target):
        if isinstance(one, Unavailable):
            assert one.source
            assert len(one.reason.split()) >= 3, "a reason is a sentence"
        else:
            assert one.name
            assert one.every_ticks >= 1
            one.close()


def test_on_a_machine_that_has_nothing_it_says_so_and_does_not_raise(finder, tmp_path):
    bare = Roots(proc=tmp_path / "proc", sys=tmp_path / "sys")
    for one in finder(Target(root_pid=1), roots=bare):
        if isinstance(one, Unavailable):
            assert one.reason
        else:
            assert finder is nvml.find, "it found something in an empty folder"
            one.close()


def test_readings_carry_layer_scope_and_named_units(finder, target):
    for source in finder(target):
        if isinstance(source, Unavailable):
            continue
        readings = list(source.read())
        # A device has no row in a cgroup's file before the group's first I/O on it.
        assert readings or source.name == "cgroup.io"
        for reading in readings:
            assert isinstance(reading, Reading)
            assert isinstance(reading.layer, Layer)
            assert isinstance(reading.scope, Scope)
            assert reading.instance
            told = {c for fact in FACTS if fact.source == reading.source for c in fact.counters}
            assert told >= set(reading.counters) | set(reading.gauges), reading.source
            for name, value in reading.counters.items():
                assert name.endswith("_total")
                assert any(unit in name for unit in UNITS), f"{name} names no unit"
                assert value is None or value >= 0
        assert len({(r.source, r.instance) for r in readings}) == len(readings)
        source.close()


def test_counters_never_fall_and_columns_stay(finder, target):
    for source in finder(target):
        if isinstance(source, Unavailable):
            continue
        before = {(r.source, r.instance): r for r in source.read()}
        for _ in range(3):
            for reading in source.read():
                old = before.get((reading.source, reading.instance), reading)
                assert tuple(reading.counters) == tuple(old.counters)
                assert tuple(reading.gauges) == tuple(old.gauges)
                for name, value in reading.counters.items():
                    was = old.counters[name]
                    assert value is None or was is None or value >= was
                before[reading.source, reading.instance] = reading
        source.close()


def test_closing_leaves_no_file_open(finder, target):
    before = sorted(Path("/proc/self/fd").iterdir())
    for source in finder(target):
        if not isinstance(source, Unavailable):
            list(source.read())
            source.close()
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_all_sources_together_have_distinct_series(target):
    seen = set()
    for source in find_all(target):
        if isinstance(source, Unavailable):
            continue
        for reading in source.read():
            assert (reading.source, reading.instance) not in seen
            seen.add((reading.source, reading.instance))
        source.close()
    assert ("process.io", "tree") in seen
