from pathlib import Path

from ioprof.sources.infiniband import parse_counter, parse_ethtool
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "net"


def test_any_counter_is_survived():
    survives(parse_counter, [b"2684354560\n", b"N/A (no PMA)\n"])


def test_any_statistics_are_survived():
    survives(parse_ethtool, [(DATA / "ethtool_S_mlx5.txt").read_bytes()])
