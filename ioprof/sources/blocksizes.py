"""Sizes of the read requests that block devices complete, one by one, by tracepoint.

`/proc/diskstats` tells reads and bytes, so a mean; here is the distribution. Devices that only hand
requests on (dm, md) make none of their own: then it is that of the disks they stand on.

Requests are counted as they complete, which is when diskstats counts them: a driver whose queue is
full is given the same request again and again, and a request may still grow after it was begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ioprof.record.reading import Layer, Reading, Role, Scope, Unavailable
from ioprof.record.sizes import names
from ioprof.sources.aside import Aside
from ioprof.sources.bpftrace import PAUSE_S, START_S, Bpftrace, Print, Why, script, usable
from ioprof.sources.source import BlockStack, Fact, Found, Roots, Target
from ioprof.sources.sysblock import SysBlock

_EVENT = "block/block_rq_complete"
_BUCKETS = 32
"""Keys of a map are one number: the buckets of the first device, then those of the next."""

FACTS: tuple[Fact, ...] = (
    Fact(
        source="block.sizes",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=names(),
        file="tracepoint block:block_rq_complete, summed by bpftrace",
        field="nr_sector of requests whose rwbs begins with R, by dev and the partition's sectors",
        unit="sectors of 512 bytes; requests by size",
        since="Linux 2.6.30, root, bpftrace",
        caveat="after merging, as completed; counted since the first look",
        check="bpftrace -e 'tracepoint:block:block_rq_complete "
        '/strncmp(args->rwbs, "R", 1) == 0/ { @[args->dev] = hist(args->nr_sector * 512); }\'',
    ),
    Fact(
        source="block.sizes",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=("lost_events",),
        file="bpftrace -f json",
        field="events of lost_events, added up",
        unit="messages",
        since="bpftrace 0.9",
        caveat="a look that was lost: the sums are kept in the kernel and lose nothing",
        check="bpftrace -f json -e 'interval:ms:100 { print(nsecs); }'",
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
    return [Aside(BlockSizes(found, spans, note=note), period_s=PAUSE_S, first_s=START_S)]


def spans_of(stack: BlockStack, *, roots: Roots) -> tuple[tuple[Span, ...], str | None]:
    """Whose requests are looked at, and a note where that is not the devices on top."""
    tops = [_span(name, roots) for name in stack.top]
    if tops and None not in tops:
        return tuple(filter(None, tops)), None
    # A top that makes requests beside one that makes none: the disks below have them all, once.
    leaves = [_span(d.name, roots) for d in stack.devices if d.role is Role.LEAF]
    if leaves and None not in leaves:
        return tuple(filter(None, leaves)), f"of the disks that {', '.join(stack.top)} stands on"
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
    """The bpftrace probe: requests are summed under their device's place in the list."""
    places = "\n".join(
        f"  if ({_inside(span)}) {{ $bucket = {place * _BUCKETS}; }}"
        for place, span in enumerate(spans)
    )
    return f"""
tracepoint:block:block_rq_complete /strncmp(args->rwbs, "R", 1) == 0/ {{
  $bucket = -1;
{places}
  if ($bucket >= 0) {{
    $sectors = args->nr_sector > 0 ? (uint64)args->nr_sector - 1 : 0;
    unroll(16) {{ if ($sectors > 0) {{ $bucket = $bucket + 1; $sectors = $sectors >> 1; }} }}
    @sizes[$bucket] = count();
  }}
}}"""


def _inside(span: Span) -> str:
    """Whether a request is the span's own: the disk's number, and a sector of the partition."""
    inside = f"args->dev == {span.number}"
    if span.end_sector is not None:
        inside += f" && args->sector >= {span.first_sector} && args->sector < {span.end_sector}"
    return inside


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
                gauges={"lost_events": made.lost_events},
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
        yield name, buckets.get(str(place * _BUCKETS + number), 0)
