"""Record a known reader in a process of its own, as `ioprof` does. Run as a script.

    recording.py MODE FOLDER CELL

In the tests' own process a recording would take every server that the tests have started for a
part of what it records: it counts their reads, and ends them when the reader has ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ioprof.analysis.accounting import Accounting, account
from ioprof.analysis.storage import calibrated
from ioprof.record.headline import Calibration
from ioprof.record.store import read_node
from ioprof.recorder import RecordSpec, record

READER = Path(__file__).with_name("reader.py")


def accounted(folder: Path, *, cell: Path, calibration: Calibration) -> Accounting:
    """Read every file of `folder` once by read(2), recorded into `cell`, and account for it."""
    done = subprocess.run(
        [sys.executable, "-P", __file__, "buffered", str(folder), str(cell)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    span = json.loads(done.stdout)
    return account(
        read_node(cell / "node-0.jsonl"),
        start_s=span["start_s"],
        end_s=span["end_s"],
        storage=calibrated(calibration, access="read"),
    )


def main() -> int:
    """Record, and print the span in seconds as JSON; the reader's exit status is returned."""
    mode, folder, cell = sys.argv[1:]
    result = record(
        RecordSpec(
            command=(sys.executable, "-I", "-S", str(READER), mode, folder),
            folder=Path(cell),
            data_path=Path(folder),
            interval_s=0.02,
            cpus=tuple(sorted(os.sched_getaffinity(0))),
        )
    )
    sys.stdout.write(json.dumps({"start_s": result.started_s, "end_s": result.ended_s}))
    return result.exit_status


if __name__ == "__main__":
    sys.exit(main())
