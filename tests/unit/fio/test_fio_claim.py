"""When fio's number is claimed, and when it is doubted. A stand-in for fio prints the answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ioprof.fio import ceiling, process
from ioprof.fio.ceiling import measure_ceiling
from ioprof.record.ceiling import StorageCeiling
from ioprof.record.dataset import Mount
from ioprof.record.filelist import FileList
from ioprof.record.reading import Role
from ioprof.record.store import read_json
from ioprof.sources.source import BlockDevice, BlockStack, Roots

MB = 10**6
STACK = BlockStack(devices=(BlockDevice(name="sdx", role=Role.TOP),))


def fio_job(*, read_bytes: int, runtime_ms: int, error: int = 0, busy: float = 10.0) -> str:
    job = {
        "jobname": "reader0",
        "error": error,
        "read": {
            "io_bytes": read_bytes,
            "io_kbytes": read_bytes // 1024,
            "runtime": runtime_ms,
            "total_ios": read_bytes // 100_000,
            "clat_ns": {"mean": 250_000.0, "percentile": {"50.000000": 200_000}},
        },
        "job_runtime": runtime_ms,
        "usr_cpu": busy / 2,
        "sys_cpu": busy / 2,
    }
    return json.dumps({"fio version": "fio-3.33", "jobs": [job]}, indent=2)


class Bench:
    """A dataset, a false /proc and a false fio."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.out = tmp_path / "out"
        self.data = tmp_path / "data"
        self.data.mkdir()
        self._bin = tmp_path / "bin"
        self._bin.mkdir()
        self._proc = tmp_path / "proc"
        self._proc.mkdir()
        self._answers = tmp_path / "answers"
        self._answers.mkdir()
        for name in ("a.JPEG", "b.JPEG"):
            (self.data / name).write_bytes(bytes(100_000))
        self.diskstats(read_sectors=0)
        monkeypatch.setenv("PATH", f"{self._bin}:/usr/bin:/bin")
        self.filesystem = "ext4"
        monkeypatch.setattr(ceiling, "find_mount", self._mount)

    def _mount(self, path: Path, *, roots: Roots) -> Mount:
        return Mount(
            mount_id=1,
            path="/",
            filesystem=self.filesystem,
            source="/dev/sdx",
            root="/",
            options=(),
            major_minor="8:0",
        )

    def diskstats(self, *, read_sectors: int, name: str = "diskstats") -> None:
        row = f"   8       0 sdx 10 0 {read_sectors} 5 0 0 0 0 0 5 5\n"
        (self._proc / name).write_text(row)

    def fio(self, answer: str, *, probe: str = "", delivered_bytes: int = 0) -> None:
        """Answer each run of fio; `probe` is a shell line run for a probe before it succeeds."""
        self.diskstats(read_sectors=delivered_bytes // 512, name="after")
        (self._answers / "run").write_text(answer)
        (self._answers / "probe").write_text(fio_job(read_bytes=409_600, runtime_ms=1))
        program = self._bin / "fio"
        program.write_text(
            "#!/bin/sh\n"
            f'case "$*" in *--name=probe*) {probe or ":"}\n'
            f"  cat {self._answers}/probe; exit 0;; esac\n"
            f"cat {self._proc}/after > {self._proc}/diskstats\n"
            'for a; do case "$a" in --output=*) out=${a#--output=};; esac; done\n'
            f'cat {self._answers}/run > "$out"\n'
        )
        program.chmod(0o755)

    def measure(self, *, stack: BlockStack | None = STACK) -> StorageCeiling:
        files = FileList.of(
            self.data,
            paths=[b"a.JPEG", b"b.JPEG"],
            stored_bytes=[100_000, 100_000],
            labels=[0, 0],
            classes=(b"x",),
        )
        found = measure_ceiling(
            files,
            out=self.out,
            jobs=2,
            duration_s=5.0,
            stack=stack,
            roots=Roots(proc=self._proc, sys=self._proc),
        )
        assert read_json(self.out / "ceiling.json", StorageCeiling) == found
        return found


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_bytes_that_the_devices_delivered_are_claimed(bench):
    bench.fio(fio_job(read_bytes=500 * MB, runtime_ms=5000), delivered_bytes=500 * MB)
    found = bench.measure()
    assert found.read_bytes_per_s == 100 * MB
    assert found.reads_per_s == 1000
    assert found.latency_mean_s == pytest.approx(250e-6)
    assert found.storage_read_bytes == 976_562 * 512
    assert found.fio_read_bytes == 500 * MB
    assert found.reason is None
    assert (found.jobs, found.depth, found.engine, found.direct) == (2, 1, "io_uring", True)
    assert found.block_bytes == 24 * 4096
    assert found.command[1] == "--readonly"


def test_bytes_that_no_device_delivered_are_page_cache_speed(bench):
    bench.fio(fio_job(read_bytes=500 * MB, runtime_ms=5000), delivered_bytes=249 * MB)
    found = bench.measure()
    assert found.read_bytes_per_s is None
    assert found.reads_per_s is None
    assert found.reason is not None
    assert found.reason.startswith("page cache speed: the devices delivered")


def test_direct_reads_that_memory_served_are_tried_again_through_an_emptied_page_cache(bench):
    bench.fio(fio_job(read_bytes=500 * MB, runtime_ms=5000), delivered_bytes=0)
    found = bench.measure()
    assert found.direct is False
    assert found.read_bytes_per_s is None
    assert "invalidate=1" in (bench.out / "read.fio").read_text()


def test_an_interrupt_leaves_a_record_that_says_so(bench, monkeypatch):
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    bench.fio(fio_job(read_bytes=1, runtime_ms=1))
    monkeypatch.setattr(process, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bench.measure()
    left = read_json(bench.out / "ceiling.json", StorageCeiling)
    assert left.reason == "interrupted while fio was reading"


def test_less_than_a_second_is_too_short_to_measure(bench):
    bench.fio(fio_job(read_bytes=500 * MB, runtime_ms=3), delivered_bytes=500 * MB)
    found = bench.measure()
    assert found.read_bytes_per_s is None
    assert found.reason is not None
    assert found.reason.startswith("too short to measure")


def test_a_filesystem_without_devices_is_claimed_unchecked_and_says_so(bench):
    bench.fio(fio_job(read_bytes=500 * MB, runtime_ms=5000))
    found = bench.measure(stack=None)
    assert found.read_bytes_per_s == 100 * MB
    assert found.storage_read_bytes is None
    assert found.notes == ("No block device lies under the mount, so fio's bytes are not checked.",)


def test_an_engine_that_the_kernel_refuses_gives_way_to_the_next(bench):
    refuse = 'case "$*" in *io_uring*) echo "fio: io_uring: Operation not permitted"; exit 1;; esac'
    bench.fio(fio_job(read_bytes=500 * MB, runtime_ms=5000), probe=refuse)
    found = bench.measure(stack=None)
    assert (found.engine, found.direct) == ("libaio", True)


def test_without_direct_reads_it_reads_through_an_emptied_page_cache_and_says_so(bench):
    refuse = f'case "$*" in *--direct=1*) cat {bench.out}/einval; exit 1;; esac'
    bench.out.mkdir()
    (bench.out / "einval").write_text(fio_job(read_bytes=0, runtime_ms=0, error=22))
    bench.fio(fio_job(read_bytes=500 * MB, runtime_ms=5000), probe=refuse)
    found = bench.measure(stack=None)
    assert found.direct is False
    assert "emptied it of each file first" in found.notes[0]
    assert "invalidate=1" in (bench.out / "read.fio").read_text()


def test_a_busy_host_may_be_the_limit(bench, monkeypatch):
    monkeypatch.setattr(ceiling, "usable_cpus", lambda *, roots: 1.0)
    bench.fio(fio_job(read_bytes=500 * MB, runtime_ms=5000, busy=90), delivered_bytes=500 * MB)
    found = bench.measure()
    assert found.cpu_fraction == pytest.approx(0.9)
    assert "the host may be the limit" in found.notes[0]


def test_an_interrupted_fio_says_how_far_it_came(bench):
    words = "\nfio: terminating on signal 2\n"
    answer = words + fio_job(read_bytes=200 * MB, runtime_ms=2000)
    bench.fio(answer, delivered_bytes=200 * MB)
    found = bench.measure()
    assert found.read_bytes_per_s == 100 * MB
    assert "interrupted: 2.0 s of 5.0 s" in found.notes[0]


def test_an_error_of_a_job_is_the_reason_with_fios_words(bench):
    words = "fio: pid=9, err=5/file:io_u.c:1876, func=io_u error, error=Input/output error\n"
    bench.fio(words + fio_job(read_bytes=0, runtime_ms=0, error=5))
    found = bench.measure()
    assert found.read_bytes_per_s is None
    assert found.reason is not None
    assert "Input/output error" in found.reason


def test_no_fio_is_a_sentence_with_the_remedy(bench, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    found = bench.measure()
    assert found.read_bytes_per_s is None
    assert found.reason == "fio is not installed: apt-get install fio, or dnf install fio"


def test_a_filesystem_in_memory_has_no_storage_to_measure(bench):
    bench.fio(fio_job(read_bytes=500 * MB, runtime_ms=5000))
    bench.filesystem = "tmpfs"
    found = bench.measure()
    assert found.read_bytes_per_s is None
    assert found.reason is not None
    assert "lies in memory" in found.reason
