"""What the SMB client prints in /proc/fs/cifs/Stats: for each server its shares, one after another.

Most counts are signed numbers of 32 bits, so that a busy share's go below zero; they are handed on
as the unsigned numbers they are in memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ioprof.record.reading import Number
from ioprof.sources.numeral import total

Counters = dict[str, Number | None]

_SERVER = b"Max requests in flight:"
_SHARE = re.compile(rb"\d+\) ([\\/]{2}[^\t\n]+)")
_ROW = re.compile(rb"(\w+): +(-?\d+) (?:total|sent) +(-?\d+) failed")
_BYTES = re.compile(rb"Bytes read: +(\d+) +Bytes written: +(\d+)")
_ROW_1 = re.compile(rb"(Reads|Writes): +(-?\d+) Bytes: +(\d+)")
_COUNTS_1 = re.compile(rb"(Posix Opens|Opens|FindFirst|FNext):? +(-?\d+)")
_JIFFIES = re.compile(rb"Total time spent processing by command\..*\((\d+) per second\)")
_TIME = re.compile(rb" +(\d+)\s+(-?\d+)\s+(\d+)\s+\d+\s+\d+\s*")
_COUNTS_LIMIT, _LIMIT = 2**32, 2**63
_OPENS = (b"Creates", b"Opens", b"Posix Opens")
_LISTINGS = (b"QueryDirectories", b"FindFirst", b"FNext")
_LOOKS = (b"QueryInfos",)
_READ = (8,)
_METADATA = (5, 14, 16)
"""Commands of SMB 2 and 3: create, query directory, query info."""


class Server(msgspec.Struct, kw_only=True):
    """What one connection to a server took for its commands; empty without CONFIG_CIFS_STATS2."""

    jiffies_per_s: int | None = None
    commands: dict[int, tuple[int, int]] = {}
    """How many, and how many jiffies, by number of the command."""


class Share(msgspec.Struct, kw_only=True):
    r"""One share of one session; a share mounted by two users is there twice."""

    name: str
    r"""As printed: `\\server\share`."""
    server: Server
    bytes_read: int | None = None
    bytes_written: int | None = None
    counts: dict[bytes, int] = {}
    failed: dict[bytes, int] = {}


def parse(text: bytes) -> list[Share]:
    """All shares in their order. Lines that we do not know are passed over."""
    shares: list[Share] = []
    server = Server()
    share: Share | None = None
    for line in text.split(b"\n"):
        if line.startswith(_SERVER):
            server, share = Server(), None
        elif match := _SHARE.match(line):
            name = match[1].decode(errors="replace").rstrip()
            share = Share(name=name, server=server)
            shares.append(share)
        elif share is not None:
            _take(share, line)
        elif match := _JIFFIES.match(line):
            server.jiffies_per_s = _number(match[1]) or None
        elif match := _TIME.fullmatch(line):
            _take_time(server, match)
    return shares


def _take(share: Share, line: bytes) -> None:
    """One line of a share, of SMB 2 and 3 or of SMB 1."""
    if match := _ROW.match(line):
        share.counts[match[1]] = _count(match[2])
        share.failed[match[1]] = _count(match[3])
    elif match := _BYTES.match(line):
        share.bytes_read, share.bytes_written = _number(match[1]), _number(match[2])
    elif match := _ROW_1.match(line):
        share.counts[match[1]] = _count(match[2])
        if match[1] == b"Reads":
            share.bytes_read = _number(match[3])
        else:
            share.bytes_written = _number(match[3])
    else:
        for key, value in _COUNTS_1.findall(line):
            share.counts[key] = _count(value)


def _take_time(server: Server, match: re.Match[bytes]) -> None:
    command, jiffies = _number(match[1]), _number(match[3])
    if command is not None and jiffies is not None:
        server.commands[command] = (_count(match[2]), jiffies)


def same_share(name: str) -> str:
    r"""A share's name to compare: `\\server\share` of `//Server/Share/folder`, in small letters."""
    parts = [part for part in name.replace("/", "\\").split("\\") if part]
    return "\\\\" + "\\".join(parts[:2]).lower()


def share_counters(shares: Sequence[Share]) -> Counters:
    """What came over the wire for these, added up; None for what this version does not count."""
    opens = _over(shares, _OPENS)
    listings = _over(shares, _LISTINGS)
    looks = _over(shares, _LOOKS)
    known = [n for n in (opens, listings, looks) if n is not None]
    return {
        "read_bytes_total": total([share.bytes_read for share in shares]),
        "write_bytes_total": total([share.bytes_written for share in shares]),
        "read_operations_total": _over(shares, (b"Reads",)),
        "write_operations_total": _over(shares, (b"Writes",)),
        "read_errors_operations_total": total([share.failed.get(b"Reads") for share in shares]),
        "metadata_operations_total": total(known),
        "open_operations_total": opens,
        "readdir_operations_total": listings,
        "getattr_operations_total": looks,
    }


def server_counters(shares: Sequence[Share]) -> Counters | None:
    """What the connections of these shares took; None where the kernel does not tell."""
    servers = list({id(share.server): share.server for share in shares}.values())
    if not servers or any(one.jiffies_per_s is None or not one.commands for one in servers):
        return None
    counters: Counters = {}
    for kind, commands in (("read", _READ), ("metadata", _METADATA)):
        told = [[one.commands.get(number) for number in commands] for one in servers]
        counters[f"{kind}_operations_total"] = total(
            [None if pair is None else pair[0] for pairs in told for pair in pairs]
        )
        counters[f"{kind}_time_seconds_total"] = _seconds(servers, told)
    return counters


def _seconds(servers: list[Server], told: list[list[tuple[int, int] | None]]) -> float | None:
    seconds = 0.0
    for one, pairs in zip(servers, told, strict=True):
        jiffies = total([None if pair is None else pair[1] for pair in pairs])
        if jiffies is None or one.jiffies_per_s is None:
            return None
        seconds += jiffies / one.jiffies_per_s
    return seconds


def _over(shares: Sequence[Share], keys: tuple[bytes, ...]) -> Number | None:
    """The sum over those keys that this version prints; None when it prints none of them."""
    return total([share.counts[key] for share in shares for key in keys if key in share.counts])


def _count(word: bytes) -> int:
    return int(word[:20]) % _COUNTS_LIMIT


def _number(word: bytes) -> int | None:
    value = int(word) if len(word) < 20 else _LIMIT
    return value if value < _LIMIT else None
