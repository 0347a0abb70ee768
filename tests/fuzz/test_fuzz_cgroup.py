from pathlib import Path

from ioprof.sources.cgroup import FACTS, parse_io_stat, parse_memory, parse_throttle
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "cgroup"
NAMES = {counter for fact in FACTS for counter in fact.counters}


def names(rows):
    return {name for row in rows.values() for name in row}


def test_any_io_stat_is_survived():
    survives(parse_io_stat, [(DATA / "v2_io.stat.txt").read_bytes()], keys=names, allowed=NAMES)


def test_any_throttle_file_is_survived():
    sample = (DATA / "v1_blkio.throttle.io_service_bytes.txt").read_bytes()
    survives(lambda text: parse_throttle(text, text), [sample], keys=names, allowed=NAMES)


def test_any_memory_stat_is_survived():
    wanted = {"page_cache_bytes": (b"file",), "page_faults_major_total": (b"pgmajfault",)}
    survives(
        lambda text: parse_memory(text, wanted),
        [(DATA / "v2_memory.stat.txt").read_bytes()],
        keys=dict.keys,
        allowed=NAMES,
    )
