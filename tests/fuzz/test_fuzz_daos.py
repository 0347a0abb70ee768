from pathlib import Path

from ioprof.sources.daos import FACTS
from ioprof.sources.daosstats import Tally, parse
from tests.fuzz.mutate import survives

SAMPLE = (Path(__file__).parents[1] / "data" / "daos" / "agent_client_metrics.prom").read_bytes()


def test_any_text_is_survived():
    told = {counter for fact in FACTS for counter in fact.counters}
    survives(lambda text: Tally().counters(parse(text)), [SAMPLE], keys=dict.keys, allowed=told)
