"""GlusterFS: the profile of a volume from a stand-in for its command, and dumps of a client."""

import os
from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.aside import look
from ioprof.sources.gluster import ClientSource, find, volume_of
from ioprof.sources.glusterstats import (
    ProfileOffError,
    parse_dump,
    parse_profile,
    unit_seconds,
)
from ioprof.sources.source import Roots, Target
from tests.unit.sources.fakesys import mount_of

DATA = Path(__file__).parents[2] / "data" / "gluster"
PROFILE = (DATA / "profile_info_cumulative.xml").read_bytes()
DUMP = (DATA / "client_io_stats_dump_10.3.txt").read_bytes()
TEXT_10 = b"    100.00  187529.23 ns  18956.00 ns  36905224.00 ns  19264  READ\n"
OFF = (
    b"<cliOutput><opRet>-1</opRet><opErrno>0</opErrno>"
    b"<opErrstr>Profile on Volume gv0 is not started</opErrstr></cliOutput>"
)


def brick(reads, calls, mean, duration):
    return (
        "<brick><cumulativeStats><blockStats>"
        f"<block><size>4096</size><reads>{reads}</reads><writes>0</writes></block></blockStats>"
        f"<fopStats><fop><name>READ</name><hits>{calls}</hits><avgLatency>{mean}</avgLatency></fop>"
        f"</fopStats><duration>{duration}</duration><totalRead>{reads * 4096}</totalRead>"
        "<totalWrite>0</totalWrite></cumulativeStats></brick>"
    )


def volume(*bricks):
    inside = "".join(bricks)
    return f"<cliOutput><opRet>0</opRet><volProfile>{inside}</volProfile></cliOutput>".encode()


@pytest.fixture
def command(tmp_path, monkeypatch):
    """A program `gluster` on the PATH that prints one file with --xml and another without."""

    def install(xml, text=TEXT_10, *, status=0):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "out.xml").write_bytes(xml)
        (folder / "out.txt").write_bytes(text)
        script = folder / "gluster"
        script.write_text(
            f'#!/bin/sh\necho "$@" >> {folder}/asked\n'
            f'case "$*" in *--xml) cat {folder}/out.xml;; *) cat {folder}/out.txt;; esac\n'
            f"exit {status}\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        return folder / "asked"

    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return install


def seek(tmp_path, *, filesystem="fuse.glusterfs", source="192.0.2.77:/gv0"):
    mount = mount_of("/mnt/gluster", filesystem=filesystem, source=source)
    return find(Target(root_pid=1, mount=mount), roots=Roots(root=tmp_path))


def dumps(tmp_path, name="io.gv0", text=DUMP, *, at_s=100):
    folder = tmp_path / "var" / "run" / "gluster"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text)
    os.utime(folder / name, (at_s, at_s))
    return folder


def nonzero(counters):
    return {n: v for n, v in counters.items() if v and n.startswith("read_requests_")}


def test_the_profile_tells_bytes_calls_and_sizes():
    found = parse_profile(PROFILE)
    plain = {n: v for n, v in found.counters.items() if not n.startswith("read_requests_")}
    assert plain == {
        "read_bytes_total": 412_090_368,
        "write_bytes_total": 67_108_864,
        "read_operations_total": 19_264,
        "write_operations_total": None,
        "open_operations_total": 9,
        "lookup_operations_total": 21,
        "getattr_operations_total": None,
        "readdir_operations_total": None,
        "metadata_operations_total": 30,
    }
    assert nonzero(found.counters) == {
        "read_requests_up_to_4096_total": 16_640,
        "read_requests_up_to_131072_total": 2624,
    }
    assert found.counters["read_requests_up_to_512_total"] == 0
    assert (found.bricks, found.age_s) == (1, 34)
    assert found.means == {"read_mean": pytest.approx(187_529.230773), "write_mean": None}


def test_sizes_and_bytes_agree():
    # 16,640 x 4,096 + 2,624 x 131,072
    assert parse_profile(PROFILE).counters["read_bytes_total"] == 68_157_440 + 343_932_928


def test_bricks_are_added_up_and_means_weighted():
    found = parse_profile(volume(brick(10, 30, 100.0, 50), brick(1, 10, 500.0, 20)))
    assert found.counters["read_bytes_total"] == 11 * 4096
    assert found.counters["read_operations_total"] == 40
    assert found.means["read_mean"] == pytest.approx(200.0)  # (30 x 100 + 10 x 500) / 40
    assert (found.bricks, found.age_s) == (2, 20)


def test_a_brick_without_its_number_makes_the_sum_unknown():
    text = volume(brick(10, 30, 1.0, 5), brick(1, 10, 1.0, 5)).replace(b">40960<", b">?<")
    assert parse_profile(text).counters["read_bytes_total"] is None


def test_the_unit_of_latencies_is_what_the_text_form_says():
    assert unit_seconds(TEXT_10) == 1e-9
    assert unit_seconds(TEXT_10.replace(b" ns", b" us")) == 1e-6
    assert unit_seconds(b"nothing") is None
    assert unit_seconds(TEXT_10 + TEXT_10.replace(b" ns", b" us")) is None, "it cannot be both"


def test_errors_of_gluster_and_no_xml_are_told_apart():
    with pytest.raises(ProfileOffError, match="is not started"):
        parse_profile(OFF)
    with pytest.raises(ProfileOffError, match="no brick"):
        parse_profile(volume())
    with pytest.raises(ValueError, match="no XML"):
        parse_profile(b"Connection failed. Please check if gluster daemon is operational.")


def test_the_volume_is_asked_for_totals_and_nothing_is_switched_on(tmp_path, command):
    asked = command(PROFILE)
    source, client = seek(tmp_path)
    (reading,) = look(source)
    assert (reading.source, reading.instance) == ("gluster.volume", "gv0")
    assert (reading.layer, reading.scope) == (Layer.WIRE, Scope.DEVICE)
    assert reading.counters["read_bytes_total"] == 412_090_368
    assert reading.gauges == {
        "read_mean_seconds": pytest.approx(187_529.230773e-9),
        "write_mean_seconds": None,
        "age_seconds": 34,
    }
    assert "all its clients" in (reading.note or "")
    source.close()
    assert isinstance(client, Unavailable)
    totals = "volume profile gv0 info cumulative"
    assert set(asked.read_text().splitlines()) == {f"{totals} --xml", totals}


def test_a_unit_that_is_not_told_leaves_no_mean(tmp_path, command):
    command(PROFILE, text=b"")
    source, _ = seek(tmp_path)
    (reading,) = look(source)
    assert reading.gauges["read_mean_seconds"] is None
    source.close()


@pytest.mark.parametrize(
    ("xml", "status", "says", "remedy"),
    [
        (OFF, 0, "is not started", "gluster volume profile gv0 start"),
        (b"no daemon", 1, "ended with status 1: no daemon", "as root"),
        (b"no daemon", 0, "no XML", "as root"),
    ],
)
def test_a_profile_that_cannot_be_read_is_one_line(tmp_path, command, xml, status, says, remedy):
    command(xml, status=status)
    found, _ = seek(tmp_path)
    assert isinstance(found, Unavailable)
    assert says in found.reason
    assert remedy in (found.remedy or "")


def test_without_the_command_it_says_so(tmp_path, command):
    found, client = seek(tmp_path)
    assert isinstance(found, Unavailable)
    assert "not on this node" in found.reason
    assert isinstance(client, Unavailable)
    assert "setfattr -n trusted.io-stats-dump -v io /mnt/gluster" in (client.remedy or "")


def test_a_dump_tells_counts_and_bytes_and_no_time():
    found = parse_dump(DUMP)
    plain = {n: v for n, v in found.counters.items() if not n.startswith("read_requests_")}
    assert plain == {
        "read_bytes_total": 412_090_368,
        "write_bytes_total": 67_108_864,
        "read_operations_total": 19_264,
        "write_operations_total": None,
        "open_operations_total": 19,
        "lookup_operations_total": 15,
        "getattr_operations_total": None,
        "readdir_operations_total": None,
        "metadata_operations_total": 34,
    }
    assert nonzero(found.counters) == {
        "read_requests_up_to_4096_total": 16_640,
        "read_requests_up_to_131072_total": 2624,
    }
    assert found.age_s == 13
    assert not any("seconds" in name for name in found.counters), "its unit is misnamed"


def test_intervals_after_the_totals_are_not_taken():
    interval = b"\n=== Interval 0 stats ===\n     BytesRead : 5\nREAD  7  1 us 1 us 1 us\n"
    assert parse_dump(DUMP + interval) == parse_dump(DUMP)
    with pytest.raises(ValueError, match="no cumulative"):
        parse_dump(interval)


def test_size_tables_of_several_rows_are_read_and_torn_ones_are_none():
    more = b"Block Size   :          262144B+\nRead Count   :     3\n"
    at = DUMP.index(b"Fop ")
    both = parse_dump(DUMP[:at] + more + DUMP[at:])
    assert both.counters["read_requests_up_to_262144_total"] == 3
    assert both.counters["read_requests_up_to_4096_total"] == 16_640
    torn = parse_dump(DUMP.replace(b"              2624", b""))
    assert torn.counters["read_requests_up_to_4096_total"] is None
    assert torn.counters["read_bytes_total"] == 412_090_368


def test_the_newest_dump_of_the_volume_is_read_once(tmp_path, command):
    folder = dumps(tmp_path, "old.gv0", DUMP.replace(b"412090368", b"1"), at_s=50)
    dumps(tmp_path, "new.gv0", at_s=60)
    dumps(tmp_path, "other.gv1", DUMP.replace(b"412090368", b"2"), at_s=70)
    _, source = seek(tmp_path)
    (reading,) = source.read()
    assert (reading.source, reading.instance) == ("gluster.client", "/mnt/gluster")
    assert (reading.layer, reading.scope) == (Layer.CLIENT, Scope.MOUNT)
    assert reading.counters["read_bytes_total"] == 412_090_368
    assert reading.gauges == {"age_seconds": 13}
    assert list(source.read()) == [], "the same dump says nothing new"
    dumps(tmp_path, "new.gv0", DUMP.replace(b"412090368", b"412090369"), at_s=80)
    (reading,) = source.read()
    assert reading.counters["read_bytes_total"] == 412_090_369
    for path in folder.iterdir():
        path.unlink()
    assert list(source.read()) == []
    source.close()


def test_a_dump_that_is_being_written_is_waited_for(tmp_path):
    folder = dumps(tmp_path, text=b"\n=== Cumu")
    source = ClientSource(folder, "gv0", mount_path="/mnt/gluster")
    assert list(source.read()) == []
    dumps(tmp_path)
    assert len(list(source.read())) == 1


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("192.0.2.77:/gv0", "gv0"),
        ("h1,h2:/gv0/folder", "gv0"),
        ("h1:gv0", "gv0"),
        ("[2001:db8::1]:/gv0", "gv0"),
        ("gv0", None),
        ("h:/", None),
    ],
)
def test_the_volume_is_the_first_part_of_the_source(source, name):
    assert volume_of(mount_of("/x", filesystem="fuse.glusterfs", source=source)) == name


def test_a_source_without_a_volume_is_said(tmp_path):
    (found,) = seek(tmp_path, source="odd")
    assert isinstance(found, Unavailable)
    assert "names no volume" in found.reason


def test_another_filesystem_has_nothing_to_do_with_it(tmp_path):
    assert seek(tmp_path, filesystem="nfs4") == []
    assert find(Target(root_pid=1)) == []
