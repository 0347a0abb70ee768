"""`watch`: what stands on the screen, what a script gets, how it ends."""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from ioprof.cli import main, screen, watch
from ioprof.errors import MeasureError, UsageError
from ioprof.live.processes import Reader
from ioprof.live.view import Gpu, Link, View
from ioprof.record.reading import Layer

FULL = View(
    storage_read_bytes_per_s=205_000_000.0,
    storage_read_source="nfs.wire /mnt/a (wire, whole mount)",
    storage_read_layer=Layer.WIRE,
    reads_per_s=1786.0,
    read_request_bytes=114_660.0,
    read_latency_s=0.0012,
    metadata_ops_per_s=42.0,
    metadata_ops_source="nfs.wire",
    cache_served=0.71,
    cache_served_source="nfs.app (app, whole mount)",
    gpu_kernel_busy=0.85,
    gpus=(Gpu(index="0", gpu_kernel_busy=0.9), Gpu(index="1", gpu_kernel_busy=0.8)),
    cpu_busy=0.45,
    receive_bytes_per_s=210_000_000.0,
    receive_link="eth0",
    links=(Link(name="eth0", receive_bytes_per_s=210e6, transmit_bytes_per_s=0.0),),
    processes=(Reader(pid=12345, name="python", requested_bytes_per_s=700e6),),
    unreadable_processes=0,
    reasons={},
)
NUMBERS = [
    name
    for name in View.__struct_fields__
    if name.endswith(("_per_s", "_bytes", "_latency_s", "_busy", "_served"))
]
BARE = msgspec.structs.replace(
    FULL,
    **dict.fromkeys(NUMBERS),
    storage_read_source=None,
    storage_read_layer=None,
    metadata_ops_source=None,
    cache_served_source=None,
    gpus=(),
    receive_link=None,
    links=(),
    processes=None,
    reasons=dict.fromkeys((*NUMBERS, "processes"), "this kernel tells nothing"),
)


def test_the_screen():
    shown = screen.render(FULL, title="/mnt/a on nfs4 server:/a", time="12:34:56")
    assert shown == textwrap.dedent(
        """\
        /mnt/a on nfs4 server:/a                                                12:34:56

          Storage read         205 MB/s   nfs.wire /mnt/a (wire, whole mount)
          Reads                 1,786/s   mean size 115 kB, mean latency 1.2 ms
          Metadata                 42/s   nfs.wire
          Served from cache        71 %   nfs.app (app, whole mount)
          GPU busy                 85 %   any kernel running; 90 % 80 %
          CPU busy                 45 %   of the CPUs that may be used here
          NIC receive          210 MB/s   eth0

          Processes           asked for         pid  name
                               700 MB/s       12345  python"""
    )


def test_what_is_not_known_is_a_dash_with_one_sentence_and_never_a_zero():
    shown = screen.render(BARE, title="/mnt/a", time="12:34:56")
    numbers, _, reasons = shown.rpartition("\n\n")
    assert "0" not in numbers.partition("\n")[2]
    assert numbers.count("–") == 10
    assert " ".join(reasons.split()) == (
        "– storage read, reads, mean size, mean latency, metadata, served from cache, GPU busy, "
        "CPU busy, NIC receive, processes: this kernel tells nothing"
    )


@pytest.mark.parametrize("width", [80, 60])
def test_no_line_is_wider_than_the_screen_and_a_terminal_obeys_no_name(width):
    view = msgspec.structs.replace(
        FULL,
        storage_read_source=f"nfs.wire {'/mnt/数据' * 20} (wire, whole mount)",
        processes=(Reader(pid=1, name="\x1b[2Jx\u202e", requested_bytes_per_s=1.0),),
        reasons={"cpu_busy": "word " * 40},
    )
    shown = screen.render(view, title="/data\x07" * 40, time="12:34:56", width=width)
    assert max(cell_len(line) for line in shown.splitlines()) <= width
    assert shown.replace("\n", "").isprintable()
    if width == 80:
        assert "… (wire, whole mount)" in shown, "the layer is never cut off"


def test_without_a_terminal_each_view_is_one_line_and_each_reason_is_said_once():
    out, errors = io.StringIO(), io.StringIO()
    lines = screen.Lines(console=Console(file=out, width=20), errors=Console(file=errors, width=20))
    with lines as display:
        display.show(FULL, time="12:34:56")
        display.show(BARE, time="12:34:57")
        display.show(BARE, time="12:34:58")
    assert out.getvalue().splitlines() == [
        "12:34:56  read 205 MB/s (wire)  1,786/s of 115 kB  latency 1.2 ms  metadata 42/s  "
        "cache 71 %  GPU 85 %  CPU 45 %  NIC 210 MB/s  top python 12345",
        *(
            f"12:34:{second}  read –  – of –  latency –  metadata –  cache –  GPU –  CPU –  NIC –  "
            "top –"
            for second in (57, 58)
        ),
    ]
    assert errors.getvalue().count("this kernel tells nothing") == 1


def test_the_live_screen_stays_when_it_ends():
    out = io.StringIO()
    console = Console(file=out, width=100, height=30, force_terminal=True)
    with screen.Screen(title="/mnt/a", console=console) as display:
        display.show(FULL, time="12:34:56")
    assert "looking" in out.getvalue()
    assert "205 MB/s" in out.getvalue()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(b"x" * 100)
    return tmp_path


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of which three views are known, the last of them interrupted."""

    def fake(*_: object, **__: object) -> Iterator[tuple[float, View]]:
        yield 1.0, FULL
        yield 2.0, BARE
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_views", fake)


def run(*arguments: object):
    return CliRunner().invoke(main.app, ["watch", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.usefixtures("views")
class TestCommand:
    """From the command line to what is printed."""

    def test_once_with_json_is_one_object_with_the_promised_keys(self, data):
        done = run("--data", data, "--once", "--json")
        assert done.exit_code == 0
        said = json.loads(done.stdout)
        assert list(said) == [
            "ioprof_version", "time", "data", "mount", "interval_s", *View.__struct_fields__
        ]  # fmt: skip
        assert said["storage_read_bytes_per_s"] == 205e6
        assert said["mount"]["filesystem"]

    def test_once_is_one_screen(self, data):
        done = run("--data", data, "--once")
        assert done.exit_code == 0
        assert done.stdout.count("Storage read") == 1

    def test_json_is_one_line_for_each_view_until_ctrl_c(self, data):
        done = run("--data", data, "--json")
        assert done.exit_code == 0
        first, second = map(json.loads, done.stdout.splitlines())
        assert (first["cpu_busy"], second["cpu_busy"]) == (0.45, None)
        assert second["reasons"]["cpu_busy"]

    def test_it_ends_after_the_duration(self, data):
        done = run("--data", data, "--duration", "1s")
        assert done.exit_code == 0
        assert len(done.stdout.splitlines()) == 1

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["--interval", "10ms"], "--interval 10ms is too short"),
            (["--duration", "1s", "--interval", "5s"], "ends before the first"),
            (["--listen", "0.0.0.0:9400"], "--listen-anywhere"),
            (["--listen-anywhere"], "Give --listen"),
            (["--listen", ":9400", "--once"], "Leave out one"),
        ],
    )
    def test_what_cannot_be_done_is_refused(self, data, arguments, says):
        with pytest.raises(UsageError, match=says):
            run("--data", data, *arguments)

    @pytest.mark.parametrize("name", ["nothing", "file"])
    def test_data_that_is_no_folder_is_a_sentence(self, data, name):
        with pytest.raises(MeasureError, match=name) as caught:
            run("--data", data / name, "--once")
        assert "Give --data a folder" in str(caught.value)
