"""The two texts in which GlusterFS tells its counters: a volume's profile, and a client's dump.

Both sort requests by size, rounded down to a power of two. Mean latencies are since the beginning,
and their unit differs between releases: of the profile the text form names it (`us`, and `ns` in
10), and the dump of 10 names the wrong one, so no time is taken from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

import msgspec

from ioprof.record.reading import Number
from ioprof.record.sizes import bucket, names
from ioprof.sources.numeral import real, total, whole

_OPERATIONS: dict[str, tuple[str, ...]] = {
    "read_operations_total": ("READ",),
    "write_operations_total": ("WRITE",),
    "open_operations_total": ("OPEN",),
    "lookup_operations_total": ("LOOKUP",),
    "getattr_operations_total": ("STAT", "FSTAT"),
    "readdir_operations_total": ("OPENDIR", "READDIR", "READDIRP"),
}
_METADATA = ("LOOKUP", "STAT", "FSTAT", "OPEN", "OPENDIR", "READDIR", "READDIRP")
_MEANS: dict[str, str] = {"read_mean": "READ", "write_mean": "WRITE"}
_UNIT = re.compile(rb"[0-9]\.[0-9]{2} (ns|us)\b")
_UNIT_SECONDS = {b"ns": 1e-9, b"us": 1e-6}
_SECTION = b"=== Cumulative stats ==="
_BLOCK_SIZE = re.compile(rb"([0-9]+)B\+")


class ProfileOffError(ValueError):
    """The volume's profile has an error instead of counters; its text is gluster's own."""


class Volume(msgspec.Struct, frozen=True, kw_only=True):
    """All bricks of a volume added up."""

    bricks: int
    counters: dict[str, Number | None]
    means: dict[str, Number | None]
    """Lifetime means by "read_mean" and "write_mean", over all bricks; their unit is not told."""
    age_s: Number | None
    """Since the youngest brick began to count."""


class Dump(msgspec.Struct, frozen=True, kw_only=True):
    """What one client has done since it was mounted."""

    counters: dict[str, Number | None]
    age_s: Number | None


def parse_profile(text: bytes) -> Volume:
    """`gluster volume profile VOL info cumulative --xml`.

    ProfileOffError when it tells an error, ValueError when it is no such XML.
    """
    try:
        top = ElementTree.fromstring(text)
    except (ElementTree.ParseError, LookupError) as error:
        # LookupError: an encoding that nobody knows.
        raise ValueError(f"no XML: {error}") from None
    if (top.findtext("opRet") or "0").strip() != "0":
        raise ProfileOffError((top.findtext("opErrstr") or "an error without words").strip())
    bricks = top.findall("./volProfile/brick/cumulativeStats")
    if not bricks:
        raise ProfileOffError("the answer has no brick with cumulative statistics")
    hits = _Hits(bricks)
    ages = [_number(brick, "duration") for brick in bricks]
    known_ages = [age for age in ages if age is not None]
    counters: dict[str, Number | None] = {
        "read_bytes_total": total(_number(brick, "totalRead") for brick in bricks),
        "write_bytes_total": total(_number(brick, "totalWrite") for brick in bricks),
    }
    counters.update((name, hits.total(fops)) for name, fops in _OPERATIONS.items())
    counters["metadata_operations_total"] = hits.total(_METADATA)
    counters.update(_sizes(_brick_sizes(bricks)))
    return Volume(
        bricks=len(bricks),
        counters=counters,
        means={name: hits.mean(fop) for name, fop in _MEANS.items()},
        age_s=min(known_ages) if known_ages else None,
    )


class _Hits:
    """Calls and mean latencies by operation, of all bricks."""

    def __init__(self, bricks: list[ElementTree.Element]) -> None:
        self._calls: dict[str, list[tuple[int | None, Number | None]]] = {}
        for fop in (fop for brick in bricks for fop in brick.findall("./fopStats/fop")):
            mean = real((fop.findtext("avgLatency") or "").strip().encode())
            name = (fop.findtext("name") or "").strip()
            self._calls.setdefault(name, []).append((_number(fop, "hits"), mean))

    def total(self, fops: Iterable[str]) -> Number | None:
        """Of those that are listed; an operation is, from its first call on."""
        return total(calls for fop in fops for calls, _ in self._calls.get(fop, []))

    def mean(self, fop: str) -> float | None:
        """Over all calls; None without any."""
        known = [(n, mean) for n, mean in self._calls.get(fop, []) if n and mean is not None]
        calls = sum(n for n, _ in known)
        return sum(n * mean for n, mean in known) / calls if calls else None


def _number(element: ElementTree.Element, name: str) -> int | None:
    return whole((element.findtext(name) or "").strip().encode())


def _brick_sizes(bricks: list[ElementTree.Element]) -> list[tuple[int, int]] | None:
    found: list[tuple[int, int]] = []
    for brick in bricks:
        if brick.find("blockStats") is None:
            return None
        for block in brick.findall("./blockStats/block"):
            size, reads = _number(block, "size"), _number(block, "reads")
            if size is None or reads is None:
                return None
            found.append((size, reads))
    return found


def _sizes(found: Iterable[tuple[int, int]] | None) -> dict[str, Number | None]:
    """Reads by size; all None when a part is missing."""
    if found is None:
        return dict.fromkeys(names())
    sizes: dict[str, Number | None] = dict.fromkeys(names(), 0)
    for size, reads in found:
        name = bucket(size)
        sizes[name] = (sizes[name] or 0) + reads
    return sizes


def unit_seconds(text: bytes) -> float | None:
    """The unit of the profile's latencies, from its text form; None where it names none."""
    units = {found[1] for found in _UNIT.finditer(text)}
    return _UNIT_SECONDS[units.pop()] if len(units) == 1 else None


def parse_dump(text: bytes) -> Dump:
    """A client's dump: the cumulative part alone, not its intervals. ValueError without one."""
    _, section, rest = text.partition(_SECTION)
    if not section:
        raise ValueError("no cumulative statistics in the dump")
    lines = rest.split(b"\n=== ")[0].splitlines()
    values: dict[bytes, bytes] = {}
    calls: dict[str, int | None] = {}
    sizes: list[tuple[int, int]] | None = []
    edges: list[int] = []
    in_table = False
    for line in lines:
        key, colon, value = (part.strip() for part in line.partition(b":"))
        words = line.split()
        if colon and key == b"Block Size":
            edges = [int(edge) for edge in _BLOCK_SIZE.findall(value) if len(edge) < 20]
        elif colon and key == b"Read Count":
            sizes = _row(sizes, edges, value.split())
        elif colon:
            values.setdefault(key, value)
        elif words[:1] == [b"Fop"]:
            in_table = True
        elif words and words[0].startswith(b"------"):
            in_table = False
        elif in_table and len(words) > 2 and words[0].isalpha():
            calls[words[0].decode(errors="replace")] = whole(words[1])
    return Dump(
        counters={
            "read_bytes_total": whole(values.get(b"BytesRead", b"")),
            "write_bytes_total": whole(values.get(b"BytesWritten", b"")),
            **{name: _called(calls, fops) for name, fops in _OPERATIONS.items()},
            "metadata_operations_total": _called(calls, _METADATA),
            **_sizes(sizes or None),
        },
        age_s=_first_number(values.get(b"Duration", b"")),
    )


def _row(
    sizes: list[tuple[int, int]] | None, edges: list[int], words: list[bytes]
) -> list[tuple[int, int]] | None:
    counts = [whole(word) for word in words]
    known = [count for count in counts if count is not None]
    if sizes is None or not edges or len(known) != len(edges) or len(known) != len(counts):
        return None
    return [*sizes, *zip(edges, known, strict=True)]


def _called(calls: dict[str, int | None], fops: Iterable[str]) -> Number | None:
    return total(calls[fop] for fop in fops if fop in calls)


def _first_number(text: bytes) -> int | None:
    words = text.split()
    return whole(words[0]) if words else None
