from pathlib import Path

from ioprof.sources.gluster import FACTS
from ioprof.sources.glusterstats import parse_dump, parse_profile
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "gluster"
PROFILE = (DATA / "profile_info_cumulative.xml").read_bytes()
DUMP = (DATA / "client_io_stats_dump_10.3.txt").read_bytes()
TOLD = {counter for fact in FACTS for counter in fact.counters}


def test_any_profile_is_survived():
    survives(
        parse_profile,
        [PROFILE],
        errors=(ValueError,),
        keys=lambda found: found.counters,
        allowed=TOLD,
    )


def test_any_dump_is_survived():
    survives(
        parse_dump, [DUMP], errors=(ValueError,), keys=lambda found: found.counters, allowed=TOLD
    )
