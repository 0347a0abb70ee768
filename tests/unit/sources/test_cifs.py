"""What the SMB client prints. Sums are worked out by hand from the texts."""

from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.cifs import FACTS, find
from ioprof.sources.cifsstats import parse, same_share, server_counters, share_counters
from ioprof.sources.source import Target
from tests.unit.sources.fakesys import FakeSys, mount_of

DATA = Path(__file__).parents[2] / "data" / "cifs"
SAMPLE = (DATA / "Stats.txt").read_bytes()
TIMES = (DATA / "Stats_stats2_two_servers.txt").read_bytes()
OLD = (DATA / "Stats_smb1_and_old_smb2.txt").read_bytes()


@pytest.fixture
def fake(tmp_path):
    fake = FakeSys(tmp_path)
    (fake.roots.proc / "fs" / "cifs").mkdir(parents=True)
    return fake


def stats(fake, text=SAMPLE):
    (fake.roots.proc / "fs" / "cifs" / "Stats").write_bytes(text)


def look(fake, source="//192.0.2.70/data", **mount):
    named = {"filesystem": "cifs", "source": source, "number": "0:60", **mount}
    return find(Target(root_pid=1, mount=mount_of("/mnt/smb", **named)), roots=fake.roots)


def readings(fake, source="//192.0.2.70/data"):
    (found,) = look(fake, source)
    made = list(found.read())
    found.close()
    return made


def test_the_bytes_and_requests_of_a_share(fake):
    stats(fake)
    (reading,) = readings(fake)
    assert (reading.source, reading.instance) == ("cifs", "/mnt/smb")
    assert (reading.layer, reading.scope) == (Layer.WIRE, Scope.MOUNT)
    assert reading.counters == {
        "read_bytes_total": 10_737_418_240,
        "write_bytes_total": 0,
        "read_operations_total": 2560,
        "write_operations_total": 0,
        "read_errors_operations_total": 0,
        "metadata_operations_total": 1333,
        "open_operations_total": 1290,
        "readdir_operations_total": 12,
        "getattr_operations_total": 31,
    }
    assert reading.note is None


def test_a_count_below_zero_is_given_unsigned(fake):
    stats(fake, TIMES)
    share, _ = readings(fake)
    assert share.counters["read_operations_total"] == 2_147_483_648
    assert share.counters["read_errors_operations_total"] == 3
    assert share.counters["read_bytes_total"] == 10_737_418_240


def test_times_are_the_servers_in_its_own_jiffies(fake):
    stats(fake, TIMES)
    _, server = readings(fake)
    assert (server.source, server.instance) == ("cifs.server", "192.0.2.70")
    assert server.scope is Scope.DEVICE
    assert server.counters == {
        "read_operations_total": 2560,
        "read_time_seconds_total": pytest.approx(4.0),
        "metadata_operations_total": 124,
        "metadata_time_seconds_total": pytest.approx(0.120),
    }
    _, other = readings(fake, "//192.0.2.71/data")
    assert other.counters["read_time_seconds_total"] == pytest.approx(0.050)


def test_without_stats2_there_are_no_times():
    assert server_counters(parse(SAMPLE)) is None


def test_smb_1_has_bytes_beside_its_reads():
    share, _ = parse(OLD)
    counters = share_counters([share])
    assert counters["read_bytes_total"] == 196_608
    assert counters["write_bytes_total"] == 4096
    assert counters["read_operations_total"] == 12
    assert counters["write_operations_total"] == 3
    assert counters["read_errors_operations_total"] is None
    assert counters["open_operations_total"] == 7
    assert counters["readdir_operations_total"] == 7
    assert counters["getattr_operations_total"] is None
    assert counters["metadata_operations_total"] == 14


def test_an_old_smb_2_counts_requests_and_no_bytes():
    _, share = parse(OLD)
    counters = share_counters([share])
    assert counters["read_operations_total"] == 30
    assert counters["read_errors_operations_total"] == 1
    assert counters["read_bytes_total"] is None
    assert counters["metadata_operations_total"] == 19


@pytest.mark.parametrize(
    "source",
    [
        "//192.0.2.70/Data two",
        "//192.0.2.70/Data Two/imagenet/train",
        "\\\\192.0.2.70\\DATA TWO",
        "//192.0.2.70/data two/",
    ],
)
def test_a_share_is_found_by_name_whatever_its_letters(fake, source):
    stats(fake, TIMES)
    share, _ = readings(fake, source)
    assert share.counters["read_bytes_total"] == 70


def test_a_name_that_merely_begins_alike_is_another():
    assert same_share("//Srv/Data/x") == "\\\\srv\\data"
    assert same_share("//srv/data2") != same_share("//srv/data")


def test_a_share_mounted_by_two_users_is_added_up_and_said(fake):
    stats(fake, SAMPLE + b"\n" + SAMPLE[SAMPLE.index(b"1) ") :].replace(b"1) ", b"2) "))
    (reading,) = readings(fake)
    assert reading.counters["read_bytes_total"] == 21_474_836_480
    assert "2 times" in reading.note


def test_a_share_that_is_not_listed_is_said_with_those_that_are(fake):
    stats(fake)
    (silent,) = look(fake, "//domain/dfs")
    assert isinstance(silent, Unavailable)
    assert silent.reason.endswith("has no share //domain/dfs; it lists \\\\192.0.2.70\\data")


def test_without_the_file_the_reason_is_the_kernels(fake):
    (silent,) = look(fake)
    assert silent.reason.endswith("Stats cannot be read: No such file or directory")


def test_an_unmount_is_a_gap_and_a_cleared_count_is_handed_on(fake):
    stats(fake)
    (source,) = look(fake, filesystem="smb3")
    stats(fake, SAMPLE[: SAMPLE.index(b"1) ")])
    assert list(source.read()) == []
    stats(fake, SAMPLE.replace(b"10737418240", b"0"))
    (reading,) = source.read()
    source.close()
    assert reading.counters["read_bytes_total"] == 0


def test_every_name_has_its_fact(fake):
    stats(fake, TIMES)
    for reading in readings(fake):
        told = {c for fact in FACTS if fact.source == reading.source for c in fact.counters}
        assert told == set(reading.counters)


@pytest.mark.parametrize("text", [b"1) \\\\192.0.2.70\\data", b"1) \\\\192.0.2.70\\data\nReads: "])
def test_what_is_torn_is_none_and_never_zero(fake, text):
    stats(fake, text)
    (reading,) = readings(fake)
    assert set(reading.counters.values()) == {None}


def test_another_filesystem_has_nothing_to_do_with_it(fake):
    stats(fake)
    assert look(fake, filesystem="nfs") == []
    assert find(Target(root_pid=1), roots=fake.roots) == []
