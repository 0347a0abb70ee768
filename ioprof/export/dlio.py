"""A workload for DLIO: the step time, the batch and the sizes that were measured.

DLIO makes its own files of these sizes (`++workload.workflow.generate_data=True`), for it wants
them under names of its own; keep them off the dataset. The keys are those of DLIO 2.0.
"""

from __future__ import annotations

import json
from typing import BinaryIO

from ioprof.export.load import Load, plain


def write(load: Load, out: BinaryIO) -> None:
    """The YAML, with the provenance of every value behind it."""
    out.write("\n".join(_lines(load)).encode() + b"\n")


def _lines(load: Load) -> list[str]:
    workers = max(1, round(load.readers.value / load.accelerators))
    emulated = f"; emulated: {load.emulated}" if load.emulated else ""
    return [
        *(f"# {line}" for line in load.heading),
        f"# Run: mpirun -np {load.accelerators} dlio_benchmark workload=THIS-FILE",
        "# DLIO's MB/s is computed from record_length, not counted: watch the mount beside it.",
        "model: resnet50",
        "framework: pytorch",
        "workflow:",
        "  generate_data: False",
        "  train: True",
        "dataset:",
        "  # A folder for files that DLIO makes, of the sizes below, on the same mount.",
        f"  data_folder: {json.dumps(plain(f'{load.data}-dlio'))}",
        "  format: jpeg",
        f"  num_files_train: {load.samples}  # samples of the dataset, surveyed",
        "  num_samples_per_file: 1  # each sample is a file",
        f"  record_length: {load.sample_bytes.value:.2f}  # B; {load.sample_bytes.why}",
        f"  record_length_stdev: {load.sample_bytes_std.value:.2f}  # B; "
        f"{load.sample_bytes_std.why}",
        "reader:",
        "  data_loader: pytorch",
        f"  batch_size: {round(load.batch.value)}  # {load.batch.why}",
        f"  read_threads: {workers}  # of each of {load.accelerators}: {load.readers.why}",
        "  file_shuffle: seed",
        "  sample_shuffle: seed",
        "train:",
        f"  computation_time: {load.compute_s.value:.6f}  # s; {load.compute_s.why}{emulated}",
        "  epochs: 1  # the first one: nothing is cached yet",
    ]
