"""One look put into the numbers that are shown: rates, in base units, each known or explained."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ioprof.live.headline import headline
from ioprof.live.looks import Look, Pair, Rate, total
from ioprof.live.processes import Reader, Top
from ioprof.record.headline import Candidate
from ioprof.record.reading import Layer, Reading, Role, Scope
from ioprof.sources.registry import FACTS

_METADATA = "metadata_operations_total"
_REQUESTED = "requested_bytes_total"
_NARROW = (Scope.PROCESS, Scope.MOUNT, Scope.DEVICE, Scope.HOST)
_LOOPBACK = "lo"
_REASONS_SHOWN = 2


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU; the share is None where the driver does not tell it."""

    index: str
    gpu_kernel_busy: float | None


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One network interface or port; loopback is none."""

    name: str
    receive_bytes_per_s: float | None
    transmit_bytes_per_s: float | None


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the interval before one look. Each None has its sentence in `reasons`."""

    storage_read_bytes_per_s: float | None
    storage_read_source: str | None
    """Which counter tells it, with its layer and whose reads it includes."""
    storage_read_layer: Layer | None
    reads_per_s: float | None
    read_request_bytes: float | None
    """Mean over the interval."""
    read_latency_s: float | None
    """Mean over the interval, queueing included."""
    metadata_ops_per_s: float | None
    metadata_ops_source: str | None
    cache_served: float | None
    """1 - what storage delivered ÷ what was asked for; `cache_served_source` says by whom."""
    cache_served_source: str | None
    gpu_kernel_busy: float | None
    """Mean over the GPUs of the time with any kernel running; not accelerator utilisation."""
    gpus: tuple[Gpu, ...]
    cpu_busy: float | None
    receive_bytes_per_s: float | None
    """Of the busiest link, for the members of a bond and the bond count the same bytes."""
    receive_link: str | None
    links: tuple[Link, ...]
    processes: tuple[Reader, ...] | None
    """Those that asked for the most; page cache hits are in what they asked for."""
    unreadable_processes: int
    reasons: dict[str, str]


def view(look: Look, top: Top) -> View:
    """All numbers of one look."""
    reasons: dict[str, str] = {}

    def told(name: str, rate: Rate) -> float | None:
        if rate.value is None:
            reasons[name] = rate.reason or "not known"
        return rate.value

    storage = headline(pair.now for pair in look.pairs)
    bytes_per_s, reads_per_s, seconds_per_s = _storage(look, storage)
    metadata, metadata_source = _metadata(look)
    served, served_source = _cache_served(look, bytes_per_s)
    links = _links(look)
    busiest = _busiest(look, links)
    gpus = _gpus(look)
    if top.readers is None:
        reasons["processes"] = top.reason or "not known"
    return View(
        storage_read_bytes_per_s=told("storage_read_bytes_per_s", bytes_per_s),
        storage_read_source=None if storage is None else storage.name,
        storage_read_layer=None if storage is None else storage.layer,
        reads_per_s=told("reads_per_s", reads_per_s),
        read_request_bytes=told("read_request_bytes", _mean(bytes_per_s, reads_per_s)),
        read_latency_s=told("read_latency_s", _mean(seconds_per_s, reads_per_s)),
        metadata_ops_per_s=told("metadata_ops_per_s", metadata),
        metadata_ops_source=metadata_source,
        cache_served=told("cache_served", served),
        cache_served_source=served_source,
        gpu_kernel_busy=told("gpu_kernel_busy", _mean_busy(look, gpus)),
        gpus=gpus,
        cpu_busy=told("cpu_busy", _cpu_busy(look)),
        receive_bytes_per_s=told("receive_bytes_per_s", _received(look, busiest)),
        receive_link=None if busiest is None else busiest.name,
        links=links,
        processes=top.readers,
        unreadable_processes=top.unreadable,
        reasons=reasons,
    )


def _storage(look: Look, found: Candidate | None) -> tuple[Rate, Rate, Rate]:
    """Bytes, reads and seconds of reading, each per second, of the headline counter."""
    if found is None:
        unknown = Rate(value=None, reason=_why_no_storage(look))
        return unknown, unknown, unknown
    pairs = look.of(found.source, found.instances)
    bytes_per_s, reads_per_s, seconds_per_s = (
        total(pair.rate(name) for pair in pairs)
        for name in (found.counter, "read_operations_total", "read_time_seconds_total")
    )
    return bytes_per_s, reads_per_s, seconds_per_s


def _why_no_storage(look: Look) -> str:
    below = {
        fact.source
        for fact in FACTS
        if fact.layer is Layer.WIRE or (fact.layer is Layer.CLIENT and fact.scope is Scope.MOUNT)
    }
    reasons = [why for name, why in look.silent.items() if name.partition(" ")[0] in below]
    said = "; ".join(list(dict.fromkeys(reasons))[:_REASONS_SHOWN])
    return f"no counter here tells what storage delivers{': ' * bool(said)}{said}"


def _mean(of: Rate, by: Rate) -> Rate:
    if of.value is None or by.value is None:
        return Rate(value=None, reason=of.reason or by.reason)
    if not by.value:
        return Rate(value=None, reason="nothing was read in this interval")
    return Rate(value=of.value / by.value)


def _metadata(look: Look) -> tuple[Rate, str | None]:
    """Opens, stats, lookups and the like, by the source that includes the least of others' work."""
    pairs = _narrowest(look, lambda r: r.counters.get(_METADATA) is not None)
    if not pairs:
        reason = "no counter of this mount tells its metadata operations"
        return Rate(value=None, reason=reason), None
    return total(pair.rate(_METADATA) for pair in pairs), pairs[0].now.source


def _narrowest(look: Look, tells: Callable[[Reading], bool]) -> list[Pair]:
    """All instances of the source with the narrowest scope; none where no source tells."""
    found = [p for p in look.pairs if p.now.role in (None, Role.TOP) and tells(p.now)]
    if not found:
        return []
    first = min(found, key=lambda pair: _NARROW.index(pair.now.scope)).now
    return [pair for pair in found if pair.now.source == first.source]


def _cache_served(look: Look, storage: Rate) -> tuple[Rate, str | None]:
    requested, source = _requested(look)
    if storage.value is None or requested.value is None:
        return Rate(value=None, reason=requested.reason or storage.reason), source
    if not requested.value:
        return Rate(value=None, reason="nothing was asked for in this interval"), source
    if storage.value > requested.value:
        reason = (
            "storage delivered more than read() and its like asked for: read-ahead, mapped files, "
            "or others on the same device"
        )
        return Rate(value=None, reason=reason), source
    return Rate(value=1 - storage.value / requested.value), source


def _requested(look: Look) -> tuple[Rate, str | None]:
    """What was asked for: at the mount where its filesystem counts it, else by every process."""
    at_mount = [
        pair
        for pair in look.pairs
        if pair.now.layer is Layer.APP
        and pair.now.scope is Scope.MOUNT
        and pair.now.counters.get(_REQUESTED) is not None
    ]
    if at_mount:
        source = at_mount[0].now.source
        rates = (pair.rate(_REQUESTED) for pair in at_mount if pair.now.source == source)
        return total(rates), f"{source} (app, whole mount)"
    tree = look.of("process.io", ["tree"])
    if not tree:
        why = look.why_missing("process.io")
        return Rate(value=None, reason=f"what was asked for is not known: {why}"), None
    unreadable = tree[0].now.gauges.get("unreadable_processes")
    if unreadable:
        why = f"{unreadable} processes of other users may not be read"
        return Rate(value=None, reason=f"what was asked for is not known: {why}"), None
    # Pipes, sockets and other mounts are in what every process asked for.
    source = "process.io (app, whole node; rather too high)"
    return tree[0].rate(_REQUESTED), source


def _gpus(look: Look) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(index=pair.now.instance, gpu_kernel_busy=pair.now.gauges.get("gpu_kernel_busy"))
        for pair in look.pairs
        if pair.now.source == "nvml"
    )


def _mean_busy(look: Look, gpus: tuple[Gpu, ...]) -> Rate:
    if not gpus:
        return Rate(value=None, reason=look.why_missing("nvml"))
    busy = [gpu.gpu_kernel_busy for gpu in gpus if gpu.gpu_kernel_busy is not None]
    if len(busy) < len(gpus):
        return Rate(value=None, reason="the driver does not tell how busy each GPU is")
    return Rate(value=sum(busy) / len(busy))


def _cpu_busy(look: Look) -> Rate:
    cpus = look.of("cpu", ["cpus"])
    if not cpus:
        return Rate(value=None, reason=look.why_missing("cpu"))
    busy, every = (cpus[0].rate(f"{name}_seconds_total") for name in ("busy", "total"))
    if busy.value is None or not every.value:
        return Rate(value=None, reason=busy.reason or "the CPUs were looked at too often")
    return Rate(value=busy.value / every.value)


def _links(look: Look) -> tuple[Link, ...]:
    return tuple(
        Link(
            name=pair.now.instance,
            receive_bytes_per_s=pair.rate("receive_bytes_total").value,
            transmit_bytes_per_s=pair.rate("transmit_bytes_total").value,
        )
        for pair in look.pairs
        if pair.now.layer is Layer.LINK and pair.now.instance != _LOOPBACK
    )


def _busiest(look: Look, links: tuple[Link, ...]) -> Link | None:
    """The link that receives the most; while all rest, the one that has received the most."""
    ever = {p.now.instance: p.now.counters.get("receive_bytes_total") or 0 for p in look.pairs}
    return max(links, key=lambda k: (k.receive_bytes_per_s or 0.0, ever[k.name]), default=None)


def _received(look: Look, busiest: Link | None) -> Rate:
    if busiest is None:
        return Rate(value=None, reason=look.why_missing("net"))
    pairs = [p for p in look.pairs if p.now.layer is Layer.LINK and p.now.instance == busiest.name]
    return pairs[0].rate("receive_bytes_total")
