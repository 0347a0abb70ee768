"""A synthetic set with the stored sizes of ImageNet: real JPEGs in class folders, by seed.

Sizes follow a log-normal law with ImageNet's mean of 113,044 bytes per file (Dell's count of
1,448,283,629,516 bytes in 12,811,670 images) and a standard deviation near 118 KB, within the
published 100 to 133 KB. They are drawn at evenly spaced quantiles and then shuffled, so a small set
has the mean of a large one; no file is padded to hit its size, and the files' own mean comes out
about 1 % higher. An image's pixels follow from its size at a photograph's number of bytes per
pixel: a decoder has as much to do as with the real set.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from PIL import Image

from ioprof.errors import DatasetError, UsageError

MEAN_BYTES = 113_044
STD_BYTES = 122_000
"""Of the law; of the sizes drawn it is a little less, for quantiles cut the tail."""
SAMPLES_PER_CLASS = 10
CLASSES = 1000
LAYOUTS = ("files",)

_SIDE = 2304
_TEXTURES = 4
_QUALITY = 90
_MOST_BYTES = 2_200_000
_LEAST_BYTES = 3_000
_GRAIN = 22.0
"""Standard deviation of the noise; with the quality above it gives about 0.6 bytes per pixel."""
_ASPECTS = ((4, 3), (4, 3), (3, 4), (3, 2), (1, 1))

Pixels = npt.NDArray[np.uint8]
Progress = Callable[[int], None]


class _Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """One file: where it goes and which part of which texture it shows."""

    name: str
    texture: int
    width: int
    height: int
    left: int
    top: int


def make(
    path: Path,
    *,
    samples: int,
    seed: int = 0,
    layout: str = "files",
    progress: Progress | None = None,
) -> None:
    """Make the set at `path`, the same bytes for the same seed; `progress` gets files done.

    UsageError when the folder holds anything already, or for a layout that is not there;
    DatasetError when the files cannot be written.
    """
    if layout not in LAYOUTS:
        raise UsageError(f"There is no layout {layout!r}. Choose from: {', '.join(LAYOUTS)}.")
    if samples < 1:
        raise UsageError(f"{samples} samples make no dataset. Ask for at least one.")
    try:
        if path.exists() and any(path.iterdir()):
            raise UsageError(f"{path} already holds files. Name a folder that is new or empty.")
        path.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(seed)
        textures = [_texture(random) for _ in range(_TEXTURES)]
        recipes = _recipes(sizes(samples, random=random), textures, random=random)
        for folder in sorted({Path(recipe.name).parent for recipe in recipes}):
            (path / folder).mkdir()
        _write_all(path, recipes, textures, progress=progress)
    except NotADirectoryError:
        raise UsageError(f"{path} is or lies below a file. Name a folder.") from None
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be filled: {error.strerror}. It takes {samples * MEAN_BYTES:,} bytes; "
            "remove what is there and name a folder with that much room that you may write to."
        ) from None


def _write_all(
    root: Path, recipes: list[_Recipe], textures: list[Pixels], *, progress: Progress | None
) -> None:
    pool = ThreadPoolExecutor(os.cpu_count())  # the encoder lets other threads run
    try:
        written = pool.map(lambda recipe: _write(root, recipe, textures), recipes)
        for done, _ in enumerate(written, start=1):
            if progress is not None:
                progress(done)
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C need not wait for a million files


def sizes(samples: int, *, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Stored sizes to aim at, in random order; their mean is MEAN_BYTES."""
    from scipy.special import ndtri

    variance = np.log1p((STD_BYTES / MEAN_BYTES) ** 2)
    quantiles = ndtri((np.arange(samples) + 0.5) / samples)
    drawn = np.exp(np.log(MEAN_BYTES) - variance / 2 + np.sqrt(variance) * quantiles)
    drawn *= MEAN_BYTES / drawn.mean()
    random.shuffle(drawn)
    return np.asarray(np.clip(drawn, _LEAST_BYTES, _MOST_BYTES), dtype=np.float64)


def _texture(random: np.random.Generator) -> Pixels:
    """Soft shapes of colour under grain."""
    coarse = random.integers(30, 226, (24, 24, 3), dtype=np.uint8)
    shapes = Image.fromarray(coarse).resize((_SIDE, _SIDE), Image.Resampling.BICUBIC)
    grain = random.normal(0.0, _GRAIN, (_SIDE, _SIDE, 1)).astype(np.float32)
    pixels = np.asarray(shapes, dtype=np.float32) + grain
    texture: Pixels = np.clip(pixels, 0, 255).astype(np.uint8)
    return texture


def _recipes(
    aims: npt.NDArray[np.float64], textures: list[Pixels], *, random: np.random.Generator
) -> list[_Recipe]:
    fixed, per_pixel = _cost(textures[0])
    classes = max(2, min(CLASSES, len(aims) // SAMPLES_PER_CLASS)) if len(aims) > 1 else 1
    recipes = []
    for number, aim in enumerate(aims):
        across, down = _ASPECTS[random.integers(len(_ASPECTS))]
        area = max(64.0, (aim - fixed) / per_pixel)
        width = min(_SIDE, max(8, round((area * across / down) ** 0.5)))
        height = min(_SIDE, max(8, round(area / width)))
        label = f"n{number % classes + 1:08d}"
        recipes.append(
            _Recipe(
                name=f"{label}/{label}_{number:07d}.JPEG",
                texture=int(random.integers(len(textures))),
                width=width,
                height=height,
                left=int(random.integers(_SIDE - width + 1)),
                top=int(random.integers(_SIDE - height + 1)),
            )
        )
    return recipes


def _cost(texture: Pixels) -> tuple[float, float]:
    """Bytes of a JPEG of nothing, and bytes per pixel, by encoding a small and a large part."""
    small, large = (len(_encoded(texture[:side, :side])) for side in (128, 1024))
    per_pixel = (large - small) / (1024**2 - 128**2)
    return small - per_pixel * 128**2, per_pixel


def _encoded(pixels: Pixels) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="JPEG", quality=_QUALITY)
    return buffer.getvalue()


def _write(root: Path, recipe: _Recipe, textures: list[Pixels]) -> None:
    rows = slice(recipe.top, recipe.top + recipe.height)
    columns = slice(recipe.left, recipe.left + recipe.width)
    part = np.ascontiguousarray(textures[recipe.texture][rows, columns])
    (root / recipe.name).write_bytes(_encoded(part))
