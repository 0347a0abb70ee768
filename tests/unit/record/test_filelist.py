"""The list of samples: in memory, on disk, and what is no such list."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ioprof.errors import NotARunError
from ioprof.record.filelist import FileList, list_of, printable

NAMES = [b"a/one.JPEG", b"a/two words.JPEG", b"b/new\nline.JPEG", b"b/\xff\xfe.JPEG"]


@pytest.fixture
def files(tmp_path: Path) -> FileList:
    return FileList.of(
        tmp_path,
        paths=NAMES,
        stored_bytes=[1, 22, 333, 4444],
        labels=[0, 0, 1, 1],
        classes=(b"a", b"\xffb"),
    )


def test_a_list_is_read_back_as_it_was_written_whatever_the_names_hold(files, tmp_path):
    files.write(tmp_path / "filelist.npz")
    read = FileList.read(tmp_path / "filelist.npz")
    assert [read.relative(i) for i in range(len(read))] == NAMES
    assert read.root == tmp_path
    assert read.stored_bytes.tolist() == [1, 22, 333, 4444]
    assert read.labels.tolist() == [0, 0, 1, 1]
    assert read.classes == (b"a", b"\xffb")
    assert read.layout == "files"


def test_the_file_holds_the_arrays_that_its_readers_are_promised(files, tmp_path):
    files.write(tmp_path / "filelist.npz")
    with np.load(tmp_path / "filelist.npz", allow_pickle=False) as arrays:
        kinds = {name: str(arrays[name].dtype) for name in arrays.files}
        ends = arrays["path_ends"].tolist()
    assert kinds == {
        "root": "uint8",
        "layout": "uint8",
        "path_bytes": "uint8",
        "path_ends": "int64",
        "stored_bytes": "int64",
        "labels": "int32",
        "class_bytes": "uint8",
        "class_ends": "int64",
    }
    assert ends == [10, 26, 41, 50]  # 10, 16, 15 and 9 bytes, counted by hand


def test_a_path_is_absolute_and_opens_a_file_of_any_name(files, tmp_path):
    (tmp_path / "b").mkdir()
    files.path(3).write_bytes(b"x")
    assert files.path(3).parent == tmp_path / "b"
    assert [p.name for p in (tmp_path / "b").iterdir()] == ["\udcff\udcfe.JPEG"]


def test_a_subset_keeps_labels_and_classes(files):
    part = files.subset(np.array([3, 1]))
    assert [part.relative(i) for i in range(2)] == [NAMES[3], NAMES[1]]
    assert part.labels.tolist() == [1, 0]
    assert part.stored_bytes.tolist() == [4444, 22]
    assert part.classes == files.classes


def test_an_empty_subset_is_a_list_of_nothing(files, tmp_path):
    files.subset(np.array([], dtype=np.int64)).write(tmp_path / "filelist.npz")
    assert len(FileList.read(tmp_path / "filelist.npz")) == 0


def test_writing_replaces_a_list_and_leaves_nothing_beside_it(files, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    files.write(folder / "filelist.npz")
    files.subset(np.array([0])).write(folder / "filelist.npz")
    assert len(FileList.read(folder / "filelist.npz")) == 1
    assert [p.name for p in folder.iterdir()] == ["filelist.npz"]


def test_a_list_of_named_files_has_their_sizes(tmp_path):
    (tmp_path / "one").write_bytes(b"x" * 7)
    (tmp_path / "two").write_bytes(b"")
    files = list_of(tmp_path, ["two", "one"])
    assert files.stored_bytes.tolist() == [0, 7]
    assert [files.path(i).name for i in range(2)] == ["two", "one"]


@pytest.mark.parametrize("data", [b"", b"not a list", b"PK\x03\x04 cut off", b"\x93NUMPY"])
def test_a_file_that_is_no_list_is_refused_by_name(tmp_path, data):
    path = tmp_path / "filelist.npz"
    path.write_bytes(data)
    with pytest.raises(NotARunError, match=r"filelist\.npz is not a list of samples"):
        FileList.read(path)


def test_a_list_that_was_cut_off_is_refused(files, tmp_path):
    path = tmp_path / "filelist.npz"
    files.write(path)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(NotARunError, match="is not a list of samples"):
        FileList.read(path)


def test_a_list_that_is_not_there_is_an_error_of_ours(tmp_path):
    with pytest.raises(NotARunError, match="No such file"):
        FileList.read(tmp_path / "none.npz")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", np.zeros(1, np.int32)),
        ("path_ends", np.array([10, 26, 41, 5000])),
        ("class_ends", np.array([2, 1])),
    ],
)
def test_a_list_whose_arrays_disagree_is_refused(files, tmp_path, name, value):
    path = tmp_path / "filelist.npz"
    files.write(path)
    with np.load(path) as arrays:
        changed = {**arrays, name: value}
    np.savez(path, **changed)
    with pytest.raises(NotARunError, match="do not agree"):
        FileList.read(path)


def test_bytes_that_are_no_text_are_printed_as_escapes():
    assert printable(b"a/\xff b.JPEG") == "a/\\xff b.JPEG"
    assert printable("ä.JPEG".encode()) == "ä.JPEG"
