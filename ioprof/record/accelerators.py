"""Published training rates of ResNet-50, for accelerators that are emulated. Each has its source.

Rates differ by a factor of four for one accelerator: a framework's out-of-the-box script, a
vendor's tuned submission, and the calibration of a storage benchmark are different things. The
plain names are out-of-the-box PyTorch with mixed precision.
"""

from __future__ import annotations

import math

import msgspec

from ioprof.errors import UsageError
from ioprof.record.study import AcceleratorModel

_DLE = "NVIDIA DeepLearningExamples, PyTorch ResNet-50 v1.5 README, one GPU"
_LAMBDA = "Lambda GPU benchmarks, PyTorch ResNet-50, synthetic data"
_MLPERF_TRAINING = "MLPerf Training logs, ResNet, per GPU of an 8-GPU node"
_MLPERF_STORAGE = "MLPerf Storage v1.0 workload file, ResNet-50, batch 400"


class PublishedRate(msgspec.Struct, frozen=True, kw_only=True):
    """Samples per second of one accelerator, and what it was measured with."""

    samples_per_s: float
    precision: str
    framework: str
    source: str


RATES: dict[str, PublishedRate] = {
    name: PublishedRate(samples_per_s=rate, precision=precision, framework=framework, source=source)
    for name, rate, precision, framework, source in (
        ("v100", 1200.0, "AMP", "PyTorch", _DLE),
        ("a100", 2470.0, "AMP", "PyTorch", _DLE),
        ("h100", 2791.0, "AMP", "PyTorch", _LAMBDA),
        ("h200", 3079.0, "AMP", "PyTorch", _LAMBDA),
        ("b200", 3076.0, "AMP", "PyTorch", _LAMBDA),
        ("v100-tuned", 1394.0, "AMP", "MXNet", f"{_MLPERF_TRAINING}, v0.7 NVIDIA DGX-1"),
        ("a100-tuned", 3573.0, "AMP", "MXNet", f"{_MLPERF_TRAINING}, v3.0 Dell XE9680 A100"),
        ("h100-tuned", 7009.0, "AMP", "MXNet", f"{_MLPERF_TRAINING}, v3.0 NVIDIA DGX H100"),
        ("mlperf-storage-a100", 919.5, "emulated", "TensorFlow", f"{_MLPERF_STORAGE}, 0.435 s"),
        ("mlperf-storage-h100", 1785.7, "emulated", "TensorFlow", f"{_MLPERF_STORAGE}, 0.224 s"),
    )
}
"""By the name that follows `emulated:`."""


def resolve(text: str) -> AcceleratorModel:
    """The accelerator of "cuda", "cpu", "emulated:h100" or "emulated:2791" (samples per second)."""
    if text in ("cuda", "cpu"):
        return AcceleratorModel(name=text, kind="cuda" if text == "cuda" else "cpu")
    prefix, _, what = text.partition(":")
    if prefix == "emulated" and what in RATES:
        rate = RATES[what]
        return AcceleratorModel(
            name=what.upper() if "-" not in what else what,
            kind="emulated",
            samples_per_s=rate.samples_per_s,
            source=f"{rate.source}; {rate.framework}, {rate.precision}",
        )
    number = _number(what) if prefix == "emulated" else None
    if number is not None and 0 < number < math.inf:
        return AcceleratorModel(
            name="accelerator", kind="emulated", samples_per_s=number, source="typed in"
        )
    raise UsageError(
        f"There is no accelerator {text!r}. Choose auto, cuda, cpu, emulated:SAMPLES_PER_S, or "
        f"emulated: with one of {', '.join(RATES)}."
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
