"""What recording costs: step time with the recorder ÷ without, and the sampler's own CPU.

    python benchmarks/overhead.py [--pairs 10]

Both halves of a pair train the same ResNet-18 on the same resident batch for the same number of
steps and time themselves; one of them runs under the recorder at 100 ms with its marks on. Pairs
are interleaved, and their order alternates, so a drift of the machine cancels. The sampler's CPU
is what it says of itself at the end of a recording with 64 processes in the tree.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ioprof import mark
from ioprof.record.store import read_node
from ioprof.recorder import RecordSpec, record

STEPS = 30
WARM_UP = 5
INTERVAL_S = 0.1
PROCESSES = 64
RESULT = "IOPROF_BENCHMARK_RESULT"


def train() -> None:
    """The measured program: real steps, timed by itself."""
    import torch
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.randn(16, 3, 64, 64), torch.randint(0, 10, (16,))
    times_s = []
    mark.epoch_start(0)
    for index in range(WARM_UP + STEPS):
        began_s = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        mark.step(samples=16, wait_s=0.0)
        if index >= WARM_UP:
            times_s.append(time.perf_counter() - began_s)
    Path(os.environ[RESULT]).write_text(json.dumps(times_s))


def median_step_s(*, recorded: bool) -> float:
    """One run of the measured program, alone or under the recorder."""
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch) / "times.json"
        command = (sys.executable, __file__, "--train")
        if recorded:
            outcome = record(_spec(command, Path(scratch), {RESULT: str(result)}))
            assert outcome.exit_status == 0
        else:
            subprocess.run(command, check=True, env={**os.environ, RESULT: str(result)})
        return float(statistics.median(json.loads(result.read_text())))


def sampler_cpu_fraction() -> float:
    """CPU time of the sampler ÷ wall time, with 64 sleeping processes in the tree."""
    with tempfile.TemporaryDirectory() as scratch:
        sleepers = f"for i in $(seq {PROCESSES}); do sleep 15 & done; wait"
        outcome = record(_spec(("sh", "-c", sleepers), Path(scratch), {}))
        end = read_node(Path(scratch) / "node-0.jsonl").end
        assert end is not None
        assert outcome.exit_status == 0
        return end.cpu_s / (outcome.ended_s - outcome.started_s)


def _spec(command: tuple[str, ...], folder: Path, environment: dict[str, str]) -> RecordSpec:
    return RecordSpec(
        command=command,
        folder=folder,
        data_path=Path(__file__).parent,
        interval_s=INTERVAL_S,
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        environment=environment,
    )


def main() -> None:
    """Run the pairs and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train()
        return
    ratios = []
    for pair in range(arguments.pairs):
        order = (True, False) if pair % 2 else (False, True)
        step_s = {recorded: median_step_s(recorded=recorded) for recorded in order}
        ratios.append(step_s[True] / step_s[False])
        print(
            f"pair {pair + 1}: {step_s[True] * 1e3:.2f} ms ÷ {step_s[False] * 1e3:.2f} ms",
            flush=True,
        )
    resampled = np.random.default_rng(0).choice(ratios, (10_000, len(ratios)))
    low, high = np.percentile(np.median(resampled, axis=1), (2.5, 97.5))
    print(f"step time, recorded ÷ alone: {statistics.median(ratios):.4f}")
    print(f"95 % interval of the median: {low:.4f} to {high:.4f}  (n = {len(ratios)} pairs)")
    print(f"sampler CPU at 100 ms, {PROCESSES} processes: {sampler_cpu_fraction():.2%} of one core")


if __name__ == "__main__":
    main()
