"""SMB: what the server of a share delivered, from /proc/fs/cifs/Stats."""

from __future__ import annotations

from collections.abc import Iterable

from ioprof.record.dataset import Mount
from ioprof.record.reading import Layer, Reading, Scope, Unavailable
from ioprof.sources.cifsstats import Share, parse, same_share, server_counters, share_counters
from ioprof.sources.procfile import ProcFile, why
from ioprof.sources.source import Fact, Found, Roots, Target

_FILESYSTEMS = ("cifs", "smb3")
_FILE = "/proc/fs/cifs/Stats, below the share's name"
_CHECK = r"grep -iA20 '\\\\SERVER\\SHARE' /proc/fs/cifs/Stats"

FACTS: tuple[Fact, ...] = (
    Fact(
        source="cifs",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=("read_bytes_total", "write_bytes_total"),
        file=_FILE,
        field="Bytes read, Bytes written; SMB 1: Bytes after Reads and after Writes",
        unit="bytes of file data, 64 bits",
        since="SMB 2 and 3: about Linux 4.19; SMB 1: all",
        caveat="all mounts of the share; page cache hits are not in it; a write to the file clears "
        "it, for all shares",
        check=f"{_CHECK} | grep Bytes",
    ),
    Fact(
        source="cifs",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=(
            "read_operations_total", "write_operations_total", "read_errors_operations_total",
        ),
        file=_FILE,
        field="Reads and Writes: the number before total (older: sent); Reads: that before failed",
        unit="requests, 32 bits, printed with a sign",
        since="all; SMB 1 tells no failed ones",
        caveat="wraps at 4,294,967,296; printed below zero from 2,147,483,648 on, given unsigned",
        check=f"{_CHECK} | grep -E 'Reads|Writes'",
    ),
    Fact(
        source="cifs",
        layer=Layer.WIRE,
        scope=Scope.MOUNT,
        counters=(
            "open_operations_total", "readdir_operations_total", "getattr_operations_total",
            "metadata_operations_total",
        ),
        file=_FILE,
        field="Creates; QueryDirectories; QueryInfos; SMB 1: Opens, Posix Opens; FindFirst, FNext",
        unit="requests, 32 bits, printed with a sign",
        since="all; SMB 1 counts no queries of files",
        caveat="metadata is these added up; opening to look at a file is a create too; no closes",
        check=f"{_CHECK} | grep -E 'Creates|Query'",
    ),
    Fact(
        source="cifs.server",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=(
            "read_operations_total", "read_time_seconds_total",
            "metadata_operations_total", "metadata_time_seconds_total",
        ),
        file="/proc/fs/cifs/Stats, the table above the server's shares",
        field="rows 8 (read); 5, 14, 16 (create, query directory, query info): Number, Total Time",
        unit="requests, 32 bits; jiffies, as many a second as the table says",
        since="about Linux 4.20, built with CONFIG_CIFS_STATS2; SMB 2 and 3",
        caveat="all shares of the server; whole jiffies each, so short ones are 0; of several "
        "channels the first alone",
        check="grep -A25 'Total time' /proc/fs/cifs/Stats",
    ),
)  # fmt: skip


def find(target: Target, *, roots: Roots = Roots()) -> list[Found]:
    """The source of the target's share, or why it cannot be read; nothing when not SMB."""
    mount = target.mount
    if mount is None or mount.filesystem not in _FILESYSTEMS:
        return []
    path = roots.proc / "fs" / "cifs" / "Stats"
    try:
        file = ProcFile(path)
    except OSError as error:
        return [Unavailable(source="cifs", reason=f"{path} cannot be read: {why(error)}")]
    try:
        shares = parse(file.read_to_end())
    except OSError as error:
        file.close()
        return [Unavailable(source="cifs", reason=f"{path} cannot be read: {why(error)}")]
    wanted = same_share(mount.source)
    count = len(_of(shares, wanted))
    if not count:
        file.close()
        return [_missing(mount, shares, path=str(path))]
    note = f"the share is listed {count} times (by user): all are added up" if count > 1 else None
    return [CifsSource(file, share=wanted, mount_path=mount.path, note=note)]


def _of(shares: list[Share], wanted: str) -> list[Share]:
    return [share for share in shares if same_share(share.name) == wanted]


def _missing(mount: Mount, shares: list[Share], *, path: str) -> Unavailable:
    names = sorted({share.name for share in shares})
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return Unavailable(
        source="cifs",
        reason=f"{path} has no share {mount.source}; it lists {listed or 'none'}",
        remedy="a path of DFS is listed under the server behind it: mount that server's share",
    )


class CifsSource:
    """Reading "cifs" of one share, and "cifs.server" where the kernel keeps times."""

    name = "cifs"
    every_ticks = 1

    def __init__(
        self, file: ProcFile, *, share: str, mount_path: str, note: str | None = None
    ) -> None:
        self._file = file
        self._share = share
        self._mount_path = mount_path
        self._note = note

    def read(self) -> Iterable[Reading]:
        """One look; none while the share is not mounted."""
        shares = _of(parse(self._file.read_to_end()), self._share)
        if not shares:
            return
        yield Reading(
            source="cifs",
            instance=self._mount_path,
            layer=Layer.WIRE,
            scope=Scope.MOUNT,
            counters=share_counters(shares),
            note=self._note,
        )
        times = server_counters(shares)
        if times is not None:
            yield Reading(
                source="cifs.server",
                instance=self._share.strip("\\").partition("\\")[0],
                layer=Layer.WIRE,
                scope=Scope.DEVICE,
                counters=times,
            )

    def close(self) -> None:
        """Close /proc/fs/cifs/Stats."""
        self._file.close()
