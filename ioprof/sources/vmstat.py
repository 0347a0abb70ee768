"""The host's page cache: what was paged in, and what had to be fetched again."""

from __future__ import annotations

from collections.abc import Iterable

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.procfile import ProcFile, why
from ioprof.sources.source import Fact, Found, Roots, Target

_KIB = 1024
_NOTE = (
    "of the whole host; a loop device over direct I/O counts twice, FUSE and network filesystems "
    "not at all"
)
_FIELDS: dict[str, tuple[bytes, int]] = {
    # Despite its name pgpgin counts KiB submitted to the block layer, not pages.
    "page_in_bytes_total": (b"pgpgin", _KIB),
    "page_faults_major_total": (b"pgmajfault", 1),
    "refault_file_pages_total": (b"workingset_refault_file", 1),
}

FACTS: tuple[Fact, ...] = (
    Fact(
        source="vmstat",
        layer=Layer.CACHE,
        scope=Scope.HOST,
        counters=("page_in_bytes_total",),
        file="/proc/vmstat",
        field="pgpgin",
        unit="KiB, despite its name",
        since="Linux 2.6",
        caveat="whole host; a loop device with direct I/O counts twice; 0 for FUSE and network "
        "filesystems",
        check="awk '/^pgpgin / {printf \"%.0f\\n\", $2*1024}' /proc/vmstat",
    ),
    Fact(
        source="vmstat",
        layer=Layer.CACHE,
        scope=Scope.HOST,
        counters=("page_faults_major_total", "refault_file_pages_total"),
        file="/proc/vmstat",
        field="pgmajfault, workingset_refault_file",
        unit="faults; pages",
        since="Linux 2.6; refaults of files apart from Linux 5.9",
        caveat="whole host; a fault is not a page: read-ahead brings many pages with one fault, or "
        "none",
        check="grep -E '^(pgmajfault|workingset_refault_file) ' /proc/vmstat",
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source, or why /proc/vmstat cannot be read."""
    path = roots.proc / "vmstat"
    try:
        return [VmstatSource(ProcFile(path))]
    except OSError as error:
        return [Unavailable(source="vmstat", reason=f"{path} cannot be read: {why(error)}")]


def parse(text: bytes) -> dict[str, Number | None]:
    """The counters by our names; None for a line that this kernel does not have."""
    # A whole split of about 200 lines costs ten times what three searches do.
    text = b"\n" + text
    return {name: _value(text, key, factor) for name, (key, factor) in _FIELDS.items()}


def _value(text: bytes, key: bytes, factor: int) -> int | None:
    start = text.find(b"\n" + key + b" ")
    if start < 0:
        return None
    word = text[start + len(key) + 2 : start + len(key) + 32].split(b"\n", 1)[0].strip()
    return int(word) * factor if word.isdigit() else None


class VmstatSource:
    """Reading "vmstat"."""

    name = "vmstat"
    every_ticks = 5
    """A view of the host: half the looks of the headline are enough, and halve its cost."""

    def __init__(self, file: ProcFile) -> None:
        self._file = file

    def read(self) -> Iterable[Reading]:
        """One look at the host's page cache counters."""
        counters = parse(self._file.read_first())
        if None in counters.values():
            counters = parse(self._file.read())
        yield Reading(
            source="vmstat",
            instance="host",
            layer=Layer.CACHE,
            scope=Scope.HOST,
            counters=counters,
            note=_NOTE,
        )

    def close(self) -> None:
        """Close /proc/vmstat."""
        self._file.close()
