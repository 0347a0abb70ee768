"""What a folder holds: every oddity is handled once, for all loaders, and named."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from ioprof.dataset import survey as module
from ioprof.dataset.sniff import Sniffed, sniff
from ioprof.dataset.survey import survey
from ioprof.errors import DatasetError
from ioprof.record.dataset import Dataset
from tests.unit.dataset.images import HTML, encoded, put
from tests.unit.dataset.seen import names, reasons


def test_classes_are_numbered_in_the_order_of_their_names(tmp_path):
    for name in ("b/2.JPEG", "b/1.JPEG", "a/1.JPEG", "B/1.JPEG"):
        put(tmp_path / name)
    dataset, files = survey(tmp_path)
    assert names(files) == ["B/1.JPEG", "a/1.JPEG", "b/1.JPEG", "b/2.JPEG"]
    assert files.labels.tolist() == [0, 1, 2, 2]
    assert files.classes == (b"B", b"a", b"b")
    assert (dataset.samples, dataset.classes, dataset.files_seen) == (4, 3, 4)
    assert dataset.notes == ()


def test_the_order_is_that_of_the_path_bytes_whatever_the_folders(tmp_path):
    for name in ("a/b/1.JPEG", "a/b-c/1.JPEG", "a/b.JPEG"):
        put(tmp_path / name)
    _, files = survey(tmp_path)
    assert names(files) == ["a/b-c/1.JPEG", "a/b.JPEG", "a/b/1.JPEG"]  # "-" < "." < "/"


def test_the_list_does_not_depend_on_how_many_threads_look(tmp_path):
    for number in range(300):
        put(tmp_path / f"{number % 7}" / f"{number}.JPEG", encoded())
    lists = [survey(tmp_path, threads=threads)[1] for threads in (1, 3, 16)]
    assert names(lists[0]) == names(lists[1]) == names(lists[2])
    assert lists[0].labels.tolist() == lists[2].labels.tolist()


def test_sizes_are_those_worked_out_by_hand(tmp_path):
    jpeg = encoded()
    for number in range(100):  # sizes n, n+1, ... n+99: bytes after the end marker do no harm
        put(tmp_path / "a" / f"{number:02d}.JPEG", jpeg + b"\x00" * number)
    dataset, files = survey(tmp_path)
    sizes = dataset.stored_bytes_per_sample
    least = len(jpeg)
    assert files.stored_bytes.tolist() == list(range(least, least + 100))
    assert dataset.stored_bytes == 100 * least + 4950
    assert sizes.mean == pytest.approx(least + 49.5)
    assert sizes.std == pytest.approx(((100**2 - 1) / 12) ** 0.5)
    assert sizes.p50 == pytest.approx(least + 49.5)
    assert sizes.p95 == pytest.approx(least + 0.95 * 99)
    assert sizes.p99 == pytest.approx(least + 0.99 * 99)
    assert sizes.max == least + 99


def test_a_flat_folder_is_one_class(tmp_path):
    put(tmp_path / "1.JPEG")
    put(tmp_path / "2.JPEG")
    dataset, files = survey(tmp_path)
    assert dataset.classes == 1
    assert files.labels.tolist() == [0, 0]


def test_samples_beside_class_folders_are_a_class_and_noted(tmp_path):
    put(tmp_path / "1.JPEG")
    put(tmp_path / "a/1.JPEG")
    dataset, files = survey(tmp_path)
    assert files.classes == (b".", b"a")
    assert dataset.notes == ("samples beside the class folders, as a class of their own: 1",)


def test_below_a_class_folder_the_depth_does_not_matter(tmp_path):
    put(tmp_path / "dog/small/old/1.JPEG")
    put(tmp_path / "dog/2.JPEG")
    put(tmp_path / "cat/x/3.JPEG")
    _, files = survey(tmp_path)
    assert files.classes == (b"cat", b"dog")
    assert names(files) == ["cat/x/3.JPEG", "dog/2.JPEG", "dog/small/old/1.JPEG"]


@pytest.mark.parametrize("beside", ["val", "validation", "test"])
def test_of_splits_only_train_is_surveyed(tmp_path, beside):
    put(tmp_path / "train/a/1.JPEG")
    put(tmp_path / beside / "a/2.JPEG")
    put(tmp_path / "README.txt", b"x")
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".cache").mkdir()
    dataset, files = survey(tmp_path)
    assert names(files) == ["train/a/1.JPEG"]
    assert files.classes == (b"a",)
    assert dataset.notes == (f"surveyed the split train, not {beside}",)


def test_a_class_that_is_called_train_is_a_class(tmp_path):
    put(tmp_path / "train/1.JPEG")
    put(tmp_path / "bus/2.JPEG")
    assert survey(tmp_path)[1].classes == (b"bus", b"train")


HIDDEN = [".ipynb_checkpoints", ".git", "@eaDir", "lost+found", ".snapshot", "__MACOSX"]


def test_hidden_and_service_folders_are_left_out_at_any_depth_and_named(tmp_path):
    put(tmp_path / "a/1.JPEG")
    for name in HIDDEN:
        put(tmp_path / name / "2.JPEG")
        put(tmp_path / "a" / name / "3.JPEG")
    dataset, files = survey(tmp_path)
    assert names(files) == ["a/1.JPEG"]
    (note,) = dataset.notes
    assert "12" in note
    assert all(name in note for name in HIDDEN)


def test_the_shadows_that_a_desktop_leaves_are_left_out(tmp_path):
    put(tmp_path / "a/1.JPEG")
    put(tmp_path / "a/._1.JPEG", b"\x00\x05\x16\x07")
    put(tmp_path / "a/.DS_Store", b"x")
    dataset, files = survey(tmp_path)
    assert names(files) == ["a/1.JPEG"]
    assert dataset.quarantined_count == 0
    assert dataset.notes == ("hidden files left out: 2, a/.DS_Store first",)


def test_files_that_are_named_like_no_image_are_left_out(tmp_path):
    put(tmp_path / "a/1.JPEG")
    put(tmp_path / "a/labels.xml", b"<?xml?>")
    put(tmp_path / "LICENSE", b"x")
    dataset, files = survey(tmp_path)
    assert names(files) == ["a/1.JPEG"]
    assert dataset.notes == (
        "files left out because their names stand for no image: 2, LICENSE first",
    )


def test_every_spelling_of_a_suffix_is_taken(tmp_path):
    spelled = ["1.JPEG", "2.jpeg", "3.JPG", "4.jpg", "5.jfif", "6.JFIF"]
    for name in spelled:
        put(tmp_path / "a" / name)
    put(tmp_path / "a/7.PNG", encoded("PNG"))
    put(tmp_path / "a/8.png", encoded("PNG"))
    dataset, files = survey(tmp_path)
    assert names(files) == [f"a/{name}" for name in [*spelled, "7.PNG", "8.png"]]
    assert dataset.notes == ()


def test_a_misnamed_image_is_kept_and_noted(tmp_path):
    put(tmp_path / "a/n02105855_2933.JPEG", encoded("PNG"))
    dataset, files = survey(tmp_path)
    assert len(files) == 1
    assert dataset.quarantined_count == 0
    assert dataset.notes == ("misnamed, kept: 1 PNG named .jpeg",)


def test_files_that_cannot_be_samples_are_quarantined_by_name_with_the_reason(tmp_path):
    put(tmp_path / "a/good.JPEG")
    put(tmp_path / "a/empty.JPEG", b"")
    put(tmp_path / "a/page.JPEG", HTML)
    put(tmp_path / "b/cut.JPEG", encoded(side=200)[:-200])
    (tmp_path / "b/gone.JPEG").symlink_to("/nope/x.JPEG")
    (tmp_path / "b/self.JPEG").symlink_to("self.JPEG")
    os.mkfifo(tmp_path / "b/pipe.JPEG")
    dataset, files = survey(tmp_path)
    why = reasons(dataset)
    assert names(files) == ["a/good.JPEG"]
    assert list(why) == [
        "a/empty.JPEG",
        "a/page.JPEG",
        "b/cut.JPEG",
        "b/gone.JPEG",
        "b/pipe.JPEG",
        "b/self.JPEG",
    ]
    assert "empty" in why["a/empty.JPEG"]
    assert "web page" in why["a/page.JPEG"]
    assert "truncated" in why["b/cut.JPEG"]
    assert why["b/gone.JPEG"] == "its link leads nowhere"
    assert "symbolic links" in why["b/self.JPEG"]
    assert "regular" in why["b/pipe.JPEG"]
    assert dataset.quarantined_count == 6
    assert dataset.notes == ("class folders without a sample: 1, b first",)


def test_of_many_bad_files_the_first_thousand_are_named_and_all_are_counted(tmp_path):
    put(tmp_path / "a/good.JPEG")
    for number in range(1100):
        (tmp_path / f"a/{number:04d}.JPEG").touch()
    dataset, _ = survey(tmp_path)
    assert dataset.quarantined_count == 1100
    assert [entry.file for entry in dataset.quarantined] == [f"a/{n:04d}.JPEG" for n in range(1000)]


def test_a_class_without_a_sample_takes_no_number(tmp_path):
    put(tmp_path / "a/1.JPEG")
    (tmp_path / "b/deep/deeper").mkdir(parents=True)
    put(tmp_path / "c/1.JPEG", b"")
    put(tmp_path / "d/1.JPEG")
    dataset, files = survey(tmp_path)
    assert files.classes == (b"a", b"d")
    assert files.labels.tolist() == [0, 1]
    assert "class folders without a sample: 2, b first" in dataset.notes


def test_a_link_that_leads_back_up_is_not_followed_twice(tmp_path):
    data = tmp_path / "data"
    put(data / "a/1.JPEG")
    put(tmp_path / "elsewhere/2.JPEG")
    (data / "a/again").symlink_to("..")
    (data / "above").symlink_to("../..")
    (data / "a/self").symlink_to("self")
    dataset, files = survey(data)
    assert names(files) == ["a/1.JPEG"]
    assert reasons(dataset).keys() == {"a/self"}
    assert dataset.notes == (
        "links left out because they lead to folders already seen: 2, a/again first",
    )


def test_a_link_to_a_class_does_not_take_its_files(tmp_path):
    put(tmp_path / "z/1.JPEG")
    put(tmp_path / "b/2.JPEG")
    (tmp_path / "a").symlink_to("z")
    (tmp_path / "b/more").symlink_to("../z")
    dataset, files = survey(tmp_path)
    assert names(files) == ["b/2.JPEG", "z/1.JPEG"]
    assert dataset.notes == (
        "links left out because they lead to folders already seen: 2, a first",
    )


def test_links_to_classes_and_files_elsewhere_are_followed(tmp_path):
    put(tmp_path / "store/x/1.JPEG")
    put(tmp_path / "store/y.JPEG")
    (tmp_path / "data/b").mkdir(parents=True)
    (tmp_path / "data/a").symlink_to("../store/x")
    (tmp_path / "data/b/2.JPEG").symlink_to("../../store/y.JPEG")
    _, files = survey(tmp_path / "data")
    assert names(files) == ["a/1.JPEG", "b/2.JPEG"]
    assert files.stored_bytes.tolist() == [
        (tmp_path / "store" / name).stat().st_size for name in ("x/1.JPEG", "y.JPEG")
    ]


def test_a_class_whose_link_leads_nowhere_is_named(tmp_path):
    put(tmp_path / "a/1.JPEG")
    (tmp_path / "n02105855").symlink_to("/mnt/gone/n02105855")
    assert reasons(survey(tmp_path)[0]) == {"n02105855": "its link leads nowhere"}


def test_names_of_any_bytes_are_listed_and_can_be_written_as_json(tmp_path):
    odd = [
        b"a b/1 2.JPEG",
        b"new\nline/x\ny.JPEG",
        b"\xff\xfe/\xfd.JPEG",
        "\u00e4/\u65e5.JPEG".encode(),
    ]
    for name in odd:
        put(tmp_path / os.fsdecode(name))
    put(tmp_path / os.fsdecode(b"a b/\xff.JPEG"), b"")
    put(tmp_path / os.fsdecode(b"a b/.\xff"), b"")
    put(tmp_path / os.fsdecode(b"a b/.\xfe/x.JPEG"), b"")
    (tmp_path / os.fsdecode(b"\xfc")).mkdir()
    dataset, files = survey(tmp_path)
    assert {files.relative(i) for i in range(len(files))} == set(odd)
    assert all(files.path(i).read_bytes() for i in range(len(files)))
    assert [entry.file for entry in dataset.quarantined] == ["a b/\\xff.JPEG"]
    assert "class folders without a sample: 1, \\xfc first" in dataset.notes
    assert msgspec.json.decode(msgspec.json.encode(dataset), type=Dataset) == dataset


def test_a_root_of_any_bytes_can_be_surveyed(tmp_path):
    root = tmp_path / os.fsdecode(b"data \xff")
    put(root / "a/1.JPEG")
    dataset, files = survey(root)
    assert files.path(0).is_file()
    assert dataset.path == f"{tmp_path}/data \\xff"
    msgspec.json.encode(dataset)


def test_a_relative_root_gives_absolute_paths(tmp_path, monkeypatch):
    put(tmp_path / "data/a/1.JPEG")
    monkeypatch.chdir(tmp_path)
    dataset, files = survey(Path("data"))
    assert dataset.path == str(tmp_path / "data")
    assert files.path(0) == tmp_path / "data/a/1.JPEG"


def test_progress_is_told_how_many_files_were_looked_at(tmp_path):
    for number in range(150):
        put(tmp_path / f"a/{number}.JPEG", b"" if number else None)
    seen: list[int] = []
    survey(tmp_path, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 150
    assert len(seen) > 1


def test_a_folder_without_a_sample_says_what_it_holds_instead(tmp_path):
    put(tmp_path / "a/notes.txt", b"x")
    with pytest.raises(
        DatasetError, match=r"holds no image: 1 other files were seen\. Give --data"
    ):
        survey(tmp_path)


def test_a_folder_of_bad_files_names_the_first_and_why(tmp_path):
    put(tmp_path / "a/2.JPEG", HTML)
    put(tmp_path / "a/1.JPEG", b"")
    with pytest.raises(DatasetError, match=r"2 files were rejected, a/1\.JPEG first: it is empty"):
        survey(tmp_path)


def test_a_path_that_is_no_folder_says_what_it_is(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(DatasetError, match=r"none is not there\. Give --data"):
        survey(tmp_path / "none")
    with pytest.raises(DatasetError, match=r"file is no folder\. Give --data"):
        survey(tmp_path / "file")
    with pytest.raises(DatasetError, match=r"loop cannot be opened: .*\. Give --data"):
        survey(tmp_path / "loop")


def test_a_file_that_vanishes_or_fails_under_way_is_quarantined(tmp_path, monkeypatch):
    put(tmp_path / "a/1.JPEG")
    put(tmp_path / "a/2.JPEG")

    def failing(path: bytes) -> object:
        if path.endswith(b"2.JPEG"):
            raise OSError(5, "Input/output error")
        return sniff(path)

    monkeypatch.setattr(module, "sniff", failing)
    dataset, files = survey(tmp_path)
    assert names(files) == ["a/1.JPEG"]
    assert reasons(dataset) == {"a/2.JPEG": "it cannot be read: Input/output error"}


def test_a_hundred_thousand_names_take_their_bytes_and_20_more_each(tmp_path):
    """Names are kept as bytes in one array: 1.28 million of them must fit beside a training run."""
    gathered = module._Gathered(tmp_path)
    seen = Sniffed(stored_bytes=1, kind="JPEG", problem=None)
    for number in range(100_000):
        gathered.add(number % 10, os.fsencode(tmp_path / "c") + b"/%06d.JPEG" % number, seen)
    files = gathered.files([b"%d" % number for number in range(10)])
    held = (files._path_bytes, files._path_ends, files.stored_bytes, files.labels)
    assert sum(array.nbytes for array in held) == 100_000 * (13 + 8 + 8 + 4)
    assert files.relative(1) == b"c/000010.JPEG"
    assert files.labels[[0, 9_999, 10_000, 99_999]].tolist() == [0, 0, 1, 9]
