from pathlib import Path

from ioprof.sources.juicefs import FACTS, parse
from tests.fuzz.mutate import survives

SAMPLE = (Path(__file__).parents[1] / "data" / "juicefs" / "stats.txt").read_bytes()


def test_any_text_is_survived():
    told = {counter for fact in FACTS for counter in fact.counters}
    survives(
        parse,
        [SAMPLE],
        keys=lambda stats: {*stats.client, *stats.cache, *stats.store},
        allowed=told,
    )
