"""Requests of a real FUSE mount: an sshfs, whose client the kernel asks for what it has not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ioprof import cachestate
from ioprof.record.filelist import list_of
from ioprof.record.reading import Reading, Unavailable
from ioprof.record.sizes import names
from ioprof.sources import fuse, fusedaemon
from ioprof.sources.aside import Aside, look
from ioprof.sources.mount import find_mount
from ioprof.sources.source import Target
from tests.integration.networkfs import sshfs
from tests.integration.tracing import tracefs, why_no_fuse_requests
from tests.processes import child_of_killed, ends

MIB = 1 << 20
FILE_BYTES = 64 * MIB + 1
LARGEST_READ_BYTES = 128 << 10

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts, tracepoints"),
    pytest.mark.skipif(shutil.which("bpftrace") is None, reason="bpftrace is not installed"),
]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A mount with one file of 64 MiB and a byte, out of the page cache."""
    with tracefs():
        reason = why_no_fuse_requests()
        if reason is not None:
            pytest.skip(reason)
        with sshfs() as mount:
            with (mount.mountpoint / "file").open("wb") as file:
                for _ in range(64):
                    file.write(os.urandom(MIB))
                file.write(b"x")
            yield mount.mountpoint


@pytest.fixture
def source(folder: Path) -> Iterator[Aside]:
    cachestate.evict(list_of(folder, ["file"]))
    (found,) = fuse.find(Target(root_pid=os.getpid(), mount=find_mount(folder)))
    assert isinstance(found, Aside), found.reason if isinstance(found, Unavailable) else ""
    yield found
    found.close()


def grown(source: Aside, act: Callable[[], object]) -> dict[str, float]:
    """What each counter grew by while `act` ran."""
    before = last_look(source)
    act()
    after = last_look(source)
    assert after.gauges["lost_events"] == 0
    made = {}
    for name, new in after.counters.items():
        old = before.counters[name]
        assert new is not None and old is not None
        made[name] = new - old
    return made


def last_look(source: Aside) -> Reading:
    return look(source)[-1]


def read_whole(path: Path) -> int:
    with path.open("rb", buffering=0) as file:
        return sum(len(chunk) for chunk in iter(lambda: file.read(MIB), b""))


def test_a_cold_read_is_counted_to_the_byte_and_a_warm_one_is_not(folder, source):
    cold = grown(source, lambda: read_whole(folder / "file"))
    assert cold["read_bytes_total"] == FILE_BYTES
    # 512 answers of 128 KiB and one of a byte, if read ahead as far as the mount allows.
    assert FILE_BYTES / LARGEST_READ_BYTES <= cold["read_operations_total"] <= 600
    assert sum(cold[name] for name in names()) == cold["read_operations_total"]
    assert cold["read_requests_up_to_131072_total"] >= 500
    assert cold["read_requests_up_to_512_total"] == 1
    assert cold["read_time_seconds_total"] > 0
    warm = grown(source, lambda: read_whole(folder / "file"))
    assert warm["read_bytes_total"] == 0
    assert warm["read_operations_total"] == 0


def test_small_reads_at_random_places_are_as_many_as_were_made(folder, source):
    places = [number * 1_000_003 // 4096 * 4096 for number in range(50)]

    def act() -> None:
        descriptor = os.open(folder / "file", os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        for place in places:
            os.pread(descriptor, 4096, place)
        os.close(descriptor)

    made = grown(source, act)
    assert made["read_bytes_total"] == 50 * 4096
    assert made["read_requests_up_to_4096_total"] == made["read_operations_total"] == 50


def test_opens_listings_and_lookups_of_names_that_are_not_there(folder, source):
    def act() -> None:
        for number in range(20):
            assert not (folder / f"gone-{number}").exists()
        for _ in range(5):
            (folder / "file").open("rb").close()
        assert list(folder.iterdir()) == [folder / "file"]

    made = grown(source, act)
    assert made["lookup_operations_total"] >= 20
    assert made["open_operations_total"] == 5
    assert made["readdir_operations_total"] >= 2, "opendir and readdir"
    parts = ("lookup", "getattr", "open", "readdir")
    total = sum(made[f"{part}_operations_total"] for part in parts)
    assert made["metadata_operations_total"] == total
    assert made["metadata_time_seconds_total"] > 0
    assert made["read_operations_total"] == 0


def test_another_mounts_requests_are_not_its_own(folder, source):
    with sshfs() as other:
        (other.mountpoint / "file").write_bytes(os.urandom(MIB))
        cachestate.evict(list_of(other.mountpoint, ["file"]))
        made = grown(source, lambda: read_whole(other.mountpoint / "file"))
    assert made["read_bytes_total"] == 0


def test_what_is_under_way_at_that_instant_is_told_where_fusectl_is_mounted(folder, source):
    waiting = Path("/sys/fs/fuse/connections") / str(folder.stat().st_dev) / "waiting"
    in_flight = last_look(source).gauges["in_flight"]
    assert (in_flight is not None) == waiting.exists()


def test_the_daemon_is_the_client_and_its_time_grows_as_ps_says(folder):
    (found,) = fusedaemon.find(Target(root_pid=os.getpid(), mount=find_mount(folder)))
    if isinstance(found, Unavailable) and kernel_version() < (6, 16):
        pytest.skip("Linux before 6.16 names no connection in /proc/PID/fdinfo")
    assert isinstance(found, fusedaemon.DaemonSource)
    (before,) = found.read()
    assert before.note is not None
    pid = int(before.note.removeprefix("process "))
    assert Path(f"/proc/{pid}/comm").read_text() == "sshfs\n"
    assert before.gauges["threads"] == len(list(Path(f"/proc/{pid}/task").iterdir()))
    for _ in range(4):
        cachestate.evict(list_of(folder, ["file"]))
        read_whole(folder / "file")
    (after,) = found.read()
    found.close()
    ps = ["ps", "-o", "cputimes=", "-p", str(pid)]
    told = subprocess.run(ps, capture_output=True, text=True, check=True)
    first, last = (one.counters["busy_seconds_total"] for one in (before, after))
    assert first is not None
    assert last is not None
    assert last > first
    assert int(told.stdout) == pytest.approx(last, abs=1.0)


def kernel_version() -> tuple[int, ...]:
    return tuple(int(word) for word in os.uname().release.split("-")[0].split(".")[:2])


def test_no_tracing_program_survives_whoever_is_killed(folder):
    code = (
        "import os, sys, time\nfrom pathlib import Path\n"
        "from ioprof.sources import fuse\nfrom ioprof.sources.mount import find_mount\n"
        "from ioprof.sources.source import Target\n"
        f"(found,) = fuse.find(Target(root_pid=1, mount=find_mount(Path({str(folder)!r}))))\n"
        "found.now()\nprint(found._source._bpftrace._process.pid, flush=True)\ntime.sleep(60)\n"
    )
    assert ends(child_of_killed(code))
