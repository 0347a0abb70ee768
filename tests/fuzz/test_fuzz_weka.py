from pathlib import Path

from ioprof.sources.weka import FACTS
from ioprof.sources.wekastats import (
    counters,
    frontends,
    means,
    parse_processes,
    parse_rates,
    parse_stat,
)
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "weka"
TOLD = {counter for fact in FACTS for counter in fact.counters}
PROCESSES = b"""[
 {"id": "NodeId<41>", "hostname": "client1", "roles": ["MANAGEMENT", "FRONTEND"]},
 {"node_id": "NodeId<42>", "hostname": "client2", "roles": ["FRONTEND"]}
]"""


def sensible(made):
    assert all(value is None or value >= 0 for value in made.values())
    return made


def test_any_statistics_of_the_driver_are_survived():
    sample = (DATA / "proc_wekafs_stat.txt").read_bytes()

    def parse(text):
        rows = parse_stat(text)
        return sensible({**counters(rows), **means(rows)})

    survives(parse, [sample], keys=dict.keys, allowed=TOLD)


def test_any_interface_is_survived():
    survives(frontends, [(DATA / "proc_wekafs_interface.txt").read_bytes()])


def test_any_list_of_processes_is_survived():
    def parse(text):
        return {str(number) for number in parse_processes(text, hosts={"client1"})}

    survives(parse, [PROCESSES])


def test_any_rates_are_survived():
    samples = [(DATA / f"api_stats_show_{version}.json").read_bytes() for version in ("v3", "v4")]
    survives(
        lambda text: sensible(parse_rates(text, processes={41})),
        samples,
        keys=dict.keys,
        allowed=TOLD,
    )
