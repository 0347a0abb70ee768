"""The layers of an overlay mount, and which of them hold a path."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ioprof.record.dataset import Mount

_BETWEEN = re.compile(r"(?<!\\):")
_LOWER = ("lowerdir", "lowerdir+", "datadir+")


def layers_of(mount: Mount, *, path: Path | None = None) -> list[Path]:
    """Folders of the layers, uppermost first.

    With `path`, a place below the mount: that place in each layer that has it. A file is read from
    the first of them alone; a folder's files may come from any.
    """
    layers = [layer for layer in _layers(mount) if layer.is_absolute()]
    below = _below(mount, path)
    if below is None:
        return layers
    holding = [layer / below for layer in layers if os.path.lexists(layer / below)]
    if holding and not holding[0].is_dir():
        return holding[:1]
    return holding or layers


def _layers(mount: Mount) -> list[Path]:
    found: list[Path] = []
    for option in mount.options:
        key, _, value = option.partition("=")
        if key == "upperdir":
            found.insert(0, Path(_plain(value)))
        elif key in _LOWER:
            # "::" sets off layers that hold data alone; a colon inside a name is "\\:".
            found.extend(Path(_plain(part)) for part in _BETWEEN.split(value) if part)
    return found


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _below(mount: Mount, path: Path | None) -> Path | None:
    """`path` as seen from the overlay's own root; None when it is not below the mount."""
    if path is None:
        return None
    resolved = Path(os.path.realpath(path))
    if not resolved.is_relative_to(mount.path):
        return None
    return Path(mount.root.lstrip("/")) / resolved.relative_to(mount.path)
