"""OpenMetrics text, read back by prometheus_client's own parser."""

import io

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ioprof.export import openmetrics
from tests.unit.export import recorded


def test_the_text_reads_back_with_every_value_and_its_time(tmp_path):
    out = io.BytesIO()
    openmetrics.write(recorded.write(tmp_path / "run", cells=("a", "b")), out)
    text = out.getvalue().decode()
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    families = {f.name: f for f in text_string_to_metric_families(text)}
    # Nothing is told of merges, which this kernel does not keep.
    assert set(families) == {"ioprof_read_bytes", "ioprof_in_flight"}
    bytes_read = families["ioprof_read_bytes"]
    assert bytes_read.type == "counter"
    told = [s for s in bytes_read.samples if s.labels["cell"] == "a"]
    assert [s.value for s in told] == list(recorded.BYTES)
    assert [round(float(s.timestamp) - recorded.WALL_S, 3) for s in told] == [
        0.0, 0.1, 0.2, 0.3, 0.4,
    ]  # fmt: skip
    assert told[0].labels | {"cell": ""} == {
        "cell": "", "node": "0", "hostname": "n1", "source": "block.diskstats",
        "instance": "vda", "layer": "wire", "scope": "device",
    }  # fmt: skip
    waiting = [s.value for s in families["ioprof_in_flight"].samples if s.labels["cell"] == "b"]
    assert waiting == [3, 3, 5, 5]
