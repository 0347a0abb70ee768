from pathlib import Path

from ioprof.sources.beegfs import FACTS
from ioprof.sources.beegfsstats import counters, local_addresses, parse_queues, parse_v7, parse_v8
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "beegfs"
V7 = [file.read_bytes() for file in sorted(DATA.glob("ctl_v7_*.txt"))]
V8 = (DATA / "v8_stats_client_storage.ndjson").read_bytes()
FIB = b"  |-- 192.0.2.0\n     /24 link UNICAST\n  |-- 192.0.2.20\n     /32 host LOCAL\n"
TOLD = {counter for fact in FACTS for counter in fact.counters}


def every_counter(rows):
    made = counters("storage", rows, addresses=rows) | counters("meta", rows, addresses=rows)
    assert all(value is None or value >= 0 for value in made.values())
    return made


def test_any_answer_of_version_7_is_survived():
    survives(lambda text: every_counter(parse_v7(text)), V7, keys=dict.keys, allowed=TOLD)


def test_any_answer_of_version_8_is_survived():
    survives(lambda text: every_counter(parse_v8(text)), [V8], keys=dict.keys, allowed=TOLD)


def test_any_status_is_survived():
    sample = (DATA / "proc_status.txt").read_bytes()
    survives(parse_queues, [sample], keys=dict.keys, allowed=TOLD)


def test_any_table_of_addresses_is_survived():
    inet6 = b"20010db8000000000000000000000014 02 40 00 80 ib0\n"
    survives(lambda text: local_addresses(text.decode(errors="replace"), inet6.decode()), [FIB])
    survives(lambda text: local_addresses("", text.decode(errors="replace")), [inet6])
