"""NVIDIA GPUs by NVML: share of time with a kernel running, memory, power, PCIe bytes.

Never initialises CUDA. Each value is asked for on its own: on MIG, vGPU, WSL and unified-memory
parts some are not supported, and those are None while the others go on. Readings are of the whole
device, in the driver's own order, whatever CUDA_VISIBLE_DEVICES says.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.source import Fact, Found, Roots, Target

# Constants of nvml.h; older bindings lack some of the names.
_NOT_SUPPORTED = 3
_DRIVER_NOT_LOADED = 9
_LIBRARY_NOT_FOUND = 12
_GPU_IS_LOST = 15
_RESET_REQUIRED = 16
_LIBRARY_MISMATCH = 18
_GPU_SAMPLES = 1
_MEMORY_SAMPLES = 2
_PCIE_TRANSMIT_FIELD = 197
_PCIE_RECEIVE_FIELD = 198
_UNION_MEMBERS = {2: "ulVal", 3: "ullVal", 4: "sllVal"}  # by NVML_VALUE_TYPE, 64-bit ones
_MIG_ENABLED = 1

_NOTE = (
    "busy is the share of the driver's last sample periods (1/6 s to 1 s) with any kernel running: "
    "not accelerator utilisation"
)
_UNIFIED_NOTE = "; memory is n/a: it is unified with the host's, or this virtual GPU hides it"
_MIG_NOTE = "MIG is on: busy is n/a (MIG), memory and power are of the whole GPU"
_REASONS = {
    _DRIVER_NOT_LOADED: ("the NVIDIA driver is not loaded", None),
    _LIBRARY_NOT_FOUND: ("there is no NVIDIA driver here (libnvidia-ml.so.1 not found)", None),
    _LIBRARY_MISMATCH: (
        "the NVIDIA driver in the kernel and its library have different versions",
        "reboot, or reload the nvidia kernel modules",
    ),
}
_Answer = TypeVar("_Answer")


class _Rates(Protocol):
    gpu: int
    memory: int


class _Memory(Protocol):
    used: int


class _Union(Protocol):
    uiVal: int


class _Sample(Protocol):
    timeStamp: int  # microseconds
    sampleValue: _Union


class _Field(Protocol):
    nvmlReturn: int
    valueType: int
    value: object


class Nvml(Protocol):
    """What is used of the module pynvml."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> object:
        """Load the library and connect to the driver."""

    def nvmlShutdown(self) -> object:
        """Disconnect."""

    def nvmlDeviceGetCount(self) -> int:
        """How many GPUs the driver has."""

    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> object:
        """The GPU at this place in the driver's order."""

    def nvmlDeviceGetName(self, handle: object, /) -> str | bytes:
        """Product name; bytes from old bindings."""

    def nvmlDeviceGetMigMode(self, handle: object, /) -> Sequence[int]:
        """Current and pending mode."""

    def nvmlDeviceGetUtilizationRates(self, handle: object, /) -> _Rates:
        """Per cent over the last sample period."""

    def nvmlDeviceGetSamples(
        self, handle: object, kind: int, since_us: int, /
    ) -> tuple[int, Sequence[_Sample]]:
        """Buffered samples newer than a time stamp."""

    def nvmlDeviceGetMemoryInfo(self, handle: object, /) -> _Memory:
        """Bytes of device memory."""

    def nvmlDeviceGetPowerUsage(self, handle: object, /) -> int:
        """Milliwatts."""

    def nvmlDeviceGetFieldValues(self, handle: object, fields: list[int], /) -> Sequence[_Field]:
        """Values by field number."""


class _Lost(Exception):
    """The GPU fell off the bus or needs a reset: nothing can be read of it."""


FACTS: tuple[Fact, ...] = (
    Fact(
        source="nvml",
        layer=Layer.HOST,
        scope=Scope.DEVICE,
        counters=("gpu_kernel_busy", "memory_busy"),
        file="NVML: nvmlDeviceGetSamples, else nvmlDeviceGetUtilizationRates",
        field="GPU and memory utilisation samples",
        unit="per cent of the driver's sample period, 1/6 s to 1 s",
        since="any driver; not with MIG",
        caveat="time with any kernel running: 1 says nothing of how well the GPU was used",
        check="nvidia-smi --query-gpu=index,utilization.gpu,utilization.memory --format=csv",
    ),
    Fact(
        source="nvml",
        layer=Layer.HOST,
        scope=Scope.DEVICE,
        counters=("memory_used_bytes", "power_watts"),
        file="NVML: nvmlDeviceGetMemoryInfo, nvmlDeviceGetPowerUsage",
        field="used; the board's power",
        unit="bytes; milliwatts",
        since="any driver; each missing on some vGPU, WSL and unified-memory parts",
        caveat="whole GPU, other jobs too; power is a mean over the last second on recent GPUs",
        check="nvidia-smi --query-gpu=index,memory.used,power.draw --format=csv",
    ),
    Fact(
        source="nvml",
        layer=Layer.HOST,
        scope=Scope.DEVICE,
        counters=("pcie_receive_bytes_total", "pcie_transmit_bytes_total"),
        file="NVML: nvmlDeviceGetFieldValues",
        field="fields 198 (to the GPU) and 197 (from it)",
        unit="bytes, 64 bits",
        since="drivers newer than 470, where the GPU counts in 64 bits",
        caveat="everything over PCIe, peers and commands too; 32-bit values would wrap within a "
        "second and are left out",
        check="python -c 'from pynvml import *; nvmlInit(); print([f.value.ullVal for f in "
        "nvmlDeviceGetFieldValues(nvmlDeviceGetHandleByIndex(0), [198, 197])])'",
    ),
)


def find(target: Target, *, roots: Roots = Roots(), nvml: Nvml | None = None) -> list[Found]:
    """One source for all GPUs, or why there is none. `nvml` stands in for the pynvml module."""
    if nvml is None:
        try:
            nvml = _import()
        except ImportError:
            return [
                Unavailable(
                    source="nvml",
                    reason="the Python package nvidia-ml-py is not installed",
                    remedy="pip install 'ioprof[gpu]'",
                )
            ]
    try:
        nvml.nvmlInit()
        count = int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError as error:
        return [_unavailable(error)]
    devices: list[_Device] = []
    silent: list[Found] = []
    for index in range(count):
        try:
            devices.append(_Device(nvml, index))
        except _Lost:
            reason = f"GPU {index} is lost: it fell off the bus or needs a reset"
            silent.append(Unavailable(source=f"nvml.{index}", reason=reason))
        except nvml.NVMLError as error:
            silent.append(Unavailable(source=f"nvml.{index}", reason=f"GPU {index}: {error}"))
    if devices:
        return [NvmlSource(nvml, devices), *silent]
    with contextlib.suppress(nvml.NVMLError):
        nvml.nvmlShutdown()
    reason = "the NVIDIA driver is loaded and lists no GPU that answers"
    return [Unavailable(source="nvml", reason=reason), *silent]


def _import() -> Nvml:
    with warnings.catch_warnings():
        # The deprecated package of the same module name announces itself with a warning.
        warnings.simplefilter("ignore")
        import pynvml
    module: Nvml = pynvml
    return module


def _unavailable(error: Exception) -> Unavailable:
    reason, remedy = _REASONS.get(_code(error) or 0, (f"NVML did not start: {error}", None))
    return Unavailable(source="nvml", reason=reason, remedy=remedy)


def _code(error: Exception) -> int | None:
    value = getattr(error, "value", None)
    return value if isinstance(value, int) else None


class NvmlSource:
    """Readings "nvml", one for each GPU that answers."""

    name = "nvml"
    every_ticks = 2
    """The driver makes a new utilisation sample five or six times a second at best."""

    def __init__(self, nvml: Nvml, devices: list[_Device]) -> None:
        self._nvml = nvml
        self._devices = devices

    def read(self) -> Iterable[Reading]:
        """One look at every GPU; one that is lost is left out."""
        for device in self._devices:
            try:
                yield device.read()
            except _Lost:
                continue

    def close(self) -> None:
        """Leave NVML."""
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()


class _Device:
    """One GPU, what it cannot tell, and how far its utilisation samples have been read."""

    def __init__(self, nvml: Nvml, index: int) -> None:
        self._nvml = nvml
        self._index = index
        self._handle = nvml.nvmlDeviceGetHandleByIndex(index)
        self._unsupported: set[str] = set()
        self._sampled_us = {_GPU_SAMPLES: 0, _MEMORY_SAMPLES: 0}
        self._last: dict[int, float] = {}
        self._note = self._describe()

    def _describe(self) -> str:
        name = self._ask("name", self._nvml.nvmlDeviceGetName)
        if isinstance(name, bytes):  # bindings before 11.510 return bytes
            name = name.decode(errors="replace")
        mode = self._ask("mig", lambda handle: self._nvml.nvmlDeviceGetMigMode(handle)[0])
        note = _MIG_NOTE if mode == _MIG_ENABLED else _NOTE
        if self._memory_used_bytes() is None and "memory" in self._unsupported:
            note += _UNIFIED_NOTE
        return f"{name}; {note}" if name else note

    def read(self) -> Reading:
        """What this GPU tells now; _Lost when it tells nothing any more."""
        nvml = self._nvml
        rates = None
        busy = self._samples(_GPU_SAMPLES)
        memory_busy = self._samples(_MEMORY_SAMPLES)
        if busy is None or memory_busy is None:
            rates = self._ask("rates", nvml.nvmlDeviceGetUtilizationRates)
        gauges: dict[str, Number | None] = {
            "gpu_kernel_busy": busy if rates is None or busy is not None else rates.gpu / 100,
            "memory_busy": memory_busy
            if rates is None or memory_busy is not None
            else rates.memory / 100,
            "memory_used_bytes": self._memory_used_bytes(),
            "power_watts": self._ask(
                "power", lambda handle: nvml.nvmlDeviceGetPowerUsage(handle) / 1000
            ),
        }
        return Reading(
            source="nvml",
            instance=str(self._index),
            layer=Layer.HOST,
            scope=Scope.DEVICE,
            counters=self._pcie(),
            gauges=gauges,
            note=self._note,
        )

    def _memory_used_bytes(self) -> int | None:
        return self._ask(
            "memory", lambda handle: int(self._nvml.nvmlDeviceGetMemoryInfo(handle).used)
        )

    def _ask(self, what: str, call: Callable[[object], _Answer]) -> _Answer | None:
        """One value; None when this GPU does not give it. What is unsupported is asked once."""
        if what in self._unsupported:
            return None
        try:
            return call(self._handle)
        except self._nvml.NVMLError as error:
            code = _code(error)
            if code in (_GPU_IS_LOST, _RESET_REQUIRED):
                raise _Lost from None
            if code == _NOT_SUPPORTED:
                self._unsupported.add(what)
        except AttributeError:
            # A binding older than this query.
            self._unsupported.add(what)
        return None

    def _samples(self, kind: int) -> float | None:
        """Mean over the driver's samples since the last look, 0-1; None when it keeps none.

        Between two samples of the driver the last mean stands.
        """
        answer = self._ask(
            f"samples {kind}",
            lambda handle: self._nvml.nvmlDeviceGetSamples(handle, kind, self._sampled_us[kind]),
        )
        # Without a new sample NVML answers "not found", or repeats old ones.
        if answer is not None:
            fresh = [s for s in answer[1] if s.timeStamp > self._sampled_us[kind]]
            if fresh and self._sampled_us[kind] == 0:
                fresh = fresh[-1:]  # the buffer goes back to long before this recording
            if fresh:
                self._sampled_us[kind] = max(s.timeStamp for s in fresh)
                mean_percent = sum(s.sampleValue.uiVal for s in fresh) / len(fresh)
                self._last[kind] = min(mean_percent / 100, 1.0)
        return self._last.get(kind)

    def _pcie(self) -> dict[str, Number | None]:
        """Bytes over PCIe since the driver started, in the GPU's direction; None where not kept."""
        fields = [_PCIE_RECEIVE_FIELD, _PCIE_TRANSMIT_FIELD]
        values = self._ask(
            "pcie", lambda handle: self._nvml.nvmlDeviceGetFieldValues(handle, fields)
        )
        received, transmitted = (None, None) if values is None else map(_counter, values)
        return {
            "pcie_receive_bytes_total": received,
            "pcie_transmit_bytes_total": transmitted,
        }


def _counter(field: _Field) -> int | None:
    # A 32-bit one would wrap within a second: only the 64-bit types are counters to us.
    member = _UNION_MEMBERS.get(field.valueType)
    if field.nvmlReturn != 0 or member is None:
        return None
    return int(getattr(field.value, member))
