from pathlib import Path

from ioprof.sources.gpfs import FACTS, counters, parse
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "gpfs"
SAMPLES = [file.read_bytes() for file in sorted(DATA.glob("*.txt"))]
TOLD = {counter for fact in FACTS for counter in fact.counters}


def test_any_answer_is_survived():
    survives(
        lambda text: [counters(pairs) for pairs in parse(text).values()],
        SAMPLES,
        keys=lambda made: {name for one in made for name in one},
        allowed=TOLD,
    )
