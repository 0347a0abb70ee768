"""The daemon behind a FUSE mount, found by the connection that it serves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.fusedaemon import find, parse_connection, parse_stat
from ioprof.sources.source import Roots, Target
from tests.unit.sources.fakesys import mount_of

FDINFO = (Path(__file__).parents[2] / "data" / "fuse" / "fdinfo_dev_fuse.txt").read_text()
STAT = (
    "{pid} (a) b (c) S 1 77 77 0 -1 1077936192 201 0 3 0 {user} {system} 9 9 20 0 {threads} 0 "
    "123456 7000000 900 18446744073709551615 0 0 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0\n"
)
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def roots(tmp_path):
    return Roots(proc=tmp_path / "proc", sys=tmp_path / "sys", root=tmp_path)


def serve(roots, pid, *, connection=42, user=250, system=50, threads=3):
    """A process that holds a terminal, a socket and the device of a connection."""
    folder = roots.proc / str(pid)
    for name in ("fd", "fdinfo"):
        (folder / name).mkdir(parents=True)
    for number, what in enumerate(("/dev/pts/0", "socket:[12345]", "/dev/fuse")):
        (folder / "fd" / str(number)).symlink_to(what)
        (folder / "fdinfo" / str(number)).write_text("pos:\t0\nflags:\t0100002\nmnt_id:\t24\n")
    text = FDINFO.replace("42", str(connection))
    (folder / "fdinfo" / "2").write_text(text)
    run(roots, pid, user=user, system=system, threads=threads)


def run(roots, pid, *, user, system, threads=3):
    line = STAT.format(pid=pid, user=user, system=system, threads=threads)
    (roots.proc / str(pid) / "stat").write_text(line)


def seek(roots, *, filesystem="fuse.sshfs", number="0:42"):
    mount = mount_of("/mnt/data", filesystem=filesystem, number=number)
    return find(Target(root_pid=1, mount=mount), roots=roots)


def look(source):
    return list(source.read())


def test_the_time_and_the_threads_of_the_daemon_of_this_mount(roots):
    serve(roots, 77)
    serve(roots, 78, connection=43, user=9999)
    (source,) = seek(roots)
    (reading,) = look(source)
    assert (reading.source, reading.instance) == ("fuse.daemon", "/mnt/data")
    assert (reading.layer, reading.scope) == (Layer.HOST, Scope.MOUNT)
    assert reading.counters == {"busy_seconds_total": 300 / TICKS_PER_S}
    assert reading.gauges == {"threads": 3}
    assert reading.note == "process 77"
    run(roots, 77, user=400, system=60)
    (later,) = look(source)
    assert later.counters == {"busy_seconds_total": 460 / TICKS_PER_S}
    source.close()


def test_a_daemon_of_two_processes_is_added_up(roots):
    """One that forked after it mounted, or clones of one connection."""
    serve(roots, 77, user=100, system=0, threads=1)
    serve(roots, 1002, user=20, system=3, threads=4)
    (source,) = seek(roots)
    (reading,) = look(source)
    source.close()
    assert reading.counters == {"busy_seconds_total": 123 / TICKS_PER_S}
    assert reading.gauges == {"threads": 5}
    assert reading.note == "process 77, 1002"


def test_the_connection_bears_the_whole_device_number(roots):
    """Of a fuseblk mount on 7:1 that is 7 << 20 | 1."""
    serve(roots, 77, connection=7_340_033)
    (source,) = seek(roots, filesystem="fuseblk", number="7:1")
    assert len(look(source)) == 1
    source.close()


def test_what_cannot_be_seen_is_told(roots):
    serve(roots, 78, connection=43)
    (roots.proc / "79").mkdir()  # ended, or another user's
    (roots.proc / "self").symlink_to("78")
    (silent,) = seek(roots)
    assert isinstance(silent, Unavailable)
    assert silent.source == "fuse.daemon"
    assert silent.reason.startswith("no process that this user may look into serves /mnt/data")
    assert silent.remedy == "run as root, on Linux 6.16 or later"


def test_a_kernel_that_names_no_connection_names_no_daemon(roots):
    serve(roots, 77)
    (roots.proc / "77/fdinfo/2").write_text("pos:\t0\nflags:\t0100002\nmnt_id:\t24\nino:\t89\n")
    (silent,) = seek(roots)
    assert isinstance(silent, Unavailable)


@pytest.mark.parametrize("filesystem", ["ext4", "nfs4", "fusectl"])
def test_another_filesystem_has_no_daemon(roots, filesystem):
    serve(roots, 77)
    assert seek(roots, filesystem=filesystem) == []


def test_without_a_mount_there_is_none(roots):
    assert find(Target(root_pid=1), roots=roots) == []


@pytest.mark.parametrize("text", ["", "77 (a) b (c) S 1 77 77 0", "77 (a", "nothing"])
def test_a_torn_line_is_a_gap(roots, text):
    serve(roots, 77)
    (source,) = seek(roots)
    (roots.proc / "77/stat").write_text(text)
    assert look(source) == []
    source.close()


def test_once_the_daemon_has_ended_there_is_a_gap(roots, monkeypatch):
    """A file of /proc of an ended process gives ESRCH; the time of a part is not the whole's."""
    serve(roots, 77)
    serve(roots, 80)
    (source,) = seek(roots)
    file = source._files[1]

    def ended():
        raise ProcessLookupError

    monkeypatch.setattr(file, "read", ended)
    assert look(source) == []
    source.close()


@pytest.mark.parametrize(
    ("text", "connection"),
    [
        (FDINFO.encode(), 42),
        (b"pos:\t0\nfuse_connection:\t0\n", 0),
        (b"pos:\t0\n", None),
        (b"", None),
        (b"fuse_connection:\t-4\n", None),
        (b"fuse_connection:\n", None),
    ],
)
def test_the_connection_in_a_text(text, connection):
    assert parse_connection(text) == connection


def test_a_name_may_hold_brackets_and_blanks():
    line = STAT.format(pid=77, user=11, system=7, threads=2).encode()
    assert parse_stat(line) == (18, 2)


def test_a_real_process_is_read_as_the_system_itself_counts():
    """The kernel's own line of this process, against what times() says of it."""
    sum(range(3_000_000))
    found = parse_stat(Path("/proc/self/stat").read_bytes())
    times = os.times()
    assert found is not None
    assert found[0] / TICKS_PER_S == pytest.approx(times.user + times.system, abs=0.1)
    assert found[1] >= 1
