"""The run directory: where each file is, its format version, and how it is read back.

Format history (`FORMAT_VERSION`):

    1   ioprof 0.1   first: study.json, cells/<id>/{cell.json,node-<n>.jsonl,rank-<n>.jsonl},
                     fio/, filelist.npz, summary.json; of a recorded command run.json and
                     cells/command/

JSON is written whole to a temporary name and renamed; JSON Lines are append-only, so what a killed
run left behind is read up to its last whole line.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from ioprof.errors import FutureRunError, NotARunError, RunFileError, TruncatedRunError, UsageError
from ioprof.record.columns import Columns
from ioprof.record.header import NodeHeader, RankHeader
from ioprof.record.reading import SamplerEnd, Series, Tick, Unavailable
from ioprof.record.step import Event, Step

FORMAT_VERSION = 1

_FILES = ("study.json", "run.json", "summary.json", "filelist.npz", "report.html")
_FOLDERS = ("cells", "fio", "figures")

_T = TypeVar("_T")
_GIVE = "Give the directory of a run, the one that holds study.json."
NodeLine = NodeHeader | Series | Tick | Unavailable | SamplerEnd
_RankLine = RankHeader | Step | Event


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One node's file, read back. `truncated` says that the sampler did not get to end it."""

    header: NodeHeader
    columns: tuple[Columns, ...]
    """One for each series that was declared, in that order; without rows if it was never seen."""
    ticks: int
    first_s: float | None
    """When the first tick was; None without one."""
    last_s: float | None
    unavailable: tuple[Unavailable, ...]
    end: SamplerEnd | None

    @property
    def truncated(self) -> bool:
        """Whether the sampler was killed before its last line."""
        return self.end is None


class RankRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's file, read back."""

    header: RankHeader
    steps: tuple[Step, ...]
    events: tuple[Event, ...]


class RunDirectory:
    """Paths inside one run directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def create(cls, root: Path, *, overwrite: bool) -> RunDirectory:
        """Make an empty run directory; UsageError when one is there and may not be replaced."""
        run = cls(root)
        try:
            present = {path.name for path in root.iterdir()} if root.exists() else set()
            if present and not overwrite:
                raise UsageError(
                    f"{root} already holds files. Give another --out, or --force to replace it."
                )
            if present:
                run._remove_own_files(present)
            for folder in (root, *(root / name for name in _FOLDERS)):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{root} cannot be made a run directory: {error.strerror}. Give another --out."
            ) from None
        return run

    def _remove_own_files(self, present: set[str]) -> None:
        # --force on a wrong path must not empty somebody's project: without a plan in it, it is
        # a run directory only if nothing else is in it either.
        planned = {"study.json", "run.json"} & present
        if not planned and not present <= {*_FILES, *_FOLDERS}:
            raise UsageError(
                f"{self.root} holds files and is no run directory, so --force does not touch it. "
                "Give another --out."
            )
        for name in _FILES:
            (self.root / name).unlink(missing_ok=True)
        for folder in _FOLDERS:
            if (self.root / folder).is_symlink():
                (self.root / folder).unlink()
                continue
            for path in sorted((self.root / folder).rglob("*"), reverse=True):
                if path.is_dir() and not path.is_symlink():
                    with contextlib.suppress(OSError):
                        path.rmdir()
                else:
                    path.unlink()

    @property
    def study(self) -> Path:
        """The plan."""
        return self.root / "study.json"

    @property
    def recorded(self) -> Path:
        """What was asked for of a command that was recorded as it is."""
        return self.root / "run.json"

    @property
    def summary(self) -> Path:
        """The answer."""
        return self.root / "summary.json"

    @property
    def filelist(self) -> Path:
        """The list of samples that every loader takes."""
        return self.root / "filelist.npz"

    @property
    def figures(self) -> Path:
        """Pictures."""
        return self.root / "figures"

    @property
    def page(self) -> Path:
        """The HTML report."""
        return self.root / "report.html"

    @property
    def fio(self) -> Path:
        """Raw fio output and the ceiling read from it."""
        return self.root / "fio"

    def cell(self, cell_id: str) -> Path:
        """The folder of one cell."""
        return self.root / "cells" / cell_id

    def node_files(self, cell_id: str) -> list[Path]:
        """Node files of a cell, in node order."""
        return _numbered(self.cell(cell_id), "node")

    def rank_files(self, cell_id: str) -> list[Path]:
        """Rank files of a cell, in rank order."""
        return _numbered(self.cell(cell_id), "rank")


def _numbered(folder: Path, stem: str) -> list[Path]:
    found = [p for p in folder.glob(f"{stem}-*.jsonl") if p.stem.split("-")[-1].isdigit()]
    return sorted(found, key=lambda p: int(p.stem.split("-")[-1]))


def encode(value: object) -> bytes:
    """JSON of a record, indented for people. NaN and infinity become null."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def write_json(path: Path, value: object) -> None:
    """Write a record whole, or leave the old file as it was."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(encode(value))
    temporary.replace(path)


def read_json(path: Path, kind: type[_T]) -> _T:
    """Read a record of `kind`; RunFileError says what is wrong with the file."""
    raw = _bytes(path)
    if not raw.strip():
        raise TruncatedRunError(f"{path} is empty. The run was stopped before it was written.")
    _refuse_future(path, raw)
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise NotARunError(f"{path} is not an ioprof {kind.__name__} file: {error}.") from None
    except msgspec.DecodeError as error:
        if raw.lstrip()[:1] in (b"{", b"["):
            raise TruncatedRunError(
                f"{path} ends in the middle ({len(raw)} bytes: {error}). "
                "Run `ioprof report` on the directory to rebuild what can be rebuilt."
            ) from None
        raise NotARunError(f"{path} is not JSON. Give a directory that ioprof wrote.") from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NotARunError(f"{path} is not there. {_GIVE}") from None
    except OSError as error:
        raise RunFileError(f"{path} cannot be read: {error.strerror}.") from None


class _Versioned(msgspec.Struct):
    format_version: int | None = None


def _refuse_future(path: Path, raw: bytes) -> None:
    try:
        version = msgspec.json.decode(raw, type=_Versioned).format_version
    except msgspec.DecodeError:
        return
    if version is not None and version > FORMAT_VERSION:
        raise FutureRunError(
            f"{path} has format version {version}; this ioprof reads up to {FORMAT_VERSION}. "
            "Install a newer ioprof."
        )


def read_node(path: Path) -> NodeRecord:
    """Read one node's file up to its last whole line, in memory for its numbers alone."""
    try:
        return gathered(node_lines(path))
    except ValueError as error:
        raise NotARunError(f"{path} is damaged: {error}.") from None


def node_lines(path: Path) -> Iterator[NodeLine]:
    """The lines of a node's file one by one, header first, up to its last whole line."""
    lines = _lines(path, msgspec.json.Decoder(NodeLine))
    header = next(lines, None)
    if not isinstance(header, NodeHeader):
        raise NotARunError(f"{path} does not begin with a node header.")
    yield header
    for line in lines:
        if isinstance(line, NodeHeader):
            raise NotARunError(f"{path} holds two headers: two runs wrote into one file.")
        yield line


def gathered(lines: Iterable[NodeLine]) -> NodeRecord:
    """The record that a header and the lines after it make; ValueError for a row of no series."""
    rest = iter(lines)
    header = next(rest)
    assert isinstance(header, NodeHeader)
    columns: dict[int, Columns] = {}
    unavailable: list[Unavailable] = []
    end: SamplerEnd | None = None
    ticks, first_s, last_s = 0, None, None
    for line in rest:
        match line:
            case Tick():
                ticks, last_s = ticks + 1, line.t_s
                first_s = line.t_s if first_s is None else first_s
                for values in line.values:
                    if values.id not in columns:
                        raise ValueError(f"series {values.id} has values and was not declared")
                    columns[values.id].add(line.t_s, values)
            case Series():
                columns[line.id] = Columns(line)
            case Unavailable():
                unavailable.append(line)
            case SamplerEnd():
                end = line
    return NodeRecord(
        header=header,
        columns=tuple(columns.values()),
        ticks=ticks,
        first_s=first_s,
        last_s=last_s,
        unavailable=tuple(unavailable),
        end=end,
    )


def read_rank(path: Path) -> RankRecord:
    """Read one rank's file up to its last whole line."""
    lines = _lines(path, msgspec.json.Decoder(_RankLine))
    header = next(lines, None)
    if not isinstance(header, RankHeader):
        raise NotARunError(f"{path} does not begin with a rank header.")
    steps: list[Step] = []
    events: list[Event] = []
    for line in lines:
        match line:
            case Step():
                steps.append(line)
            case Event():
                events.append(line)
            case RankHeader():
                raise NotARunError(f"{path} holds two headers: two runs wrote into one file.")
    return RankRecord(header=header, steps=tuple(steps), events=tuple(events))


def _lines(path: Path, decoder: msgspec.json.Decoder[_T]) -> Iterator[_T]:
    number = 0
    for number, row in enumerate(_rows(path), start=1):
        if not row.endswith(b"\n"):
            if number == 1 and row.startswith(b"{"):
                why = "ends in its first line. The run was stopped as it began."
                raise TruncatedRunError(f"{path} {why}")
            # A line cut short by a kill.
            return
        if number == 1:
            _refuse_future(path, row)
        try:
            yield decoder.decode(row)
        except msgspec.DecodeError as error:
            raise NotARunError(f"{path}, line {number}, is not an ioprof line: {error}.") from None
    if number == 0:
        raise TruncatedRunError(f"{path} is empty. The run was stopped before it began.")


def _rows(path: Path) -> Iterator[bytes]:
    """Line by line: a day's record is larger than memory should be asked for."""
    try:
        with path.open("rb") as file:
            yield from file
    except FileNotFoundError:
        raise NotARunError(f"{path} is not there. {_GIVE}") from None
    except OSError as error:
        raise RunFileError(f"{path} cannot be read: {error.strerror}.") from None
