"""The newest look as OpenMetrics: what a scraper gets from `ioprof watch --listen`."""

from __future__ import annotations

import errno
import ipaddress
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import NamedTuple, Self
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import HistogramMetricFamily, InfoMetricFamily, Metric

from ioprof._version import VERSION
from ioprof.errors import UsageError
from ioprof.live.looks import Look
from ioprof.record import sizes
from ioprof.record.reading import Number, Reading
from ioprof.sources.registry import FACTS
from ioprof.sources.source import Fact

PREFIX = "ioprof_"
SIZES = f"{PREFIX}read_request_size_bytes"
_LOCAL = "127.0.0.1"
_UNITS = frozenset(
    [
        "bytes",
        "seconds",
        "watts",
        "operations",
        "calls",
        "requests",
        "merges",
        "pages",
        "hits",
        "misses",
        "packets",
    ]
)
_FACTS = {(fact.source, name): fact for fact in FACTS for name in fact.counters}


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """For a scraper's configuration."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"


def parse_address(text: str, *, anywhere: bool) -> Address:
    """An address and port such as 127.0.0.1:9400, [::1]:9400 or :9400, which is loopback.

    UsageError for one that other machines reach, unless `anywhere`.
    """
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"{text!r} is no address to listen on. Write it like {_LOCAL}:9400.")
    if bare in ("", "localhost"):
        return Address(_LOCAL, int(port))
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        raise UsageError(
            f"{text!r} has no IP address before the port. Write it like {_LOCAL}:9400 or "
            "[::1]:9400."
        ) from None
    if ":" in bare and not host.startswith("["):
        raise UsageError(f"{text!r} is ambiguous. Write IPv6 in brackets, like [::1]:9400.")
    if not anywhere and not address.is_loopback:
        raise UsageError(
            f"{bare} can be reached from other machines, and what ioprof shows would be open to "
            f"all of them. Use {_LOCAL}:{port}, or add --listen-anywhere if that is wanted."
        )
    return Address(bare, int(port))


class Exporter:
    """A collector for prometheus_client. It gives the look it was handed last and touches no
    source itself, so scraping often costs the watched machine next to nothing.
    """

    def __init__(self) -> None:
        self.look: Look | None = None

    def collect(self) -> Iterator[Metric]:
        """All counters and gauges, each with what it is; a value that is not known is left out."""
        build = InfoMetricFamily(f"{PREFIX}build", "The ioprof that answers.")
        build.add_metric([], {"version": VERSION})
        yield build
        look = self.look
        if look is None:
            return
        readings = [pair.now for pair in look.pairs]
        yield from _families(readings)
        yield from _request_sizes(readings)
        yield _silent(look)


def _families(readings: Iterable[Reading]) -> Iterator[Metric]:
    found: dict[str, list[tuple[Reading, Number]]] = {}
    for reading in readings:
        for name, value in (*reading.counters.items(), *reading.gauges.items()):
            if value is not None and sizes.edge(name) is None:
                found.setdefault(name, []).append((reading, value))
    for name, values in sorted(found.items()):
        base = name.removesuffix("_total")
        kind = "gauge" if base == name else "counter"
        unit = base.rpartition("_")[2]
        metric = Metric(
            f"{PREFIX}{base}",
            _help(name, [reading for reading, _ in values]),
            kind,
            unit if unit in _UNITS else "",
        )
        for reading, value in values:
            metric.add_sample(f"{PREFIX}{name}", _labels(reading), float(value))
        yield metric


def _help(name: str, readings: Iterable[Reading]) -> str:
    """Where each source has it from, and what it gets wrong."""
    facts = [_FACTS.get((source, name)) for source in dict.fromkeys(r.source for r in readings)]
    return " ".join(_sentence(fact) for fact in facts if fact is not None) or "Not described."


def _sentence(fact: Fact) -> str:
    return f"{fact.source} ({fact.layer}, {fact.scope}): {fact.file}: {fact.field}; {fact.caveat}."


def _labels(reading: Reading) -> dict[str, str]:
    labels = {
        "source": reading.source,
        "instance": _encodable(reading.instance),
        "layer": reading.layer.value,
        "scope": reading.scope.value,
    }
    # Of stacked devices only one may be summed up: the label tells which.
    return labels if reading.role is None else labels | {"role": reading.role.value}


def _encodable(text: str) -> str:
    """A path may hold bytes that are no text."""
    return text.encode(errors="replace").decode()


def _request_sizes(readings: Iterable[Reading]) -> Iterator[Metric]:
    """Read requests by size as one histogram; without a sum, which no source keeps."""
    told = [r for r in readings if any(map(sizes.edge, r.counters))]
    if not told:
        return
    names = [*sizes.names()]
    metric = HistogramMetricFamily(SIZES, _help(names[0], told), unit="bytes")
    for reading in told:
        counts = [reading.counters.get(name, 0) for name in names]
        if any(count is None for count in counts):
            continue
        reached = 0.0
        for edge, count in zip((*map(float, sizes.EDGES), float("inf")), counts, strict=True):
            reached += count or 0
            up_to = "+Inf" if edge == float("inf") else str(edge)
            metric.add_sample(f"{SIZES}_bucket", {**_labels(reading), "le": up_to}, reached)
    yield metric


def _silent(look: Look) -> Metric:
    metric = Metric(
        f"{PREFIX}source_unavailable",
        "1 for each source that ought to be here and tells nothing, with the reason.",
        "gauge",
    )
    for source, reason in look.silent.items():
        metric.add_sample(metric.name, {"source": source, "reason": _encodable(reason)}, 1.0)
    return metric


class Listener:
    """Serves an exporter until the context is left."""

    def __init__(self, exporter: Exporter, *, address: Address) -> None:
        registry = CollectorRegistry()
        registry.register(exporter)
        self._server: WSGIServer
        try:
            self._server, self._thread = start_http_server(
                address.port, addr=address.host, registry=registry
            )
        except OSError as error:
            raise UsageError(_why_not(address, error)) from None
        self.address = Address(address.host, self._server.server_port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _why_not(address: Address, error: OSError) -> str:
    shown = f"{address.host}:{address.port}"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{shown} is in use by another program. Give --listen another port."
        case errno.EADDRNOTAVAIL:
            return f"{address.host} is no address of this machine. Give --listen one that is."
        case errno.EACCES:
            return f"{shown} may not be used by this user. Give --listen a port above 1023."
        case _:
            return f"{shown} cannot be listened on: {error}. Give --listen another address."
