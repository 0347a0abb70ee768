from pathlib import Path

from ioprof.sources.gds import FACTS
from ioprof.sources.gdsstats import parse_cufile, parse_driver
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "gpu"
NAMES = {counter for fact in FACTS for counter in fact.counters}


def test_any_text_of_the_driver_is_survived():
    samples = [
        (DATA / "nvidia_fs_stats_enabled.txt").read_bytes(),
        (DATA / "nvidia_fs_stats_disabled.txt").read_bytes(),
    ]
    survives(parse_driver, samples, keys=lambda made: made.counters | made.gauges, allowed=NAMES)


def test_any_text_of_cufile_is_survived():
    survives(
        parse_cufile,
        [(DATA / "gds_stats_l3.txt").read_bytes()],
        keys=lambda made: {name for row in made.values() for name in row},
        allowed=NAMES,
    )
