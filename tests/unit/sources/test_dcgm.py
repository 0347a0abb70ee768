"""dcgm-exporter's text, and an exporter of this process's own."""

import http.server
import threading
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.dcgm import VARIABLE, find, parse
from ioprof.sources.source import Target

SAMPLE = (Path(__file__).parents[2] / "data" / "gpu" / "dcgm_exporter.prom").read_bytes()
UTIL = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"} '


def look():
    return find(Target(root_pid=1))


@pytest.fixture
def exporter(monkeypatch):
    """Serves `exporter.text` with `exporter.status` on the loopback."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(server.status)
            if server.status == 302:
                self.send_header("Location", "http://192.0.2.1/metrics")
            self.end_headers()
            self.wfile.write(server.text)

        def log_message(self, *arguments):
            pass

    class Server(http.server.HTTPServer):
        status = 200
        text = SAMPLE

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv(VARIABLE, f"http://127.0.0.1:{server.server_port}/metrics")
    monkeypatch.setenv("http_proxy", "http://192.0.2.1:1")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_values_of_the_sample():
    assert parse(SAMPLE) == {
        "0": {
            "DCGM_FI_PROF_PCIE_RX_BYTES": 10_737_418_240,
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.93,
            "DCGM_FI_DEV_GPU_UTIL": 100,
        }
    }


def test_shares_are_shares_and_rates_are_gauges(exporter):
    (source,) = look()
    (reading,) = source.read()
    source.close()
    assert (reading.source, reading.instance) == ("dcgm", "0")
    assert (reading.layer, reading.scope) == (Layer.HOST, Scope.DEVICE)
    assert reading.counters == {"pcie_receive_bytes_total": None, "pcie_transmit_bytes_total": None}
    assert reading.gauges == {
        "gpu_kernel_busy": 1.0,
        "memory_busy": None,
        "graphics_engine_active": 0.93,
        "sm_active": None,
        "sm_occupancy": None,
        "tensor_active": None,
        "dram_active": None,
        "pcie_receive_bytes_per_second": 10_737_418_240,
        "pcie_transmit_bytes_per_second": None,
        "memory_used_bytes": None,
        "power_watts": None,
    }


def test_a_rate_that_is_called_a_counter_is_a_rate_still(exporter):
    exporter.text = SAMPLE.replace(b"RX_BYTES gauge", b"RX_BYTES counter")
    exporter.text += b'DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL{gpu="0"} 77\n'
    (source,) = look()
    (reading,) = source.read()
    source.close()
    assert reading.gauges["pcie_receive_bytes_per_second"] == 10_737_418_240
    assert reading.counters["pcie_receive_bytes_total"] == 77


@pytest.mark.parametrize(
    "value",
    ["[Not Supported]", "[N/A]", "N/A", "[Unknown Error]", "Unknown", "[GPU requires reset]", "",
     "NaN", "+Inf", "-1", "2147483632", "140737488355328", "9223372036854775794"],
)  # fmt: skip
def test_what_is_no_number_is_left_out_and_takes_no_other_with_it(value):
    """anderskm/gputil#5, wookayin/gpustat#6, enkore/i3pystatus#850, netdata/netdata#4892, #10311,
    Ricks-Lab/gpu-utils#127: words where a number is expected; and DCGM's marks for "no value"."""
    text = f'{UTIL}{value}\nDCGM_FI_DEV_POWER_USAGE{{gpu="0"}} 350.5\n'
    assert parse(text.encode()) == {"0": {"DCGM_FI_DEV_POWER_USAGE": 350.5}}


def test_instances_of_a_gpu_with_mig_are_told_apart():
    text = b"".join(
        b'DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",GPU_I_PROFILE="1g.10gb",GPU_I_ID="%d"} 0.%d\n'
        % (part, part)
        for part in (7, 8)
    )
    assert parse(text) == {
        "0/7": {"DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.7},
        "0/8": {"DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.8},
    }


def test_metrics_of_other_names_are_not_taken_for_ours():
    assert parse(b'DCGM_FI_DEV_GPU_UTIL_X{gpu="0"} 1\nX_DCGM_FI_DEV_GPU_UTIL{gpu="0"} 1\n') == {}
    assert parse(b"DCGM_FI_DEV_GPU_UTIL 1\n") == {}, "of which GPU?"


def test_without_the_variable_nothing_is_asked(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert look() == []


@pytest.mark.parametrize(
    "address",
    ["http://192.0.2.7:9400/metrics", "https://127.0.0.1/metrics", "file:///etc/passwd",
     "http://127.0.0.1:nine/metrics", "http://[::1/metrics", "127.0.0.1:9400"],
)  # fmt: skip
def test_only_an_exporter_of_this_machine_is_asked(monkeypatch, address):
    monkeypatch.setenv(VARIABLE, address)
    (found,) = look()
    assert isinstance(found, Unavailable)
    assert address in found.reason
    assert "http://127.0.0.1:9400/metrics" in (found.remedy or "")


@pytest.mark.parametrize("status", [302, 500])
def test_another_answer_is_an_error_that_says_so(exporter, status):
    exporter.status = status
    (source,) = look()
    with pytest.raises(OSError, match=f"the exporter answered {status}"):
        source.read()
    source.close()


def test_an_exporter_that_is_gone_is_an_error(monkeypatch):
    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:1/metrics")
    (source,) = look()
    with pytest.raises(OSError, match="refused"):
        source.read()
    source.close()
