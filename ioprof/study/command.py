"""Record one command as it is, beside the counters of the mount that it reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ioprof._version import VERSION
from ioprof.calibration.calibrate import calibrate
from ioprof.clock import now_iso
from ioprof.hostinfo import host
from ioprof.record.dataset import Mount
from ioprof.record.recorded import CELL, Recorded
from ioprof.record.store import FORMAT_VERSION, RunDirectory, write_json
from ioprof.recorder import RecordSpec, record
from ioprof.sources.source import BlockStack


def record_command(
    command: Sequence[str],
    *,
    run: RunDirectory,
    data: Path | None,
    mount: Mount | None,
    stack: BlockStack | None,
    files: Sequence[Path],
    interval_s: float,
    duration_s: float | None = None,
) -> Recorded:
    """Calibrate on `files`, run `command` to its end or for `duration_s`, and leave `run.json` and
    the counters.

    MeasureError when the mount stops answering or the command cannot be started.
    """
    tried = None
    if mount is not None and stack is not None and files:
        tried = calibrate(files, mount=mount, stack=stack)
    plan = Recorded(
        format_version=FORMAT_VERSION,
        ioprof_version=VERSION,
        created=now_iso(),
        command=tuple(command),
        data=None if data is None else os.fsencode(data).decode(errors="replace"),
        interval_s=interval_s,
        host=host(),
        mount=mount,
        top_devices=stack.top if stack else (),
        calibration=tried,
        unavailable={"block.diskstats": stack.reason} if stack and stack.reason else {},
    )
    write_json(run.recorded, plan)
    result = record(
        RecordSpec(
            command=plan.command,
            folder=run.cell(CELL),
            data_path=data,
            interval_s=interval_s,
            cpus=tuple(sorted(os.sched_getaffinity(0))),
            attached=True,
            deadline_s=duration_s,
        )
    )
    ended = msgspec.structs.replace(
        plan,
        started_s=result.started_s,
        ended_s=result.ended_s,
        exit_status=result.exit_status,
        partial=result.ended_by,
    )
    write_json(run.recorded, ended)
    return ended
