"""Sizes of the read requests that block devices are given, one by one, by tracepoint.

`/proc/diskstats` tells reads and bytes, so a mean; here is the distribution. Devices that only hand
requests on (dm, md) make none of their own: then it is that of the devices they stand on.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ioprof.record.reading import Layer, Reading, Role, Scope, Unavailable
from ioprof.record.sizes import names
from ioprof.sources.aside import Aside
from ioprof.sources.bpftrace import Bpftrace, Print, Why, script, usable
from ioprof.sources.source import BlockStack, Fact, Found, Roots, Target
from ioprof.sources.sysblock import SysBlock

_EVENT = "block/block_rq_issue"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="block.sizes",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=names(),
        file="tracepoint block:block_rq_issue, summed by bpftrace",
        field="bytes of requests whose rwbs begins with R, by dev, within the partition's sectors",
        unit="requests by size",
        since="Linux 2.6.30, root, bpftrace",
        caveat="as given to the driver, after merging; a request that is given again counts again",
        check="bpftrace -e 'tracepoint:block:block_rq_issue "
        '/strncmp(args->rwbs, "R", 1) == 0/ { @[args->dev] = hist(args->bytes); }\'',
    ),
)


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Where a device's requests are found: a whole disk, or sectors of one."""

    name: str
    number: int
    """The disk's, as the kernel packs it: major << 20 | minor."""
    first_sector: int = 0
    end_sector: int | None = None


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source for the target's devices, or why their requests cannot be looked at here."""
    stack = target.stack
    if stack is None or not stack.devices:
        return []
    found = usable(_EVENT, since="a kernel with block tracepoints", roots=roots)
    if isinstance(found, Why):
        return [Unavailable(source="block.sizes", reason=found.reason, remedy=found.remedy)]
    spans, note = spans_of(stack, roots=roots)
    if not spans:
        why = f"{', '.join(stack.top)} makes no requests that a tracepoint shows"
        return [Unavailable(source="block.sizes", reason=why)]
    return [Aside(BlockSizes(found, spans, note=note), period_s=0.0, first_s=15.0)]


def spans_of(stack: BlockStack, *, roots: Roots) -> tuple[tuple[Span, ...], str | None]:
    """Whose requests are looked at: the devices on top, or those below that make requests."""
    for role in (Role.TOP, Role.MIDDLE, Role.LEAF):
        devices = [device.name for device in stack.devices if device.role is role]
        spans = [span for name in devices if (span := _span(name, roots)) is not None]
        if devices and len(spans) == len(devices):
            below = role is not Role.TOP
            on = f"of the devices that {', '.join(stack.top)} stands on" if below else None
            return tuple(spans), on
    return (), None


def _span(name: str, roots: Roots) -> Span | None:
    """None for a device without a request queue of its own, and for one that is not there."""
    block = SysBlock(roots)
    disk = block.disk(name)
    number = block.attribute(disk, "dev")
    if number is None or not (roots.sys / "block" / disk / "mq").is_dir():
        return None
    major, _, minor = number.partition(":")
    packed = int(major) << 20 | int(minor)
    if disk == name:
        return Span(name=name, number=packed)
    start, size = block.attribute(name, "start"), block.attribute(name, "size")
    if start is None or size is None:
        return None
    end = int(start) + int(size)
    return Span(name=name, number=packed, first_sector=int(start), end_sector=end)


def probes(spans: Iterable[Span]) -> str:
    """One probe for each device: its requests are summed under its place in the list."""
    return "\n".join(_probe(place, span) for place, span in enumerate(spans))


def _probe(place: int, span: Span) -> str:
    inside = f"args->dev == {span.number}"
    if span.end_sector is not None:
        inside += f" && args->sector >= {span.first_sector} && args->sector < {span.end_sector}"
    # Keys are one number: 32 buckets for each device.
    return f"""
tracepoint:block:block_rq_issue /{inside} && strncmp(args->rwbs, "R", 1) == 0/ {{
  $sectors = args->bytes > 0 ? ((uint64)args->bytes - 1) >> 9 : 0;
  $bucket = {place * _BUCKETS};
  unroll(16) {{ if ($sectors > 0) {{ $bucket = $bucket + 1; $sectors = $sectors >> 1; }} }}
  @sizes[$bucket] = count();
}}"""


_BUCKETS = 32


class BlockSizes:
    """Readings "block.sizes", one for each device."""

    name = "block.sizes"
    every_ticks = 1

    def __init__(self, program: Path, spans: tuple[Span, ...], *, note: str | None) -> None:
        self._spans = spans
        self._note = note
        self._bpftrace = Bpftrace(program, script(probes(spans), "sizes"))

    def read(self) -> Iterable[Reading]:
        """The counts as of the next print."""
        made = self._bpftrace.look()
        for place, span in enumerate(self._spans):
            yield Reading(
                source="block.sizes",
                instance=span.name,
                layer=Layer.WIRE,
                scope=Scope.DEVICE,
                counters=dict(counts(made, place=place)),
                note=self._note,
                t_s=made.t_s,
            )

    def close(self) -> None:
        """End the tracing program."""
        self._bpftrace.close()


def counts(made: Print, *, place: int) -> Iterable[tuple[str, int]]:
    """Reads by size of the device at `place`."""
    buckets = made.maps.get("@sizes", {})
    for number, name in enumerate(names()):
        yield name, buckets.get(place * _BUCKETS + number, 0)
