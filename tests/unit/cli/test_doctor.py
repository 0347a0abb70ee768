"""`doctor`: what is visible, what is not, why, and the remedy."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from ioprof.cli import dataview, doctor, examination
from ioprof.cli.dataview import look
from ioprof.cli.examination import Check
from ioprof.record.headline import Calibration, Candidate, Trial
from ioprof.record.reading import Layer, Reading, Role, Scope, Unavailable
from ioprof.record.study import Residency
from ioprof.sources import registry
from ioprof.sources.source import BlockDevice, BlockStack, Found, Roots, Target

TARGET = Target(root_pid=1)
STACK = BlockStack(devices=(BlockDevice(name="vda", role=Role.TOP),))


class FakeSource:
    """Gives what it was made with; raises it when that is an error."""

    every_ticks = 1

    def __init__(self, name: str, *readings: Reading, error: OSError | None = None) -> None:
        self.name = name
        self.closed = False
        self._readings = readings
        self._error = error

    def read(self) -> Iterable[Reading]:
        if self._error is not None:
            raise self._error
        return self._readings

    def close(self) -> None:
        self.closed = True


def reading(source: str, instance: str, **counters: float | None) -> Reading:
    return Reading(
        source=source,
        instance=instance,
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=counters,
    )


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[Found]:
    """What looking for sources gives, for a test to fill."""
    found: list[Found] = []
    monkeypatch.setattr(registry, "find_all", lambda target, *, roots: found)
    return found


def counters() -> dict[str, Check]:
    return {check.name: check for check in examination.counter_checks(TARGET)}


def test_a_source_that_reads_is_listed_with_its_layer_and_closed(sources):
    source = FakeSource("block.diskstats", reading("block.diskstats", "vda", read_bytes_total=1))
    sources.append(source)
    check = counters()["block.diskstats"]
    assert (check.state, check.says) == ("yes", "vda (wire, device)")
    assert any("read_bytes_total" in fact.counters for fact in check.facts)
    assert source.closed


def test_one_source_may_give_readings_of_two_names(sources):
    sources.append(
        FakeSource("process", reading("process.io", "tree"), reading("process.block", "tree"))
    )
    assert list(counters()) == ["process.io", "process.block"]


def test_a_counter_that_the_kernel_does_not_keep_is_named(sources):
    sources.append(FakeSource("vmstat", reading("vmstat", "host", refaults=None, faults=3)))
    check = counters()["vmstat"]
    assert check.state == "note"
    assert check.says.endswith("not kept here: refaults")


def test_many_instances_are_counted_instead_of_listed(sources):
    sources.append(FakeSource("net", *(reading("net", f"eth{n}") for n in range(9))))
    assert counters()["net"].says == "eth0, eth1, eth2, eth3 and 5 more (wire, device)"


def test_an_unavailable_source_says_why_and_what_would_help(sources):
    sources.append(
        Unavailable(source="pressure.io", reason="not built in", remedy="boot with psi=1")
    )
    check = counters()["pressure.io"]
    assert (check.state, check.says, check.remedy) == ("no", "not built in", "boot with psi=1")


def test_a_source_that_fails_to_read_is_not_available(sources):
    source = FakeSource("process", error=PermissionError(13, "Permission denied"))
    sources.append(source)
    assert counters()["process"].says == "cannot be read: Permission denied"
    assert source.closed


def candidate(source: str, instance: str, **ratios: float | None) -> Candidate:
    return Candidate(
        source=source,
        instances=(instance,),
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counter="read_bytes_total",
        ratios={"read": ratios.get("read"), "mmap": ratios.get("mmap")},
    )


def calibration_checks(**changes: object) -> list[Check]:
    found = Calibration(trials=(), candidates=(), headline=None, runner_up=None, why="why not")
    return list(examination.calibration_checks(msgspec.structs.replace(found, **changes)))


def test_the_counter_of_storage_is_named_with_what_it_cannot_see_and_the_next_best():
    disk, tree = candidate("block.diskstats", "vda", read=1.0), candidate("process.block", "tree")
    (check,) = calibration_checks(
        headline=disk, runner_up=tree, why="disk saw it", blind_spots=("It is blind.",)
    )
    assert (check.area, check.name, check.state) == ("data", "storage bytes", "yes")
    assert check.says == ("disk saw it. It is blind. Next best: process.block (wire, whole device)")


def test_with_no_counter_that_saw_the_reads_it_says_so_and_what_would_help():
    (check,) = calibration_checks(why="no counter below the process saw the 32 MB")
    assert check.state == "no"
    assert check.says == "no counter below the process saw the 32 MB"
    assert check.remedy is not None


def test_every_counter_is_listed_with_its_share_and_those_that_saw_nothing_together():
    checks = calibration_checks(
        candidates=(
            candidate("net", "lo", read=0.0, mmap=0.0),
            candidate("x", "eth0", read=0.004, mmap=None),
            candidate("block.diskstats", "vda", read=1.018, mmap=None),
        )
    )
    assert [(c.name, c.says) for c in checks if c.area == "trials"] == [
        ("block.diskstats", "vda (wire, whole device): read 1.02, mmap –"),
        ("saw nothing", "net lo, x eth0"),
    ]


def test_a_way_of_reading_that_was_not_possible_says_why():
    trial = Trial(access="warm", read_bytes=0, page_bytes=0, seconds=0.0, reason="no pages kept")
    checks = calibration_checks(trials=(trial,))
    assert [(c.name, c.state, c.says) for c in checks if c.area == "trials"] == [
        ("warm", "note", "no pages kept")
    ]


def test_a_page_cache_that_cannot_be_observed_is_no_zero():
    hidden = Residency(resident_fraction=None, reason="Operation not permitted")
    check = examination.residency_check(hidden)
    assert check.state == "no"
    assert "Operation not permitted" in check.says


def test_a_small_shared_memory_is_pointed_out(tmp_path, monkeypatch):
    small = os.statvfs_result((4096, 4096, 16384, 16384, 16384, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: small)
    check = next(iter(examination.limit_checks(shm=tmp_path)))
    assert (check.name, check.state, check.says) == ("/dev/shm", "note", "64.0 MiB, 64.0 MiB free")
    assert check.remedy is not None
    assert "--shm-size" in check.remedy


def test_no_shared_memory_says_what_it_is_for(tmp_path):
    check = next(iter(examination.limit_checks(shm=tmp_path / "none")))
    assert check.state == "no"


def test_a_folder_is_looked_at_by_a_child(tmp_path):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "a.JPEG").write_bytes(bytes(10_000))
    view = look(tmp_path, deadline_s=30)
    assert view.usable, view.checks
    assert view.mount is not None
    assert [check.name for check in view.checks] == ["path", "mount", "block devices", "page cache"]


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_what_is_no_folder_says_what_it_is(tmp_path, name):
    (tmp_path / "file").touch()
    view = look(tmp_path / name, deadline_s=30)
    assert not view.usable
    assert view.checks[0].state == "no"


def test_a_path_that_is_no_text_is_looked_at(tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    assert look(folder, deadline_s=30).usable


def hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        dataview, "_CHILD", (sys.executable, "-S", "-c", "import time; time.sleep(300)")
    )


def test_a_mount_that_does_not_answer_is_named_and_not_waited_for(tmp_path, monkeypatch):
    hang(monkeypatch)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(
        "21 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "40 21 0:50 / /mnt/dead rw - nfs4 server:/export rw,vers=4.2\n"
    )
    view = look(Path("/mnt/dead/set"), deadline_s=0.3, roots=Roots(proc=tmp_path))
    assert not view.usable
    assert view.checks[0].says == (
        "not responding: /mnt/dead/set gave no answer within 0 s; "
        "it is on nfs4 server:/export on /mnt/dead"
    )


def test_a_child_that_dies_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(dataview, "_CHILD", (sys.executable, "-S", "-c", "raise SystemExit(7)"))
    assert "failed with status 7" in look(tmp_path).checks[0].says


def test_the_text_fits_eighty_columns_and_obeys_no_name():
    checks = [
        Check(area="host", name="kernel", state="yes", says="6.18"),
        Check(
            area="data",
            name="a name that is longer than its column",
            state="note",
            says="x" * 200 + " evil \x1b[31m" + " word" * 30,
            remedy="do this " * 20,
        ),
        Check(
            area="tools", name="fio", state="no", says="not installed", remedy="apt-get install fio"
        ),
    ]
    text = doctor.render(checks)
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


def test_the_text_is_as_designed():
    checks = [
        Check(area="host", name="kernel", state="yes", says="6.18"),
        Check(area="tools", name="fio", state="no", says="not there", remedy="apt-get install fio"),
    ]
    assert doctor.render(checks) == (
        "This host\n"
        "  yes   kernel              6.18\n"
        "\n"
        "Programs and packages\n"
        "  NO    fio                 not there\n"
        "                            -> apt-get install fio\n"
        "\n"
        "2 things looked at, 1 not available here."
    )


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(doctor.doctor)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_the_command_prints_this_host(run):
    result = run()
    assert result.exit_code == 0, result.output
    assert "This host" in result.stdout
    assert "give --data DIR" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_json_holds_every_check(run, tmp_path):
    (tmp_path / "a.JPEG").write_bytes(bytes(5000))
    result = run("--json", "--data", str(tmp_path))
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["data"] == str(tmp_path)
    areas = {check["area"] for check in report["checks"]}
    assert areas == {"host", "data", "trials", "counters", "tools", "accelerators", "limits"}


def test_a_dead_mount_is_exit_status_3(run, monkeypatch, tmp_path):
    hang(monkeypatch)
    monkeypatch.setattr(look, "__kwdefaults__", {"deadline_s": 0.3, "roots": Roots()})
    result = run("--data", str(tmp_path))
    assert result.exit_code == 3
    assert "not responding" in result.stdout
