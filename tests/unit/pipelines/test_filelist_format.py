"""The profiler's list of samples and the trainer's reader of it speak of one format."""

import os

from ioprof.record.filelist import FileList as Written
from ioprof_pipelines.filelist import FileList as Read


def test_the_trainer_reads_what_the_survey_wrote(tmp_path):
    names = [b"a/one.JPEG", b"b/new\nline.JPEG", b"b/\xff\xfe.JPEG"]
    Written.of(
        tmp_path, paths=names, stored_bytes=[1, 22, 333], labels=[0, 1, 1], classes=(b"a", b"b")
    ).write(tmp_path / "filelist.npz")
    read = Read(tmp_path / "filelist.npz")
    assert len(read) == 3
    assert [read.path(i) for i in range(3)] == [os.fsencode(tmp_path) + b"/" + n for n in names]
    assert read.stored_bytes.tolist() == [1, 22, 333]
    assert read.labels.tolist() == [0, 1, 1]
    assert read.classes == 2
    assert read.name(2) == "b/\\xff\\xfe.JPEG"
