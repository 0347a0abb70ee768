"""Bytes through each network interface of this network namespace."""

from __future__ import annotations

from collections.abc import Iterable

from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources.procfile import ProcFile, why
from ioprof.sources.source import Fact, Found, Roots, Target

_NOTE = "all traffic of the interface, whatever it was for; RDMA is not in it"
_LOOPBACK_NOTE = "loopback: never leaves the host"
_RECEIVE_COLUMN, _TRANSMIT_COLUMN = 0, 8

FACTS: tuple[Fact, ...] = (
    Fact(
        source="net",
        layer=Layer.LINK,
        scope=Scope.HOST,
        counters=("receive_bytes_total", "transmit_bytes_total"),
        file="/proc/net/dev",
        field="numbers 1 (received) and 9 (sent) after the interface's name",
        unit="bytes, 64 bits",
        since="any Linux; 64 bits on 32-bit machines from 2.6.36",
        caveat="all traffic of this network namespace; RDMA and DPDK never show; a bond counts its "
        "members' bytes again",
        check='awk \'NR>2 {sub(":", " "); print $1, $2, $10}\' /proc/net/dev',
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source, or why /proc/net/dev cannot be read."""
    path = roots.proc / "net" / "dev"
    try:
        return [NetworkSource(ProcFile(path), roots=roots)]
    except OSError as error:
        return [Unavailable(source="net", reason=f"{path} cannot be read: {why(error)}")]


def parse(text: bytes) -> dict[str, tuple[int, int]]:
    """(received, transmitted) bytes by interface name."""
    found: dict[str, tuple[int, int]] = {}
    for line in text.splitlines():
        # The name ends at the last colon: aliases such as "eth0:1" have one inside.
        name, colon, numbers = line.rpartition(b":")
        fields = numbers.split()
        if not colon or len(fields) <= _TRANSMIT_COLUMN:
            continue  # the two lines of headings
        received, transmitted = fields[_RECEIVE_COLUMN], fields[_TRANSMIT_COLUMN]
        if received.isdigit() and transmitted.isdigit():
            found[name.strip().decode(errors="replace")] = (int(received), int(transmitted))
    return found


class NetworkSource:
    """Reading "net", one for each interface; loopback is one of them."""

    name = "net"
    every_ticks = 5
    """Links move slowly beside storage, and a host with many containers has hundreds of them."""

    def __init__(self, file: ProcFile, *, roots: Roots = Roots()) -> None:
        self._file = file
        self._class = roots.sys / "class" / "net"
        self._notes: dict[str, str] = {}

    def read(self) -> Iterable[Reading]:
        """One look at all interfaces that are there."""
        for name, (received, transmitted) in parse(self._file.read()).items():
            yield Reading(
                source="net",
                instance=name,
                layer=Layer.LINK,
                scope=Scope.HOST,
                counters={"receive_bytes_total": received, "transmit_bytes_total": transmitted},
                note=self._note(name),
            )

    def _note(self, name: str) -> str:
        note = self._notes.get(name)
        if note is None:
            note = self._notes[name] = self._describe(name)
        return note

    def _describe(self, name: str) -> str:
        if name == "lo":
            return _LOOPBACK_NOTE
        folder = self._class / name
        try:
            members = (folder / "bonding" / "slaves").read_text().split()
        except OSError:
            members = []
        if members:
            return f"{_NOTE}; a bond of {', '.join(members)}: count it or them, never both"
        try:
            master = (folder / "master").readlink().name
        except OSError:
            return _NOTE
        return f"{_NOTE}; a member of {master}: count it or {master}, never both"

    def close(self) -> None:
        """Close /proc/net/dev."""
        self._file.close()
