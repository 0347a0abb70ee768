"""Facts about this host: what runs, on what, and what of it is ours to use."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from ioprof._version import VERSION
from ioprof.record.header import Accelerator, Host
from ioprof.sources.allowance import memory_limit_bytes, usable_cpus
from ioprof.sources.source import Roots

__all__ = ["fio_version", "host", "nvidia", "package_version", "usable_cpus"]

_TOOL_DEADLINE_S = 5.0
_PACKAGES = {
    "torch": ("torch",),
    "torchvision": ("torchvision",),
    # One distribution per CUDA generation; whichever is there.
    "dali": ("nvidia-dali-cuda130", "nvidia-dali-cuda120", "nvidia-dali-cuda110"),
}


def host(*, roots: Roots = Roots()) -> Host:
    """The facts, as of now. Whatever is not there is left out of `versions`."""
    accelerators, driver = nvidia()
    return Host(
        hostname=socket.gethostname(),
        boot_id=_text(roots.proc / "sys/kernel/random/boot_id") or "",
        kernel=_text(roots.proc / "sys/kernel/osrelease") or os.uname().release,
        cpu=_cpu_model(roots),
        logical_cpus=os.cpu_count() or 1,
        usable_cpus=usable_cpus(roots=roots),
        memory_bytes=_memory_bytes(roots),
        accelerators=accelerators,
        versions=_versions(driver),
    )


def package_version(name: str) -> str | None:
    """Version of torch, torchvision or dali from its metadata, never importing it."""
    for distribution in _PACKAGES[name]:
        with contextlib.suppress(PackageNotFoundError):
            return version(distribution)
    return None


def fio_version() -> str | None:
    """What `fio --version` says, for instance "fio-3.33"; None when there is no fio that runs."""
    program = shutil.which("fio")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TOOL_DEADLINE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = done.stdout.strip()
    return found if done.returncode == 0 and found else None


def nvidia() -> tuple[tuple[Accelerator, ...], str | None]:
    """GPUs that the NVIDIA driver lists, and its version; empty and None without one.

    Never initialises CUDA.
    """
    try:
        with warnings.catch_warnings():
            # The deprecated package of the same module name announces itself with a warning.
            warnings.simplefilter("ignore")
            import pynvml
    except ImportError:
        return (), None
    nvml: Any = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return (), None
    try:
        driver = _words(nvml.nvmlSystemGetDriverVersion())
        found = [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        return tuple(gpu for gpu in found if gpu is not None), driver
    except nvml.NVMLError:
        return (), None
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _gpu(nvml: Any, index: int) -> Accelerator | None:  # noqa: ANN401 — a module without types
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        name = _words(nvml.nvmlDeviceGetName(handle))
    except nvml.NVMLError:
        return None  # lost, or not ours to see
    memory_bytes: int | None = None
    with contextlib.suppress(nvml.NVMLError):
        # Not supported on parts that share the host's memory.
        memory_bytes = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    return Accelerator(index=index, name=name, memory_bytes=memory_bytes)


def _words(value: str | bytes) -> str:
    # Bindings before 11.510 return bytes.
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _versions(driver: str | None) -> dict[str, str]:
    found = {
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "ioprof": VERSION,
        **{name: package_version(name) for name in _PACKAGES},
        "fio": fio_version(),
        "nvidia-driver": driver,
    }
    return {name: text for name, text in found.items() if text is not None}


def _cpu_model(roots: Roots) -> str:
    text = _text(roots.proc / "cpuinfo") or ""
    # x86 says "model name", s390 and some ARM boards "Processor", POWER "cpu", RISC-V "uarch".
    for key in ("model name", "Processor", "cpu", "uarch"):
        match = re.search(rf"^{key}\s*:\s*(\S.*)$", text, re.MULTILINE)
        if match:
            return match[1].strip()
    return os.uname().machine


def _memory_bytes(roots: Roots) -> int:
    """Memory of the host, or the cgroup limit above us where that is less."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", _text(roots.proc / "meminfo") or "", re.MULTILINE)
    total = int(match[1]) * 1024 if match else int(psutil.virtual_memory().total)
    limit = memory_limit_bytes(roots=roots)
    return total if limit is None else min(total, limit)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None
