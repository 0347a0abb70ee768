"""The trainer's command line is its config."""

from pathlib import Path

import pytest

from ioprof_pipelines.config import TrainConfig, parse

NEEDED = ["--filelist=f.npz", "--loader=reads", "--accelerator=none"]


def test_defaults_are_those_of_the_config():
    assert parse(NEEDED) == TrainConfig(filelist=Path("f.npz"), loader="reads", accelerator="none")


def test_every_option_is_read_by_its_type():
    config = parse([*NEEDED, "--batch=7", "--duration-s=2.5", "--between-epochs=evict", "--mmap"])
    assert (config.batch, config.duration_s, config.between_epochs, config.mmap) == (
        7,
        2.5,
        "evict",
        True,
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--batch=0"], "--batch must be at least 1"),
        (["--workers=0"], "--workers must be at least 1"),
        (["--accelerator=emulated"], "needs --samples-per-s"),
        (["--accelerator=tpu"], "invalid choice"),
    ],
)
def test_what_cannot_be_is_a_usage_error(arguments, says, capsys):
    with pytest.raises(SystemExit) as ended:
        parse([*NEEDED, *arguments])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
