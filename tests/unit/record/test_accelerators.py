import pytest

from ioprof.errors import UsageError
from ioprof.record.accelerators import RATES, resolve


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_a_real_accelerator_has_no_rate_beforehand(kind):
    found = resolve(kind)
    assert (found.name, found.kind, found.samples_per_s) == (kind, kind, None)
    assert found.source == "measured here"


@pytest.mark.parametrize(
    ("text", "name", "samples_per_s"),
    [
        ("emulated:h100", "H100", 2791.0),
        ("emulated:a100", "A100", 2470.0),
        ("emulated:h100-tuned", "h100-tuned", 7009.0),
    ],
)
def test_an_emulated_accelerator_takes_its_published_rate(text, name, samples_per_s):
    found = resolve(text)
    assert (found.name, found.kind) == (name, "emulated")
    assert found.samples_per_s == samples_per_s
    assert "ResNet" in found.source


@pytest.mark.parametrize(
    ("name", "batch", "step_s"),
    [("mlperf-storage-h100", 400, 0.224), ("mlperf-storage-a100", 400, 0.435)],
)
def test_the_storage_benchmarks_rates_are_its_batch_over_its_step(name, batch, step_s):
    # 400 ÷ 0.224 = 1,785.7; 400 ÷ 0.435 = 919.5.
    found = resolve(f"emulated:{name}")
    assert found.samples_per_s == pytest.approx(batch / step_s, abs=0.05)
    assert f"{step_s:g} s" in found.source


@pytest.mark.parametrize(("text", "rate"), [("emulated:2791", 2791.0), ("emulated:0.5", 0.5)])
def test_a_rate_can_be_typed_in(text, rate):
    found = resolve(text)
    assert (found.kind, found.samples_per_s, found.source) == ("emulated", rate, "typed in")


@pytest.mark.parametrize("name", RATES)
def test_every_published_rate_says_what_it_was_measured_with(name):
    rate = RATES[name]
    assert rate.samples_per_s > 0
    source = resolve(f"emulated:{name}").source
    assert rate.source in source and rate.framework in source and rate.precision in source


@pytest.mark.parametrize(
    "text",
    [
        "h100",
        "emulated",
        "emulated:",
        "emulated:z100",
        "emulated:0",
        "emulated:-5",
        "emulated:nan",
        "emulated:inf",
        "tpu",
        "cuda:0",
        "",
    ],
)
def test_an_unknown_accelerator_is_refused_with_all_that_are_known(text):
    with pytest.raises(UsageError) as refused:
        resolve(text)
    message = str(refused.value)
    assert repr(text) in message
    for name in ("auto", "cuda", "cpu", *RATES):
        assert name in message
