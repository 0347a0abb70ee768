from pathlib import Path

from ioprof.sources.xfs import FACTS, parse
from tests.fuzz.mutate import survives

SAMPLE = (Path(__file__).parents[1] / "data" / "xfs" / "stat.txt").read_bytes()


def test_any_text_is_survived():
    names = {counter for fact in FACTS for counter in fact.counters}
    survives(parse, [SAMPLE, b"dir 1 2 3 4\n" + SAMPLE], keys=dict.keys, allowed=names)
