from pathlib import Path

from ioprof.record.reading import Layer, Unavailable
from ioprof.sources.source import Roots, Target
from ioprof.sources.vmstat import find, parse

DATA = Path(__file__).parents[2] / "data" / "proc"


def look(*arguments, **named):
    return find(*arguments, **named)


def test_recorded_counters_in_base_units():
    assert parse((DATA / "vmstat.txt").read_bytes()) == {
        "page_in_bytes_total": 25987675 * 1024,
        "page_faults_major_total": 191272,
        "refault_file_pages_total": 804887,
    }


def test_a_counter_the_kernel_does_not_keep_is_none_not_zero():
    # Before Linux 5.9 there was one workingset_refault for files and anonymous memory.
    values = parse(b"pgpgin 3\nworkingset_refault 9\npgmajfault 0\n")
    assert values == {
        "page_in_bytes_total": 3072,
        "page_faults_major_total": 0,
        "refault_file_pages_total": None,
    }


def test_a_name_that_only_begins_alike_is_another_counter():
    assert parse(b"pgpgin_other 5\npgmajfault_x 7\n")["page_in_bytes_total"] is None


def test_it_is_read_afresh_each_time(tmp_path):
    (tmp_path / "vmstat").write_text("pgpgin 1\n")
    (source,) = look(Target(root_pid=1), roots=Roots(proc=tmp_path))
    (first,) = source.read()
    (tmp_path / "vmstat").write_text("pgpgin 2\n")
    (second,) = source.read()
    assert first.layer is Layer.CACHE
    assert first.counters["page_in_bytes_total"] == 1024
    assert second.counters["page_in_bytes_total"] == 2048
    source.close()


def test_absent_it_says_which_file(tmp_path):
    (found,) = look(Target(root_pid=1), roots=Roots(proc=tmp_path))
    assert isinstance(found, Unavailable)
    assert "vmstat cannot be read: No such file" in found.reason
