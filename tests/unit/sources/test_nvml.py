"""NVML through a stand-in for the pynvml module: each query may answer or raise."""

import sys
import tomllib
import warnings
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest

from ioprof.record.reading import Scope, Unavailable
from ioprof.sources.nvml import find
from ioprof.sources.source import Target

NOT_SUPPORTED, NOT_FOUND, GPU_IS_LOST = 3, 6, 15
TARGET = Target(root_pid=1)


def look(*arguments, **named):
    return find(*arguments, **named)


class FakeError(Exception):
    def __init__(self, value):
        super().__init__(f"NVML error {value}")
        self.value = value


class FakeNvml:
    """Two GPUs by default; `answers` replaces a query's answer, an int is the error it raises."""

    NVMLError = FakeError

    def __init__(self, *, count=2, **answers):
        self.asked = []
        self.answers = {
            "nvmlInit": None,
            "nvmlShutdown": None,
            "nvmlDeviceGetCount": count,
            "nvmlDeviceGetHandleByIndex": SimpleNamespace(),
            "nvmlDeviceGetName": "NVIDIA H200",
            "nvmlDeviceGetMigMode": NOT_SUPPORTED,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=63, memory=20),
            "nvmlDeviceGetSamples": NOT_SUPPORTED,
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=5 * 2**30),
            "nvmlDeviceGetPowerUsage": 350_500,
            "nvmlDeviceGetFieldValues": [field(3, 1000), field(3, 2000)],
            **answers,
        }

    def __getattr__(self, name):
        if name not in self.answers:
            raise AttributeError(name)

        def call(*arguments):
            self.asked.append((name, *arguments[1:]))
            answer = self.answers[name]
            if callable(answer):
                answer = answer(*arguments)
            if isinstance(answer, int) and not callable(self.answers[name]) and name not in NUMBERS:
                raise FakeError(answer)
            return answer

        return call


NUMBERS = ("nvmlDeviceGetCount", "nvmlDeviceGetPowerUsage")


def fail(code):
    def raising(*arguments):
        raise FakeError(code)

    return raising


def field(value_type, value, error=0):
    members = {1: "uiVal", 3: "ullVal"}
    return SimpleNamespace(
        nvmlReturn=error,
        valueType=value_type,
        value=SimpleNamespace(**{members[value_type]: value}),
    )


def sample(time_us, percent):
    return SimpleNamespace(timeStamp=time_us, sampleValue=SimpleNamespace(uiVal=percent))


def source_of(nvml):
    source, *_ = look(TARGET, nvml=nvml)
    assert not isinstance(source, Unavailable)
    return source


def one(nvml):
    (reading,) = source_of(nvml).read()
    return reading


def test_every_value_in_base_units():
    first, second = source_of(FakeNvml()).read()
    assert (first.instance, second.instance) == ("0", "1")
    assert first.gauges == {
        "gpu_kernel_busy": 0.63,
        "memory_busy": 0.2,
        "memory_used_bytes": 5 * 2**30,
        "power_watts": 350.5,
    }
    assert first.counters == {
        "pcie_receive_bytes_total": 1000,
        "pcie_transmit_bytes_total": 2000,
    }
    assert "not accelerator utilisation" in first.note


def test_with_mig_busy_is_none_and_said_to_be_so():
    """XuehaiPan/nvitop#5, dask/distributed#8739, wookayin/gpustat#102, Syllo/nvtop#256,
    utkuozdemir/nvidia_gpu_exporter#203, mlflow/mlflow#14214: the monitor died, or showed 0."""
    reading = one(
        FakeNvml(
            count=1,
            nvmlDeviceGetMigMode=[1, 1],
            nvmlDeviceGetUtilizationRates=NOT_SUPPORTED,
        )
    )
    assert reading.gauges["gpu_kernel_busy"] is None
    assert reading.gauges["memory_used_bytes"] == 5 * 2**30
    assert "n/a (MIG)" in reading.note


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        ("nvmlDeviceGetUtilizationRates", {"gpu_kernel_busy", "memory_busy"}),
        ("nvmlDeviceGetMemoryInfo", {"memory_used_bytes"}),
        ("nvmlDeviceGetPowerUsage", {"power_watts"}),
        ("nvmlDeviceGetFieldValues", {"pcie_receive_bytes_total", "pcie_transmit_bytes_total"}),
    ],
)
@pytest.mark.parametrize("code", [NOT_SUPPORTED, 4, 13, 999])
def test_one_value_that_fails_takes_no_other_with_it(query, missing, code):
    """mlflow/mlflow#14736, #14756, NVIDIA/TensorRT-LLM#1861 (vGPU):
    one metric ended all sampling."""
    reading = one(FakeNvml(count=1, **{query: fail(code)}))
    values = {**reading.gauges, **reading.counters}
    assert {name for name, value in values.items() if value is None} == missing


def test_a_gpu_with_unified_memory_keeps_its_utilisation_and_says_why_memory_is_not_there():
    """XuehaiPan/nvitop#208, Syllo/nvtop#411, leptonai/gpud#1170, lablup/all-smi#80,
    crystian/ComfyUI-Crystools#288: on GB10, Grace and Tegra all was lost with the memory."""
    reading = one(FakeNvml(count=1, nvmlDeviceGetMemoryInfo=fail(NOT_SUPPORTED)))
    assert reading.gauges["gpu_kernel_busy"] == 0.63
    assert reading.gauges["memory_used_bytes"] is None
    assert "memory is n/a: it is unified with the host's" in reading.note


def test_memory_that_fails_once_is_not_called_unified():
    assert "unified" not in one(FakeNvml(count=1, nvmlDeviceGetMemoryInfo=fail(999))).note


def test_no_process_is_asked_for_so_none_of_another_pid_namespace_is_taken_for_ours():
    """NVIDIA/nvidia-docker#179, #1460, #1483, gpuopenanalytics/pynvml#36, wookayin/gpustat#117:
    in a container NVML names the host's pids. Readings are of the device alone."""
    nvml = FakeNvml(count=1)
    reading = one(nvml)
    assert not [name for name, *_ in nvml.asked if "Process" in name]
    assert reading.scope is Scope.DEVICE


def test_a_window_of_less_than_a_second_is_said_and_looked_at_twice_in_one():
    """mindprince/nvidia_gpu_prometheus_exporter#12: a look every 10 s at a window of 1/6 s."""
    source = source_of(FakeNvml(count=1))
    (reading,) = source.read()
    assert "sample periods (1/6 s to 1 s)" in reading.note
    assert source.every_ticks * 0.1 <= 0.5


def test_the_package_that_is_asked_for_is_the_maintained_one():
    """vllm-project/vllm#7649: pynvml is the deprecated package of the same module."""
    asked = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    wanted = [*asked["dependencies"], *chain(*asked["optional-dependencies"].values())]
    assert any(one.startswith("nvidia-ml-py>=") for one in wanted)
    assert not any(one.startswith("pynvml") for one in wanted)


def test_an_old_binding_without_a_query_is_like_a_gpu_without_it():
    """gpuopenanalytics/pynvml#26, Syllo/nvtop#109, #318, microsoft/WSL#7162:
    a part of the library."""
    nvml = FakeNvml(count=1)
    del nvml.answers["nvmlDeviceGetFieldValues"], nvml.answers["nvmlDeviceGetSamples"]
    reading = one(nvml)
    assert reading.gauges["gpu_kernel_busy"] == 0.63
    assert reading.counters["pcie_receive_bytes_total"] is None


def test_what_is_not_supported_is_asked_for_once():
    nvml = FakeNvml(count=1, nvmlDeviceGetPowerUsage=fail(NOT_SUPPORTED))
    source = source_of(nvml)
    for _ in range(3):
        list(source.read())
    assert [name for name, *_ in nvml.asked].count("nvmlDeviceGetPowerUsage") == 1


def test_a_name_in_bytes_is_decoded():
    """dask/distributed#5768, Atoptool/atop#236, rossumai/nvgpu#29,
    huggingface/optimum-benchmark#240"""
    reading = one(FakeNvml(count=1, nvmlDeviceGetName=b"NVIDIA A100\xff"))
    assert reading.note.startswith("NVIDIA A100\ufffd; ")


def test_busy_is_the_mean_of_the_drivers_new_samples():
    """mindprince/nvidia_gpu_prometheus_exporter#12, plazonic/nvidia_gpu_prometheus_exporter#5:
    one look now and then at a window of less than a second is a lottery."""
    buffer = [sample(100, 90), sample(200, 10)]
    nvml = FakeNvml(count=1, nvmlDeviceGetSamples=lambda handle, kind, since: (1, buffer))
    source = source_of(nvml)
    (first,) = source.read()
    assert first.gauges["gpu_kernel_busy"] == 0.1  # what is older than the recording is not of it
    buffer += [sample(300, 40), sample(400, 60)]
    (second,) = source.read()
    assert second.gauges["gpu_kernel_busy"] == 0.5
    nvml.answers["nvmlDeviceGetSamples"] = fail(NOT_FOUND)
    (third,) = source.read()
    assert third.gauges["gpu_kernel_busy"] == 0.5  # no new sample: the last mean stands
    assert ("nvmlDeviceGetUtilizationRates",) not in nvml.asked


@pytest.mark.parametrize("value", [field(3, 5, error=NOT_SUPPORTED), field(1, 5)])
def test_pcie_bytes_that_fail_or_have_only_32_bits_are_none(value):
    reading = one(FakeNvml(count=1, nvmlDeviceGetFieldValues=[value, field(3, 7)]))
    assert reading.counters == {
        "pcie_receive_bytes_total": None,
        "pcie_transmit_bytes_total": 7,
    }


def test_a_gpu_that_is_lost_leaves_a_gap_and_the_others_go_on():
    nvml = FakeNvml(count=2)
    nvml.answers["nvmlDeviceGetHandleByIndex"] = lambda index: index
    source = source_of(nvml)
    assert len(list(source.read())) == 2
    rates = SimpleNamespace(gpu=1, memory=1)
    nvml.answers["nvmlDeviceGetUtilizationRates"] = lambda handle: (
        rates if handle == 1 else fail(GPU_IS_LOST)()
    )
    assert [r.instance for r in source.read()] == ["1"]


def test_a_gpu_lost_before_the_start_is_named():
    nvml = FakeNvml(nvmlDeviceGetHandleByIndex=lambda index: fail(GPU_IS_LOST)() if index else 0)
    source, lost = look(TARGET, nvml=nvml)
    assert len(list(source.read())) == 1
    assert lost.source == "nvml.1"


def test_a_gpu_lost_while_it_is_described_is_named():
    found = look(TARGET, nvml=FakeNvml(count=1, nvmlDeviceGetName=GPU_IS_LOST))
    assert all(isinstance(one, Unavailable) for one in found)
    assert "fell off the bus" in found[1].reason


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "driver is not loaded"),
        (12, "no NVIDIA driver"),
        (18, "different versions"),
        (999, "NVML did not start"),
    ],
)
def test_without_a_usable_driver_it_is_one_sentence(code, words):
    """wookayin/gpustat#147, wookayin/gpustat#90, rapidsai/dask-cuda#949, anderskm/gputil#55."""
    (found,) = look(TARGET, nvml=FakeNvml(nvmlInit=fail(code)))
    assert isinstance(found, Unavailable)
    assert words in found.reason


def test_a_driver_without_gpus_is_unavailable():
    nvml = FakeNvml(count=0)
    (found,) = look(TARGET, nvml=nvml)
    assert "no GPU" in found.reason
    assert ("nvmlShutdown",) in nvml.asked


def test_without_the_package_it_names_the_command_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    (found,) = look(TARGET)
    assert found.remedy == "pip install 'ioprof[gpu]'"


def test_the_deprecated_package_may_warn(monkeypatch):
    """vllm-project/vllm#7649: two packages with one module name."""

    class Deprecated(FakeNvml):
        def nvmlInit(self):
            raise FakeError(12)

    monkeypatch.setitem(sys.modules, "pynvml", Deprecated())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = look(TARGET)
    assert isinstance(found, Unavailable)


def test_closing_leaves_nvml_even_when_it_is_gone():
    nvml = FakeNvml(nvmlShutdown=fail(999))
    source_of(nvml).close()
    assert ("nvmlShutdown",) in nvml.asked
