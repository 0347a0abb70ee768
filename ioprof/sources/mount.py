"""Which mount holds a path: by mount id, as the kernel itself says.

`st_dev` is no guide: btrfs and overlay show files under device numbers that no mount has. An
O_PATH descriptor's `/proc/self/fdinfo` names the mount id, which is field 1 of mountinfo; it needs
no privilege and follows bind mounts and over-mounts.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ioprof.errors import MeasureError
from ioprof.record.dataset import Mount
from ioprof.sources.source import Roots

_OCTAL = re.compile(r"\\([0-7]{3})")


def find_mount(path: Path, *, roots: Roots = Roots()) -> Mount:
    """The mount that holds `path`; MeasureError when the path cannot be opened or is in none."""
    try:
        mount_id = _mount_id(path, roots)
        text = os.fsdecode((roots.proc / "self" / "mountinfo").read_bytes())
    except OSError as error:
        raise MeasureError(
            f"The mount of {path} cannot be told: {error.strerror}. Check the path and that /proc "
            "is mounted."
        ) from None
    mounts = parse_mountinfo(text)
    for mount in mounts:
        if mount.mount_id == mount_id:
            return mount
    return _longest_prefix(path, mounts)


def _mount_id(path: Path, roots: Roots) -> int | None:
    """Mount id of `path`; None where fdinfo does not name it (Linux before 3.15)."""
    descriptor = os.open(path, os.O_PATH)
    try:
        text = (roots.proc / "self" / "fdinfo" / str(descriptor)).read_text()
    except FileNotFoundError:
        return None
    finally:
        os.close(descriptor)
    return parse_mount_id(text)


def parse_mount_id(text: str) -> int | None:
    """The mount id in an fdinfo text; None where there is none."""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key == "mnt_id" and value.strip().isdecimal() and value.isascii():
            return int(value)
    return None


def _longest_prefix(path: Path, mounts: tuple[Mount, ...]) -> Mount:
    """The mount with the longest path above `path`; of two on one path the later is on top."""
    resolved = Path(os.path.realpath(path))
    best: Mount | None = None
    for mount in mounts:
        above = resolved.is_relative_to(mount.path)
        if above and (best is None or len(mount.path) >= len(best.path)):
            best = mount
    if best is None:
        raise MeasureError(
            f"{path} is under none of the {len(mounts)} mounts of this process. "
            "Run ioprof in the same mount namespace as the training."
        )
    return best


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """All mounts of a mountinfo file, in its order. Lines that are not mounts are passed over.

    Fields: id parent major:minor root path options [tags] - filesystem source superoptions. The
    tags are a list of any length, so the line is split at the lone dash; after it exactly at single
    blanks, since the source may be empty. Blank, tab, newline and backslash are octal escapes.
    """
    mounts: list[Mount] = []
    # Only the newline: a name may hold what splitlines() also takes for the end of a line.
    for line in text.split("\n"):
        left, dash, right = line.partition(" - ")
        fields = left.split(" ")
        after = right.split(" ")
        if not dash or len(fields) < 6 or not fields[0].isdigit():
            continue
        filesystem, source = after[0], after[1] if len(after) > 1 else ""
        mounts.append(
            Mount(
                mount_id=int(fields[0]),
                path=unescape(fields[4]),
                filesystem=filesystem,
                source=unescape(source),
                root=unescape(fields[3]),
                options=_options(fields[5], " ".join(after[2:])),
                major_minor=fields[2],
            )
        )
    return tuple(mounts)


def unescape(text: str) -> str:
    r"""A path from a mount file: `\040` is a blank, `\011` a tab, `\012` a newline, `\134` a
    backslash."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def _options(*lists: str) -> tuple[str, ...]:
    return tuple(unescape(option) for text in lists for option in text.split(",") if option)
