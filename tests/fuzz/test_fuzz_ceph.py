from pathlib import Path

from ioprof.sources.ceph import FACTS, parse
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "ceph"
KERNEL = [path.read_bytes() for path in sorted(DATA.glob("kernel_*.txt"))]


def names(found):
    return {*found.counters, *found.means, *found.caps}


def test_any_text_of_the_kernel_is_survived():
    told = {counter for fact in FACTS for counter in fact.counters}
    survives(parse, [*KERNEL, b"\n".join(KERNEL)], keys=names, allowed=told)
