"""What each counter of a Lustre client is, and what it silently gets wrong."""

from __future__ import annotations

from ioprof.record.reading import Layer, Scope
from ioprof.record.sizes import names
from ioprof.sources.lustrestats import (
    CACHE_GAUGES,
    app_counters,
    metadata_counters,
    parse_stats,
    readahead_counters,
    wire_counters,
)
from ioprof.sources.source import Fact

_SINCE = "2.10 to 2.17 read; newer ones let root alone read it"
_WHERE = "under /proc/fs/lustre or /sys/kernel/debug/lustre, else lctl get_param"
_LLITE = f"llite/FS-CLIENT/stats {_WHERE}"
_OSC = f"osc/FS-OST*-osc-CLIENT/stats {_WHERE}"
_LLITE_CHECK = "lctl get_param 'llite.*.stats'"
_AGE_FIELD = "elapsed_time, else snapshot_time - start_time"
_AGE_SINCE = "2.15; without it a clearing shows only as a fall"
_NONE = parse_stats(b"")
_FAULTS = ("page_fault_calls_total", "page_fault_time_seconds_total")

FACTS: tuple[Fact, ...] = (
    Fact(
        source="lustre.llite",
        layer=Layer.APP,
        scope=Scope.MOUNT,
        counters=tuple(name for name in app_counters(_NONE) if name not in _FAULTS),
        file=_LLITE,
        field="read_bytes, write_bytes: column 2 calls, column 7 bytes; read: column 7",
        unit="bytes, calls; µs, which 2.10 does not keep",
        since=_SINCE,
        caveat="what read() and write() asked for, cache hits in it; reads of mapped files are not",
        check=_LLITE_CHECK,
    ),
    Fact(
        source="lustre.llite",
        layer=Layer.APP,
        scope=Scope.MOUNT,
        counters=_FAULTS,
        file=_LLITE,
        field="page_fault: columns 2 and 7",
        unit="faults of mapped files; µs",
        since="2.10, times 2.15; from the first fault on",
        caveat="a fault reads ahead, so faults x 4 KiB is not bytes",
        check=_LLITE_CHECK,
    ),
    Fact(
        source="lustre.llite",
        layer=Layer.APP,
        scope=Scope.MOUNT,
        counters=("age_seconds",),
        file=_LLITE,
        field=_AGE_FIELD,
        unit="seconds since the mount, or since somebody cleared the file",
        since=_AGE_SINCE,
        caveat="whoever writes to the file clears it; nothing here does",
        check=_LLITE_CHECK,
    ),
    Fact(
        source="lustre.metadata",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=(*metadata_counters(_NONE), "age_seconds"),
        file=_LLITE,
        field="open, getattr, readdir: column 2, times column 7; metadata is their sum",
        unit="calls, µs; 2.10 has no times",
        since=_SINCE,
        caveat="what the client answered from its own cache is in it; readdir counts calls",
        check=_LLITE_CHECK,
    ),
    Fact(
        source="lustre.fastread",
        layer=Layer.CACHE,
        scope=Scope.MOUNT,
        counters=("cache_hit_bytes_total", "cache_hits_total"),
        file=_LLITE,
        field="cached_read_bytes: columns 7 and 2",
        unit="bytes, calls",
        since="2.17; from the first such read on",
        caveat="only calls that cached pages served without a lock: other hits are not in it",
        check=_LLITE_CHECK,
    ),
    Fact(
        source="lustre.osc",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=tuple(wire_counters(_NONE)),
        file=_OSC,
        field="read_bytes, write_bytes: columns 2 and 7; ost_read: column 7. One for each OST",
        unit="bytes, requests (RPCs), µs summed over requests",
        since=_SINCE,
        caveat="read-ahead is in it; what a server had cached is too; data kept on MDTs is not",
        check="lctl get_param 'osc.*.stats'",
    ),
    Fact(
        source="lustre.osc",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("age_seconds",),
        file=_OSC,
        field=_AGE_FIELD,
        unit="seconds since the mount, or since somebody cleared the file",
        since=_AGE_SINCE,
        caveat="whoever writes to the file clears it; nothing here does",
        check="lctl get_param 'osc.*.stats' | grep _time",
    ),
    Fact(
        source="lustre.rpcs",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=(*names(), "age_seconds"),
        file=f"osc/FS-OST*-osc-CLIENT/rpc_stats {_WHERE}",
        field="table 'pages per rpc', column of reads; rows are powers of two",
        unit="requests (RPCs) by pages of this machine",
        since=_SINCE,
        caveat="requests to servers, not the reads of processes; whole pages",
        check="lctl get_param 'osc.*.rpc_stats'",
    ),
    Fact(
        source="lustre.readahead",
        layer=Layer.CACHE,
        scope=Scope.MOUNT,
        counters=(*readahead_counters(_NONE), "age_seconds"),
        file=f"llite/FS-CLIENT/read_ahead_stats {_WHERE}",
        field="hits, misses: column 2; readahead_pages: column 7",
        unit="pages",
        since=_SINCE,
        caveat="a hit may still be on its way from the server; pages, not bytes asked for",
        check="lctl get_param 'llite.*.read_ahead_stats'",
    ),
    Fact(
        source="lustre.cache",
        layer=Layer.CACHE,
        scope=Scope.MOUNT,
        counters=CACHE_GAUGES,
        file=f"llite/FS-CLIENT/max_cached_mb {_WHERE}",
        field="used_mb and max_cached_mb",
        unit="MiB",
        since=_SINCE,
        caveat="what the client caches of this filesystem, whoever read it",
        check="lctl get_param 'llite.*.max_cached_mb'",
    ),
)
