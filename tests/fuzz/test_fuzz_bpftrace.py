from pathlib import Path

from ioprof.record.sizes import names
from ioprof.sources.blocksizes import counts
from ioprof.sources.bpftrace import Print, Prints
from ioprof.sources.fuse import FACTS, counters
from tests.fuzz.mutate import survives

SAMPLE = (Path(__file__).parents[1] / "data" / "fuse" / "bpftrace_maps.json").read_bytes()
PRINT = (
    b'{"type": "map", "data": {"@requests": {"15": 512, "14": 1, "1": 1}}}\n'
    b'{"type": "map", "data": {"@time": {"15": 260000000, "14": 180000, "1": 400000}}}\n'
    b'{"type": "map", "data": {"@bytes": 67108864}}\n'
    b'{"type": "map", "data": {"@sizes": {"8": 512, "40": 3}}}\n'
    b'{"type": "lost_events", "data": {"events": 1}}\n'
    b'{"type": "printf", "data": "23341276315292\\n"}\n'
    b'{"type": "map", "data": {"@bytes": 67108865}}\n'
    b'{"type": "printf", "data": "23341376315292\\n"}\n'
)
TOLD = {counter for fact in FACTS for counter in fact.counters}


def prints(text: bytes) -> list[Print]:
    maker = Prints()
    made = [maker.feed(line) for line in text.split(b"\n")]
    return [one for one in made if one is not None]


def named(made: list[Print]) -> list[str]:
    """All counters that sources make of the prints; none may be no number or fall below 0."""
    values = [(name, value) for one in made for name, value in counters(one).items()]
    sizes = [pair for one in made for place in (0, 1) for pair in counts(one, place=place)]
    for _, value in (*values, *sizes):
        assert value is not None and value >= 0
    assert {name for name, _ in sizes} <= set(names())
    return [name for name, _ in values]


def test_any_output_is_survived():
    survives(prints, [SAMPLE, PRINT], keys=named, allowed=TOLD)
