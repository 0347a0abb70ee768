from functools import partial
from pathlib import Path

from ioprof.sources.lustre import FACTS
from ioprof.sources.lustreparams import sections
from ioprof.sources.lustrestats import (
    app_counters,
    fast_read_counters,
    metadata_counters,
    parse_cache,
    parse_rpc_sizes,
    parse_stats,
    readahead_counters,
    wire_counters,
)
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "lustre"
STATS = [file.read_bytes() for file in sorted(DATA.glob("*stats*.txt"))]
TOLD = {counter for fact in FACTS for counter in fact.counters}


def every_counter(text):
    found = parse_stats(text)
    made = app_counters(found) | metadata_counters(found) | wire_counters(found)
    made |= readahead_counters(found) | (fast_read_counters(found) or {})
    assert all(value is None or value >= 0 for value in made.values())
    assert found.age_s is None or found.age_s >= 0
    return made


def test_any_statistics_are_survived():
    survives(every_counter, STATS, keys=dict.keys, allowed=TOLD)


def test_any_histogram_is_survived():
    parse = partial(parse_rpc_sizes, page_bytes=4096)
    sample = (DATA / "osc_rpc_stats.txt").read_bytes()
    survives(parse, [sample], errors=(ValueError,), keys=dict.keys, allowed=TOLD)


def test_any_cache_is_survived():
    sample = (DATA / "max_cached_mb.txt").read_bytes()
    survives(parse_cache, [sample], keys=dict.keys, allowed=TOLD)


def test_any_answer_of_lctl_is_survived():
    names = (b"llite.a.stats", b"osc.b.stats")
    answer = b"".join(name + b"=\n" + text for name, text in zip(names, STATS, strict=False))
    allowed = {name.decode() for name in names}
    survives(partial(sections, wanted=frozenset(names)), [answer], keys=dict.keys, allowed=allowed)
