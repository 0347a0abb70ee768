from pathlib import Path

from ioprof.sources.cifs import FACTS
from ioprof.sources.cifsstats import parse, server_counters, share_counters
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "cifs"
NAMES = {counter for fact in FACTS for counter in fact.counters}


def counters(text):
    shares = parse(text)
    return share_counters(shares) | (server_counters(shares) or {})


def test_any_text_is_survived():
    samples = [path.read_bytes() for path in sorted(DATA.iterdir())]
    survives(counters, samples, keys=dict.keys, allowed=NAMES)
