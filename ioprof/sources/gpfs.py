"""GPFS / Spectrum Scale: what this node's processes read of one filesystem, told by `mmpmon`.

An answer has one line a filesystem, of pairs `_key_ value`. A value may be missing, so the words
are told apart by the keys and never counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Number, Reading, Scope, Unavailable
from ioprof.sources.aside import Aside
from ioprof.sources.numeral import total, whole
from ioprof.sources.procfile import why
from ioprof.sources.program import ProgramError, ask, locate
from ioprof.sources.source import Fact, Found, Roots, Target

# A new mmpmon for each look: the daemon serves only a few at a time, and one kept open would take
# a place from others for as long as we record. At one look a second its start is cheap.
_PERIOD_S = 1.0
_PLACES = ("/usr/lpp/mmfs/bin",)
_REQUEST = b"fs_io_s\n"
_LINE = b"_fs_io_s_"
_KEYS = frozenset(
    b"_n_ _nn_ _rc_ _t_ _tu_ _cl_ _fs_ _d_ _br_ _bw_ _oc_ _cc_ _rdc_ _wc_ _dir_ _iu_".split()
)
_COUNTERS: dict[str, bytes] = {
    "read_bytes_total": b"_br_",
    "write_bytes_total": b"_bw_",
    "read_operations_total": b"_rdc_",
    "write_operations_total": b"_wc_",
    "open_operations_total": b"_oc_",
    "readdir_operations_total": b"_dir_",
}
_METADATA = (b"_oc_", b"_dir_")
_REMEDY = (
    "run ioprof as root on a node whose GPFS daemon is active, with mmpmon in /usr/lpp/mmfs/bin"
)

_FILE = "mmpmon -p -s, asked fs_io_s"
_SINCE = "every GPFS and Spectrum Scale; root"
_CHECK = "echo fs_io_s | /usr/lpp/mmfs/bin/mmpmon -p -s"
_CAVEAT = "what processes of this node asked for, hits of the pagepool in it; a reset begins anew"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="gpfs",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("read_bytes_total", "write_bytes_total"),
        file=_FILE,
        field="_br_ and _bw_ of the line whose _fs_ is the mount's",
        unit="bytes since the daemon started",
        since=_SINCE,
        caveat=_CAVEAT,
        check=_CHECK,
    ),
    Fact(
        source="gpfs",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=("read_operations_total", "write_operations_total"),
        file=_FILE,
        field="_rdc_ and _wc_",
        unit="requests of processes; their times are not kept",
        since=_SINCE,
        caveat=_CAVEAT,
        check=_CHECK,
    ),
    Fact(
        source="gpfs",
        layer=Layer.CLIENT,
        scope=Scope.MOUNT,
        counters=(
            "open_operations_total", "readdir_operations_total", "metadata_operations_total",
        ),
        file=_FILE,
        field="_oc_ and _dir_; metadata is their sum",
        unit="calls",
        since=_SINCE,
        caveat="look-ups and reads of attributes are not counted; closes are, and left out here",
        check=_CHECK,
    ),
)  # fmt: skip


def parse(text: bytes) -> dict[bytes, dict[bytes, bytes]]:
    """Pairs by filesystem of an answer to `fs_io_s`.

    Lines of failure (`_rc_` is not 0) and of other answers are left out, and so is a filesystem
    that has two lines: nothing tells which is meant.
    """
    found: dict[bytes, dict[bytes, bytes]] = {}
    twice: set[bytes] = set()
    for line in text.splitlines():
        words = line.split()
        if words[:1] != [_LINE]:
            continue
        pairs = _pairs(words[1:])
        name = pairs.get(b"_fs_")
        if pairs.get(b"_rc_") != b"0" or not name:
            continue
        if name in found:
            twice.add(name)
        found[name] = pairs
    return {name: pairs for name, pairs in found.items() if name not in twice}


def _pairs(words: list[bytes]) -> dict[bytes, bytes]:
    """Values by key; a key that another one follows has none."""
    pairs: dict[bytes, bytes] = {}
    key: bytes | None = None
    for word in words:
        if word in _KEYS:
            key = word
        elif key is not None:
            pairs.setdefault(key, word)
            key = None
    return pairs


def counters(pairs: Mapping[bytes, bytes]) -> dict[str, Number | None]:
    """One filesystem's counters by our names; None for a key without a number."""
    found: dict[str, Number | None] = {
        name: whole(pairs.get(key, b"")) for name, key in _COUNTERS.items()
    }
    found["metadata_operations_total"] = total(whole(pairs.get(key, b"")) for key in _METADATA)
    return found


def filesystem_of(mount: Mount) -> bytes:
    """The filesystem's name: a mount's source is that, or, older, a device under /dev."""
    return mount.source.removeprefix("/dev/").encode(errors="surrogateescape")


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source of the target's mount, or why mmpmon does not tell it; nothing when not GPFS."""
    mount = target.mount
    if mount is None or mount.filesystem != "gpfs":
        return []
    program = locate("mmpmon", places=_PLACES, roots=roots)
    if program is None:
        return [_unavailable("the command mmpmon is not on this node")]
    try:
        found = parse(_ask(program))
    except ProgramError as error:
        return [_unavailable(why(error))]
    name = filesystem_of(mount)
    if name not in found:
        listed = b", ".join(sorted(found)).decode(errors="replace") or "none"
        wanted = name.decode(errors="replace")
        return [_unavailable(f"mmpmon tells the filesystems {listed}, and {wanted} is not there")]
    return [Aside(GpfsSource(program, mount), period_s=_PERIOD_S)]


def _unavailable(reason: str) -> Unavailable:
    return Unavailable(source="gpfs", reason=reason, remedy=_REMEDY)


def _ask(program: Path) -> bytes:
    # -p: one line with keys for each answer; -s: no prompt between them.
    return ask([str(program), "-p", "-s"], given=_REQUEST)


class GpfsSource:
    """Reading "gpfs" of one mount."""

    name = "gpfs"
    every_ticks = 1

    def __init__(self, program: Path, mount: Mount) -> None:
        self._program = program
        self._mount_path = mount.path
        self._filesystem = filesystem_of(mount)

    def read(self) -> Iterable[Reading]:
        """One look; none when the filesystem is mounted no more."""
        pairs = parse(_ask(self._program)).get(self._filesystem)
        if pairs is not None:
            yield Reading(
                source="gpfs",
                instance=self._mount_path,
                layer=Layer.CLIENT,
                scope=Scope.MOUNT,
                counters=counters(pairs),
            )

    def close(self) -> None:
        """Nothing is kept open."""
