from pathlib import Path

from ioprof.sources.zfs import FACTS, parse_arc, parse_dataset
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "zfs"
NAMES = {counter for fact in FACTS for counter in fact.counters}


def test_any_dataset_is_survived():
    samples = [(DATA / "objset.txt").read_bytes()]
    survives(parse_dataset, samples, keys=dict.keys, allowed=NAMES)


def test_any_arc_is_survived():
    samples = [(DATA / "arcstats.txt").read_bytes()]
    survives(parse_arc, samples, keys=lambda made: made[0] | made[1], allowed=NAMES)
