from pathlib import Path

from ioprof.sources.dcgm import parse
from tests.fuzz.mutate import survives

SAMPLE = (Path(__file__).parents[1] / "data" / "gpu" / "dcgm_exporter.prom").read_bytes()
NAMES = {
    "DCGM_FI_PROF_PCIE_RX_BYTES",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_DEV_GPU_UTIL",
}


def test_any_text_is_survived():
    survives(
        parse,
        [SAMPLE],
        keys=lambda made: {name for values in made.values() for name in values},
        allowed=NAMES,
    )
