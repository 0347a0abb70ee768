"""Host facts, read from folders that stand for /proc and /sys."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ioprof import hostinfo
from ioprof.sources.allowance import memory_limit_bytes, usable_cpus
from ioprof.sources.source import Roots

KIB = 1024


def fake_roots(tmp_path: Path, files: dict[str, str]) -> Roots:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Roots(proc=tmp_path / "proc", sys=tmp_path / "sys")


@pytest.fixture(autouse=True)
def eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))


def test_without_a_quota_the_affinity_is_what_we_may_use(tmp_path):
    roots = fake_roots(
        tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}
    )
    assert usable_cpus(roots=roots) == 8.0


def test_a_version_2_quota_of_150_per_cent_is_one_and_a_half_cpus(tmp_path):
    roots = fake_roots(
        tmp_path,
        {
            "proc/self/cgroup": "0::/job/step\n",
            "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/job/step/cpu.max": "max 100000\n",
        },
    )
    assert usable_cpus(roots=roots) == 1.5


def test_a_version_1_quota_is_found_among_joined_controllers(tmp_path):
    roots = fake_roots(
        tmp_path,
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n0::/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    assert usable_cpus(roots=roots) == 3.0


def test_a_version_1_quota_of_minus_one_is_no_quota(tmp_path):
    roots = fake_roots(
        tmp_path,
        {
            "proc/self/cgroup": "1:cpu:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    assert usable_cpus(roots=roots) == 8.0


def test_no_cgroup_table_at_all_leaves_the_affinity(tmp_path):
    assert usable_cpus(roots=fake_roots(tmp_path, {})) == 8.0


def test_the_tightest_memory_limit_on_the_way_up_counts(tmp_path):
    roots = fake_roots(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/memory.max": f"{2 * KIB**3}\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
        },
    )
    assert memory_limit_bytes(roots=roots) == 2 * KIB**3


def test_the_largest_number_of_version_1_is_no_memory_limit(tmp_path):
    roots = fake_roots(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert memory_limit_bytes(roots=roots) is None


def test_host_facts_come_from_the_kernels_own_files(tmp_path, monkeypatch):
    monkeypatch.setattr(hostinfo, "nvidia", lambda: ((), None))
    roots = fake_roots(
        tmp_path,
        {
            "proc/sys/kernel/osrelease": "6.18.0-test\n",
            "proc/sys/kernel/random/boot_id": "11111111-2222\n",
            "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9654\n\nprocessor\t: 1\n",
            "proc/meminfo": "MemTotal:       24684084 kB\nMemFree: 1 kB\n",
            "proc/self/cgroup": "0::/\n",
        },
    )
    host = hostinfo.host(roots=roots)
    assert host.kernel == "6.18.0-test"
    assert host.boot_id == "11111111-2222"
    assert host.cpu == "AMD EPYC 9654"
    assert host.memory_bytes == 24684084 * 1024
    assert host.usable_cpus == 8.0
    assert host.accelerators == ()
    assert host.versions["python"] == sys.version.split()[0]
    assert "nvidia-driver" not in host.versions


def test_a_cgroup_limit_below_the_memory_is_the_memory_we_have(tmp_path, monkeypatch):
    monkeypatch.setattr(hostinfo, "nvidia", lambda: ((), None))
    roots = fake_roots(
        tmp_path,
        {
            "proc/meminfo": "MemTotal:       24684084 kB\n",
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "4294967296\n",
        },
    )
    assert hostinfo.host(roots=roots).memory_bytes == 4294967296


def test_an_arm_cpu_without_a_model_name_is_its_architecture(tmp_path, monkeypatch):
    monkeypatch.setattr(hostinfo, "nvidia", lambda: ((), None))
    roots = fake_roots(tmp_path, {"proc/cpuinfo": "processor : 0\nCPU implementer : 0x41\n"})
    assert hostinfo.host(roots=roots).cpu == os.uname().machine


def test_fio_that_is_not_there_has_no_version(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert hostinfo.fio_version() is None


def test_fio_that_cannot_run_has_no_version(tmp_path, monkeypatch):
    program = tmp_path / "fio"
    program.write_text("#!/bin/sh\nexit 127\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert hostinfo.fio_version() is None


class NvmlError(Exception):
    pass


def fake_nvml(**calls: object) -> SimpleNamespace:
    return SimpleNamespace(
        **{"NVMLError": NvmlError, "nvmlInit": lambda: None, "nvmlShutdown": lambda: None, **calls}
    )


def test_a_driver_that_does_not_start_gives_no_accelerators(monkeypatch):
    def refuse() -> None:
        raise NvmlError

    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(nvmlInit=refuse))
    assert hostinfo.nvidia() == ((), None)


def test_without_the_binding_there_are_no_accelerators(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert hostinfo.nvidia() == ((), None)


def test_a_lost_gpu_is_left_out_and_an_unknown_memory_is_none(monkeypatch):
    def handle(index: int) -> int:
        if index == 1:
            raise NvmlError
        return index

    def memory(handle: int) -> SimpleNamespace:
        raise NvmlError

    nvml = fake_nvml(
        nvmlSystemGetDriverVersion=lambda: b"580.65.06",
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=handle,
        nvmlDeviceGetName=lambda handle: "NVIDIA GB10",
        nvmlDeviceGetMemoryInfo=memory,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    accelerators, driver = hostinfo.nvidia()
    assert driver == "580.65.06"
    assert [(a.index, a.name, a.memory_bytes) for a in accelerators] == [(0, "NVIDIA GB10", None)]
