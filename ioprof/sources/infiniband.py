"""InfiniBand and RoCE ports: all bytes through each, RDMA in them.

`/sys/class/infiniband/<device>/ports/<n>/counters`, in words of four bytes; and for mlx5 network
interfaces `ethtool -S`, which tells RDMA from the rest. A port carries the training's own traffic
too: its bytes are a link's, never a mount's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.procfile import ProcFile, read_once
from ioprof.sources.program import ProgramError, ask, locate
from ioprof.sources.source import Fact, Found, Roots, Target

WORD_BYTES = 4
_PORT = {
    "receive_bytes_total": ("port_rcv_data", WORD_BYTES),
    "transmit_bytes_total": ("port_xmit_data", WORD_BYTES),
    "receive_packets_total": ("port_rcv_packets", 1),
    "transmit_packets_total": ("port_xmit_packets", 1),
    "transmit_wait_ticks_total": ("port_xmit_wait", 1),
}
_STUCK = 2**32 - 1
"""A 32-bit counter stays here for ever; a 64-bit one is at this very number practically never."""
_ETHTOOL_S = 1.0
_BY_KIND = {
    "ethtool.rdma": "vport_rdma_unicast_bytes",
    "ethtool.vport": "vport_unicast_bytes",
    "ethtool.phy": "bytes_phy",
}
_NOTES = {
    "ethtool.rdma": "RDMA of this function of the adapter, whatever it was for",
    "ethtool.vport": "network stack and DPDK of this function of the adapter, without RDMA",
    "ethtool.phy": "everything on the port, all functions of the adapter, with Ethernet framing",
}
_PORTS = "/sys/class/infiniband/<device>/ports/<n>"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="infiniband",
        layer=Layer.LINK,
        scope=Scope.HOST,
        counters=("receive_bytes_total", "transmit_bytes_total"),
        file=f"{_PORTS}/counters/port_rcv_data, port_xmit_data",
        field="the whole file",
        unit="words of 4 bytes (not bytes), 64 bits",
        since="Linux 4.5; before, counters_ext/port_rcv_data_64 and port_xmit_data_64",
        caveat="all traffic of the port, MPI and NCCL too; a 32-bit one stops at its end; "
        "dear to read: once a second",
        check="echo $((4 * $(cat /sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data)))",
    ),
    Fact(
        source="infiniband",
        layer=Layer.LINK,
        scope=Scope.HOST,
        counters=("receive_packets_total", "transmit_packets_total"),
        file=f"{_PORTS}/counters/port_rcv_packets, port_xmit_packets",
        field="the whole file",
        unit="packets",
        since="Linux 4.5; before, counters_ext/port_rcv_packets_64 and port_xmit_packets_64",
        caveat="all traffic of the port",
        check="cat /sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_packets",
    ),
    Fact(
        source="infiniband",
        layer=Layer.LINK,
        scope=Scope.HOST,
        counters=("transmit_wait_ticks_total",),
        file=f"{_PORTS}/counters/port_xmit_wait",
        field="the whole file",
        unit="ticks of the adapter with data to send and no credit",
        since="adapters that count it",
        caveat="its growth says congestion; the length of a tick is the adapter's",
        check="cat /sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait",
    ),
    *(
        Fact(
            source=source,
            layer=Layer.LINK,
            scope=Scope.HOST,
            counters=("receive_bytes_total", "transmit_bytes_total"),
            file="ethtool -S <interface>",
            field=f"rx_{key}, tx_{key}",
            unit="bytes, 64 bits",
            since="mlx5_core adapters (ConnectX-4 and newer)",
            caveat=_NOTES[source],
            check=f"ethtool -S eth0 | grep x_{key}",
        )
        for source, key in _BY_KIND.items()
    ),
)


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The ports, and what mlx5 interfaces say by ethtool; nothing where there are neither."""
    return [*_find_ports(roots), *_find_ethtool(roots)]


def _find_ports(roots: Roots) -> list[Found]:
    folders = sorted((roots.sys / "class" / "infiniband").glob("*/ports/*"))
    ports: list[Port] = []
    silent: list[Found] = []
    for folder in folders:
        port = Port(folder)
        if port.counts():
            ports.append(port)
        else:
            port.close()
            reason = f"the port gives none of the counters under {folder}"
            silent.append(Unavailable(source=f"infiniband {port.name}", reason=reason))
    return [InfinibandSource(ports), *silent] if ports else silent


def _find_ethtool(roots: Roots) -> list[Found]:
    interfaces = [
        folder.name
        for folder in sorted((roots.sys / "class" / "net").glob("*"))
        if _driver(folder).startswith("mlx5")
    ]
    if not interfaces:
        return []
    program = locate("ethtool", places=("/sbin", "/usr/sbin"), roots=roots)
    if program is None:
        return [
            Unavailable(
                source="ethtool",
                reason=f"the program ethtool, which tells RDMA on {', '.join(interfaces)} from the "
                "rest, is not installed",
                remedy="install the package ethtool",
            )
        ]
    return [Aside(EthtoolSource(program, interfaces))]


def _driver(interface: Path) -> str:
    try:
        return (interface / "device" / "driver").readlink().name
    except OSError:
        return ""


def parse_counter(text: bytes) -> int | None:
    """The number in a port counter's file; None for "N/A (no PMA)", and for one that has come to
    the end of its 32 bits, where it stays."""
    word = text.strip()
    return int(word) if word.isdigit() and int(word) != _STUCK else None


def parse_ethtool(text: bytes) -> dict[bytes, int]:
    """Statistics by name of an `ethtool -S` text. Lines without a number are passed over."""
    found: dict[bytes, int] = {}
    for line in text.splitlines():
        name, colon, value = line.rpartition(b":")
        if colon and value.strip().isdigit():
            found.setdefault(name.strip(), int(value))
    return found


class Port:
    """One port: its counter files, kept open, and what it is."""

    def __init__(self, folder: Path) -> None:
        self.name = f"{folder.parents[1].name}/{folder.name}"
        self._files = {name: _open(folder, file) for name, (file, _) in _PORT.items()}
        kind, rate = _text(folder / "link_layer"), _text(folder / "rate")
        state = (_text(folder / "state") or "").rpartition(": ")[2]
        is_up = "" if state in ("ACTIVE", "") else f", {state.lower()}"
        self._note = (
            f"{kind or 'port'} at {rate or 'an unknown rate'}{is_up}: all traffic of the port, "
            "whatever it was for"
        )

    def counts(self) -> bool:
        """Whether it gives its bytes received, now."""
        return self.read().counters["receive_bytes_total"] is not None

    def read(self) -> Reading:
        """One look; None for a counter that this adapter does not give."""
        counters: dict[str, Number | None] = {}
        for name, (_, scale) in _PORT.items():
            value = _value(self._files[name])
            counters[name] = None if value is None else value * scale
        return Reading(
            source="infiniband",
            instance=self.name,
            layer=Layer.LINK,
            scope=Scope.HOST,
            counters=counters,
            note=self._note,
        )

    def close(self) -> None:
        """Close its files."""
        for file in self._files.values():
            if file is not None:
                file.close()


def _open(folder: Path, name: str) -> ProcFile | None:
    # The 64-bit ones of Linux before 4.5 first: their neighbours stop after 16 GiB.
    for path in (folder / "counters_ext" / f"{name}_64", folder / "counters" / name):
        try:
            return ProcFile(path)
        except OSError:
            continue
    return None


def _value(file: ProcFile | None) -> int | None:
    try:
        return None if file is None else parse_counter(file.read_first())
    except OSError:
        return None  # EINVAL and EOPNOTSUPP: not counted; ENODEV: the adapter is gone


def _text(path: Path) -> str | None:
    try:
        return read_once(str(path)).decode(errors="replace").strip()
    except OSError:
        return None


class InfinibandSource:
    """Readings "infiniband", one for each port, for instance "mlx5_0/1"."""

    name = "infiniband"
    every_ticks = 10
    """Each file is a command to the adapter's firmware: once a second at the usual interval."""

    def __init__(self, ports: list[Port]) -> None:
        self._ports = ports

    def read(self) -> Iterable[Reading]:
        """One look at every port; one that gives nothing any more is left out."""
        for port in self._ports:
            reading = port.read()
            if any(value is not None for value in reading.counters.values()):
                yield reading

    def close(self) -> None:
        """Close the files of all ports."""
        for port in self._ports:
            port.close()


class EthtoolSource:
    """Readings "ethtool.rdma", "ethtool.vport" and "ethtool.phy" of each mlx5 interface."""

    name = "ethtool"
    every_ticks = 1

    def __init__(self, program: Path, interfaces: list[str]) -> None:
        self._program = str(program)
        self._interfaces = interfaces

    def read(self) -> Iterable[Reading]:
        """One look at every interface that answers; ProgramError when none does."""
        readings: list[Reading] = []
        failure: ProgramError | None = None
        for interface in self._interfaces:
            try:
                text = ask([self._program, "-S", interface], deadline_s=_ETHTOOL_S)
            except ProgramError as error:
                failure = error
            else:
                readings += _by_kind(interface, parse_ethtool(text))
        if failure is not None and not readings:
            raise failure
        return readings

    def close(self) -> None:
        """Nothing is kept open."""


def _by_kind(interface: str, statistics: Mapping[bytes, int]) -> Iterable[Reading]:
    for source, key in _BY_KIND.items():
        received = statistics.get(f"rx_{key}".encode())
        if received is not None:
            yield Reading(
                source=source,
                instance=interface,
                layer=Layer.LINK,
                scope=Scope.HOST,
                counters={
                    "receive_bytes_total": received,
                    "transmit_bytes_total": statistics.get(f"tx_{key}".encode()),
                },
                note=_NOTES[source],
            )
