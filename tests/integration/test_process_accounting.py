"""What the counters of a process mean, on this kernel: asked for, fetched, and neither.

Each of these was once a wrong number in some other tool, which the docstrings name.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.record.store import read_node
from ioprof.recorder import RecordSpec, record
from ioprof.sources import block
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import find_mount
from ioprof.sources.process import ProcessSource, find
from ioprof.sources.source import Target
from tests.integration.loopfs import loop_filesystem

MIB = 2**20
SLACK_BYTES = MIB
"""Imports and what the test itself reads meanwhile."""


def moved(act):
    """(reading, bytes) of what this process asked for and what was fetched while `act` ran."""
    source = ProcessSource(Target(root_pid=os.getpid()))
    source.read()
    act()
    asked, fetched = source.read()
    source.close()
    return (
        (asked, asked.counters["requested_bytes_total"]),
        (fetched, fetched.counters["read_bytes_total"]),
    )


def asked_for(reading):
    return reading.counters["requested_bytes_total"]


def fetched_by(reading):
    return reading.counters["read_bytes_total"]


def read_whole(path, *, most_bytes=sys.maxsize):
    fd = os.open(path, os.O_RDONLY)
    while most_bytes > 0 and (chunk := os.read(fd, MIB)):
        most_bytes -= len(chunk)
    os.close(fd)


def test_what_is_no_storage_is_asked_for_and_never_called_delivered():
    """shirou/gopsutil#672, #235, autonity/autonity#847: rchar was shown as disk reads."""
    (asked, asked_bytes), (_, fetched_bytes) = moved(
        lambda: read_whole("/dev/zero", most_bytes=64 * MIB)
    )
    assert 64 * MIB <= asked_bytes <= 64 * MIB + SLACK_BYTES
    assert fetched_bytes <= SLACK_BYTES
    assert asked.layer is Layer.APP
    assert "pipes, sockets and what the page cache served are" in (asked.note or "")


@pytest.mark.skipif(not Path("/dev/shm").is_mount(), reason="no tmpfs at /dev/shm")
def test_nothing_is_fetched_from_memory_and_the_reason_is_said():
    """ncabatoff/process-exporter#66, #95, Parsl/parsl#2381: read_bytes was 0 without a word."""
    path = Path("/dev/shm") / f"ioprof-test-{os.getpid()}"
    try:
        path.write_bytes(bytes(8 * MIB))
        (_, asked_bytes), (fetched, fetched_bytes) = moved(lambda: read_whole(path))
        assert "lives in memory" in (find_stack(find_mount(path)).reason or "")
    finally:
        path.unlink()
    assert 8 * MIB <= asked_bytes <= 8 * MIB + SLACK_BYTES
    assert fetched_bytes <= SLACK_BYTES
    assert "0 on FUSE and network filesystems" in (fetched.note or "")


def test_a_file_held_open_of_a_process_that_was_reaped_ends_no_look():
    """giampaolo/psutil#2418, #2284: reading it gives ESRCH, opening it anew ENOENT."""
    with subprocess.Popen(
        [
            sys.executable,
            "-S",
            "-c",
            f"open('/dev/zero','rb').read({MIB}); print(flush=True);input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        source = ProcessSource(Target(root_pid=os.getpid()))
        source.read()
        child.stdout.readline()
        before, _ = source.read()
        # Programs that earlier tests had to leave behind may be there too.
        others = (before.gauges["processes"] or 0) - 1
        assert others >= 0
        held = os.open(f"/proc/{child.pid}/io", os.O_RDONLY)
        child.stdin.close()
        child.wait()
        with pytest.raises(ProcessLookupError):
            os.pread(held, 512, 0)
        os.close(held)
        after, _ = source.read()
        source.close()
    assert after.gauges == {"processes": others, "unreadable_processes": 0}
    assert asked_for(after) >= asked_for(before)


@pytest.mark.root
def test_a_neighbour_s_reads_are_in_the_device_s_number_and_not_in_the_tree_s():
    """As Linaro MAP's guide warns of Lustre clients: node-wide counters include other jobs."""
    with loop_filesystem("ext4", 64 * MIB, direct_io=True) as loop:
        for name in ("ours", "theirs"):
            path = loop.mountpoint / name
            path.write_bytes(os.urandom(8 * MIB))
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
        mount = find_mount(loop.mountpoint)
        target = Target(root_pid=os.getpid(), mount=mount, stack=find_stack(mount))
        (device,) = block.find(target)
        assert not isinstance(device, Unavailable)
        before = [fetched_by(reading) for reading in device.read()]
        # Started and ended outside of the tree that is looked at: a grandchild of init.
        neighbour = f"(cat {loop.mountpoint}/theirs > /dev/null; echo done) &"
        with subprocess.Popen(["sh", "-c", neighbour], stdout=subprocess.PIPE) as launcher:
            launcher.wait()
            assert launcher.stdout is not None
            assert launcher.stdout.read() == b"done\n"
        _, (tree, tree_bytes) = moved(lambda: read_whole(loop.mountpoint / "ours"))
        (whole, *_) = device.read()
        device.close()
    assert (whole.scope, tree.scope) == (Scope.DEVICE, Scope.PROCESS)
    assert 16 * MIB <= fetched_by(whole) - before[0] <= 17 * MIB
    assert 8 * MIB <= tree_bytes <= 9 * MIB


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: becomes another user")
def test_another_user_s_process_is_refused_with_a_remedy_and_no_crash():
    """giampaolo/psutil#1381, #606, snakemake/snakemake#2278: EACCES ended the whole monitor."""
    answers, answer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            (found,) = find(Target(root_pid=1))
            said = f"{getattr(found, 'reason', 'read')}|{getattr(found, 'remedy', '')}"
            os.write(answer, said.encode())
        finally:
            os._exit(0)
    os.close(answer)
    os.waitpid(child, 0)
    reason, _, remedy = os.read(answers, 4096).decode().partition("|")
    os.close(answers)
    assert reason == "/proc/1/io cannot be read: Permission denied"
    assert "or as root" in remedy


@pytest.mark.parametrize(
    "command",
    [("true",), ("sh", "-c", "(sleep 0.2; exit 7) & exit 0")],
    ids=["shorter than a tick", "a launcher that ends before what it launched"],
)
def test_a_command_that_is_gone_at_once_is_recorded_all_the_same(tmp_path, command):
    """pythonprofilers/memory_profiler#71, astrofrog/psrecord#24, #31, rwth-i6/returnn#1812:
    the monitor crashed when what it watched had ended."""
    result = record(
        RecordSpec(
            command=command,
            folder=tmp_path / "cell",
            data_path=tmp_path,
            interval_s=0.5,
            cpus=tuple(sorted(os.sched_getaffinity(0))),
        )
    )
    assert result.exit_status == 0
    node = read_node(tmp_path / "cell" / "node-0.jsonl")
    assert node.ticks >= 2, "one look before and one after"
    assert node.end is not None
