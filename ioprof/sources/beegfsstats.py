"""What BeeGFS' servers count for each client, as the commands of versions 7 and 8 tell it.

Version 7 prints `ADDRESS  N [name]  N [name] …` and a line of sums, with amounts of data in six
digits: 1.07374e+10. Version 8 prints JSON, one client a line, names in lower case, numbers as
strings, an empty one for zero, and, where --raw is not heeded, amounts such as 10Gi: those are
None here. A client with several addresses has a row for each.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection, Mapping

from ioprof.record.reading import Number
from ioprof.sources.numeral import real, total, whole

_PAIR = re.compile(rb"(\S+)\s+\[([^\]\s]+)\]")
_LOOPBACK = "127."
_MIB = 1 << 20
# What is left out are rates, which a name ending in /s tells.
_UNITS: dict[str, tuple[str, int]] = {
    "B-rd": ("rd", 1),
    "MiB-rd": ("rd", _MIB),
    "B-wr": ("wr", 1),
    "MiB-wr": ("wr", _MIB),
}
_STORAGE: dict[str, tuple[str, ...]] = {
    "read_bytes_total": ("rd",),
    "read_operations_total": ("ops-rd",),
    "write_bytes_total": ("wr",),
    "write_operations_total": ("ops-wr",),
}
_METADATA: dict[str, tuple[str, ...]] = {
    "open_operations_total": ("open", "openli"),
    "getattr_operations_total": ("stat", "statli"),
    "lookup_operations_total": ("lookli", "revalli"),
    "readdir_operations_total": ("rddir",),
}
_COUNTERS: dict[str, dict[str, tuple[str, ...]]] = {
    "storage": _STORAGE,
    "meta": {
        **_METADATA,
        "metadata_operations_total": tuple(n for parts in _METADATA.values() for n in parts),
    },
}
_QUEUES: dict[str, str] = {
    "available_message_buffers": "numAvailableMsgBufs",
    "delayed_closes": "numDelayedClose",
    "delayed_entry_unlocks": "numDelayedEntryUnlock",
    "delayed_range_unlocks": "numDelayedRangeUnlock",
    "enqueued_acknowledgements": "numEnqueuedAcks",
    "flush_references": "numFlushRefs",
}

Row = dict[str, Number | None]
"""Numbers of one client by the servers' names in lower case; amounts in bytes, as "rd" and "wr"."""


def parse_v7(text: bytes) -> dict[str, Row]:
    """Rows by address of `beegfs-ctl --clientstats`; the line of sums and others are left out."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        words = line.split(None, 1)
        client = words[0].decode(errors="replace") if len(words) == 2 else ""
        if _is_address(client):
            rows.setdefault(client, _row_v7(words[1]))
    return rows


def _row_v7(text: bytes) -> Row:
    row: Row = {}
    for number, name in _PAIR.findall(text):
        word = name.decode(errors="replace")
        if word in _UNITS:
            key, unit = _UNITS[word]
            amount = real(number)
            row.setdefault(key, None if amount is None else amount * unit)
        else:
            row.setdefault(word.lower(), whole(number))
    return row


def parse_v8(text: bytes) -> dict[str, Row]:
    """Rows by address of `beegfs stats client --raw --output ndjson`; banners are left out."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        client = found.get("client") if isinstance(found, dict) else None
        if isinstance(client, str) and _is_address(client):
            row: Row = {name.lower(): _number_v8(value) for name, value in found.items()}
            rows.setdefault(client, row)
    return rows


def _number_v8(value: object) -> int | None:
    if value == "":
        return 0
    return whole(value.encode(errors="replace")) if isinstance(value, str) else None


def _is_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word)
    except ValueError:
        return False
    return True


def counters(
    kind: str, rows: Mapping[str, Row], *, addresses: Collection[str]
) -> dict[str, Number | None]:
    """One host's counters, all its addresses together, of servers of a kind: "storage" or "meta".

    All None where it has no row: its servers may have forgotten it, or never have seen it.
    """
    own = [row for address, row in rows.items() if address in addresses]
    return {
        name: total(row[part] for row in own for part in parts if part in row)
        for name, parts in _COUNTERS[kind].items()
    }


def names(kind: str) -> tuple[str, ...]:
    """The counters of a kind of servers."""
    return tuple(_COUNTERS[kind])


def local_addresses(fib_trie: str, if_inet6: str = "") -> frozenset[str]:
    """This host's own addresses but loopback, from /proc/net/fib_trie and /proc/net/if_inet6."""
    found: set[str] = set()
    address = ""
    for line in fib_trie.splitlines():
        words = line.split()
        if words[:1] == ["|--"] and len(words) == 2:
            address = words[1]
        elif words == ["/32", "host", "LOCAL"] and not address.startswith(_LOOPBACK):
            found.add(address)
    for line in if_inet6.splitlines():
        digits = line.partition(" ")[0]
        if re.fullmatch("[0-9a-f]{32}", digits):
            own = ipaddress.IPv6Address(int(digits, 16))
            if not own.is_loopback:
                found.add(str(own))
    return frozenset(found)


def parse_queues(text: bytes) -> dict[str, Number | None]:
    """Gauges of the client's own queues, from its file of status."""
    values: dict[str, int | None] = {}
    for line in text.splitlines():
        name, colon, number = line.partition(b":")
        if colon:
            values.setdefault(name.strip().decode(errors="replace"), whole(number.strip()))
    return {ours: values.get(theirs) for ours, theirs in _QUEUES.items()}
