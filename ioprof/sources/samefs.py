"""Where one mounted filesystem is seen as a whole: its other mounts, by device number."""

from __future__ import annotations

import os

from ioprof.record.dataset import Mount
from ioprof.sources.mount import parse_mountinfo
from ioprof.sources.source import Roots


def whole_at(mount: Mount, *, roots: Roots = Roots()) -> tuple[str, ...]:
    """Paths at which the mount's filesystem is mounted from its own root, this mount first.

    A bind mount of a folder is none of them. Empty when this mount namespace has no such path.
    """
    own = (mount.path,) if mount.root == "/" else ()
    try:
        text = os.fsdecode((roots.proc / "self" / "mountinfo").read_bytes())
    except OSError:
        return own
    others = (
        other.path
        for other in parse_mountinfo(text)
        if other.major_minor == mount.major_minor and other.root == "/"
    )
    return tuple(dict.fromkeys((*own, *others)))
