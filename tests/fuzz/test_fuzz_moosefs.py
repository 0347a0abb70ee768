from pathlib import Path

from ioprof.sources.moosefs import FACTS, parse
from tests.fuzz.mutate import survives

SAMPLE = (Path(__file__).parents[1] / "data" / "moosefs" / "stats.txt").read_bytes()


def test_any_text_is_survived():
    told = {counter for fact in FACTS for counter in fact.counters}
    survives(parse, [SAMPLE], keys=dict.keys, allowed=told)
