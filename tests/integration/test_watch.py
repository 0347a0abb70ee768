"""`ioprof watch` beside a reader whose rate is known, on a filesystem of its own."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.integration.loopfs import LoopMount, loop_filesystem
from tests.integration.test_dead_mount import SOON_S, beside, left_behind

MIB = 2**20
FILE_BYTES = 48 * MIB
RATE_BYTES_PER_S = 40 * MIB
IOPROF = (sys.executable, "-P", "-m", "ioprof")
# A grid, not a pause after each read: it catches up after it was held up.
READER = f"""
import mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY | (os.O_DIRECT if sys.argv[2] == "direct" else 0))
buffer = mmap.mmap(-1, {MIB})
began, done = time.monotonic(), 0
while True:
    os.preadv(fd, [buffer], done * {MIB} % {FILE_BYTES})
    done += 1
    time.sleep(max(0.0, began + done * {MIB / RATE_BYTES_PER_S} - time.monotonic()))
"""

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopMount]:
    with loop_filesystem("xfs", 320 * MIB, direct_io=True) as mount:
        with (mount.mountpoint / "file").open("wb") as file:
            file.write(os.urandom(FILE_BYTES))
            os.fsync(file.fileno())
        yield mount


@contextlib.contextmanager
def reader(loop: LoopMount, how: str) -> Iterator[int]:
    """A process that reads the file again and again at a known rate; its pid."""
    file = str(loop.mountpoint / "file")
    with subprocess.Popen([sys.executable, "-S", "-c", READER, file, how]) as process:
        try:
            time.sleep(0.5)
            yield process.pid
        finally:
            process.kill()


def once(loop: LoopMount, *more: str):
    command = [*IOPROF, "watch", "--data", str(loop.mountpoint), "--once", "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_known_rate_is_seen_on_the_wire_and_its_reader_among_the_processes(loop):
    with reader(loop, "direct") as pid:
        said = once(loop, "--interval", "2s")
    device = Path(loop.device).name
    assert said["storage_read_source"] == f"block.diskstats {device} (wire, whole device)"
    assert said["storage_read_bytes_per_s"] == pytest.approx(RATE_BYTES_PER_S, rel=0.06)
    assert said["reads_per_s"] * said["read_request_bytes"] == pytest.approx(
        said["storage_read_bytes_per_s"]
    )
    assert 0 < said["read_latency_s"] < 1
    asked = {one["pid"]: one["requested_bytes_per_s"] for one in said["processes"]}
    assert asked[pid] == pytest.approx(RATE_BYTES_PER_S, rel=0.06)
    assert said["cache_served"] == pytest.approx(0, abs=0.01) or said["reasons"]["cache_served"]


def test_what_the_page_cache_serves_is_seen_as_that_and_storage_rests(loop):
    (loop.mountpoint / "file").read_bytes()
    with reader(loop, "buffered"):
        said = once(loop, "--interval", "2s")
    assert said["cache_served_source"] == "xfs (app, whole mount)"
    assert said["cache_served"] > 0.99
    assert said["storage_read_bytes_per_s"] < 0.01 * RATE_BYTES_PER_S


@contextlib.contextmanager
def listening(loop: LoopMount) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A watch that serves, and where; stopped as by Ctrl-C."""
    command = [*IOPROF, "watch", "--data", str(loop.mountpoint), "--interval", "200ms"]
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Ignored in a shell's background job, and then in whatever it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("OpenMetrics at http://127.0.0.1:")
            yield process, line.split()[-1]
        finally:
            process.kill()


def read_bytes(url: str) -> float | None:
    """What the device has delivered, by a scrape; None before the first look."""
    request = urllib.request.Request(url, headers={"Accept": "application/openmetrics-text"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        text = answer.read().decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            on_top = sample.labels.get("role") == "top"
            if sample.name == "ioprof_read_bytes_total" and on_top:
                return float(sample.value)
    return None


def test_a_scraper_sees_every_byte_and_ctrl_c_ends_it_well(loop):
    with listening(loop) as (process, url):
        deadline_s = time.monotonic() + 20
        while (before := read_bytes(url)) is None:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        descriptor = os.open(loop.mountpoint / "file", os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        while os.read(descriptor, MIB):
            pass
        os.close(descriptor)
        while (now := read_bytes(url)) is None or now - before < FILE_BYTES:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        assert now - before == pytest.approx(FILE_BYTES, rel=0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0


def on_terminal(*command: str) -> tuple[subprocess.Popen[bytes], int]:
    """A command whose terminal is one of 80 columns; the other end of it."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def take_terminal() -> None:
        fcntl.ioctl(its, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    process = subprocess.Popen(
        command,
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        preexec_fn=take_terminal,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(its)
    return process, ours


def test_on_a_terminal_of_80_columns_it_draws_and_ctrl_c_ends_it_well(loop):
    data = str(loop.mountpoint)
    process, terminal = on_terminal(*IOPROF, "watch", "--data", data, "--interval", "200ms")
    drawn, asked = b"", False
    deadline_s = time.monotonic() + 30
    with contextlib.suppress(OSError):  # the terminal of a program that ended
        while time.monotonic() < deadline_s:
            if select.select([terminal], [], [], 1)[0]:
                drawn += os.read(terminal, 65536)
            if drawn.count(b"Storage read") >= 2 and not asked:
                asked = True
                os.write(terminal, b"\x03")
    os.close(terminal)
    assert process.wait(timeout=10) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn.decode())
    assert max(len(line) for line in re.split(r"[\r\n]+", text)) <= 80
    assert "block.diskstats" in text
    assert drawn.rstrip().endswith(b"\x1b[?25h"), "the cursor is there again"


@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="this kernel has no FUSE")
@pytest.mark.parametrize(
    ("state", "says"),
    [("hung", "not responding"), ("gone", "Transport endpoint is not connected")],
)
def test_a_dead_mount_ends_it_with_a_sentence(tmp_path, state, says):
    folder = tmp_path / "dead"
    folder.mkdir()
    ended = beside(state, folder, *IOPROF, "watch", "--data", str(folder), "--once", "--json")
    assert ended.status == 3
    assert ended.stderr.startswith("ioprof: ")
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    assert ended.took_s < SOON_S
    assert left_behind(folder) == []
