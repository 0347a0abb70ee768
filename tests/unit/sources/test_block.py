"""Diskstats rows and what is read from them. Products with 512 and seconds are worked out by hand.

The rows of other widths and of multipath are shaped as kernels 2.6 to 6.x print them.
"""

import pytest

from ioprof.record.reading import Layer, Reading, Role, Scope, Unavailable
from ioprof.sources.block import BlockSource, find, parse_diskstats
from ioprof.sources.blockstack import find_stack
from ioprof.sources.source import BlockDevice, BlockStack, Target
from tests.unit.sources.fakesys import DATA, FakeSys, mount_of

SAMPLE = (DATA / "diskstats.txt").read_text()
AT_REST = " 0" * 17 + "\n"


@pytest.fixture
def fake(tmp_path):
    return FakeSys(tmp_path)


def top(name, *, paths=()):
    return BlockDevice(name=name, role=Role.TOP, paths=paths)


def look(fake, *devices, text=None):
    """What `find` gives: the readings, and the reasons of what is silent."""
    if text is not None:
        fake.diskstats(text)
    target = Target(root_pid=1, stack=BlockStack(devices=devices))
    readings: list[Reading] = []
    reasons: list[Unavailable] = []
    for found in find(target, roots=fake.roots):
        if isinstance(found, Unavailable):
            reasons.append(found)
        else:
            readings.extend(found.read())
            found.close()
    return readings, reasons


def test_sectors_are_512_bytes_and_times_are_seconds(fake):
    (reading,), reasons = look(fake, top("nvme0n1p2"), text=SAMPLE)
    assert reasons == []
    assert reading.counters == {
        "read_bytes_total": 631_971_643_392,
        "read_operations_total": 4_820_800,
        "read_time_seconds_total": pytest.approx(1903.180),
        "read_merges_total": 1204,
        "write_bytes_total": 43_270_249_472,
        "write_operations_total": 912_332,
        "busy_seconds_total": pytest.approx(1610.990),
        "weighted_time_seconds_total": pytest.approx(2234.388),
    }
    assert reading.gauges == {"in_flight": 0}
    assert (reading.layer, reading.scope, reading.role) == (Layer.WIRE, Scope.DEVICE, Role.TOP)


def test_only_the_top_of_a_stack_is_the_headline(fake):
    """LVM, md, partition, disks: five rows of the same bytes, of which one is counted."""
    fake.disk("nvme0n1", "259:0")
    fake.partition("nvme0n1p2", "259:2", disk="nvme0n1")
    fake.disk("nvme1n1", "259:3")
    fake.disk("md127", "9:127", slaves=("nvme0n1p2", "nvme1n1"))
    fake.disk("dm-0", "253:0", slaves=("md127",))
    stack = find_stack(mount_of("/scratch", number="253:0"), roots=fake.roots)
    readings, _ = look(fake, *stack.devices, text=SAMPLE)
    assert len(readings) == 5
    headline = [r.counters["read_bytes_total"] for r in readings if r.role is Role.TOP]
    assert headline == [1_263_830_958_080]


# name, sectors and busy ms are the same in each.
@pytest.mark.parametrize(
    "row",
    [
        "8 0 sda 100 2 8000 30 50 5 4000 20 0 40 50",
        "8 0 sda 100 2 8000 30 50 5 4000 20 0 40 50 1 0 16 1",
        "8 0 sda 100 2 8000 30 50 5 4000 20 0 40 50 1 0 16 1 3 1",
        "8 0 sda 100 2 8000 30 50 5 4000 20 0 40 50 1 0 16 1 3 1 7 8 9",
    ],
    ids=["14 columns", "18 columns", "20 columns", "23 columns"],
)
def test_every_known_width_and_wider_ones_are_read(fake, row):
    """giampaolo/psutil#1692, #1683, #1697 (20 columns), #1423,
    Linuxfabrik/monitoring-plugins#50 (18):
    a line of a new width ended the whole call."""
    (reading,), _ = look(fake, top("sda"), text=row + "\n")
    assert reading.counters["read_bytes_total"] == 4_096_000
    assert reading.counters["write_bytes_total"] == 2_048_000
    assert reading.counters["busy_seconds_total"] == pytest.approx(0.040)
    assert reading.counters["weighted_time_seconds_total"] == pytest.approx(0.050)


def test_the_14_column_disk_of_the_sample(fake):
    (reading,), _ = look(fake, top("sda"), text=SAMPLE)
    assert reading.counters["read_bytes_total"] == 10_240_000
    assert reading.counters["weighted_time_seconds_total"] == pytest.approx(0.320)


def test_a_column_that_is_not_there_is_none_and_not_zero(fake):
    (reading,), _ = look(fake, top("sda"), text="8 0 sda 100 2 8000 30 50 5 4000 20\n")
    assert reading.counters["write_bytes_total"] == 2_048_000
    assert reading.counters["busy_seconds_total"] is None
    assert reading.gauges == {"in_flight": None}


def test_the_four_numbers_of_an_old_kernels_partition_are_not_misread(fake):
    # reads, sectors read, writes, sectors written: not the columns of a disk.
    readings, (silent,) = look(fake, top("sda1"), text="8 1 sda1 100 8000 50 4000\n")
    assert readings == []
    assert silent.source == "block.diskstats sda1"


@pytest.mark.parametrize(
    "line", ["", "8 0", "8 0 sda", "8 0 sda a b c d e f", "# in other words: none"]
)
def test_a_torn_line_is_passed_over(line):
    assert parse_diskstats(line.encode() + b"\n8 16 sdb 1 2 3 4 5 6 7 8 9 10 11\n") == {
        "sdb": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    }


@pytest.mark.parametrize("in_flight", ["-1", "4294967295", "18446744073709551615"])
def test_a_wrapped_number_in_flight_is_none(fake, in_flight):
    text = f"8 0 sda 100 2 8000 30 50 5 4000 20 {in_flight} 40 50\n"
    (reading,), _ = look(fake, top("sda"), text=text)
    assert reading.gauges == {"in_flight": None}
    assert reading.counters["read_bytes_total"] == 4_096_000


def test_times_wrap_as_32_bits_and_are_handed_on_as_they_are(fake):
    fake.diskstats("8 0 sda 1 0 8 4294967290 0 0 0 0 0 4294967290 4294967290\n")
    source = BlockSource((top("sda"),), roots=fake.roots)
    (before,) = source.read()
    fake.diskstats("8 0 sda 2 0 16 4 0 0 0 0 0 4 4\n")
    (after,) = source.read()
    source.close()
    assert before.counters["busy_seconds_total"] == pytest.approx(4294967.290)
    assert after.counters["busy_seconds_total"] == pytest.approx(0.004)
    assert before.counters["read_bytes_total"] == 4096
    assert after.counters["read_bytes_total"] == 8192


PATHS = ("nvme0c0n1", "nvme0c1n1")
PATH_ROWS = (
    "   0       0 nvme0c0n1 34706049 74843 4815165730 1000 0 0 0 0 0 900 1000 0 0 0 0 0 0\n"
    "   0       0 nvme0c1n1 1 0 8 5 0 0 0 0 0 5 5 0 0 0 0 0 0\n"
)


def test_of_a_multipath_head_at_rest_the_paths_are_summed(fake):
    """Atoptool/atop#157, netdata/netdata#5744, influxdata/telegraf#17238, lxc/lxcfs#667,
    axboe/fio#1890, #549, #525, earlephilhower/ezfio#32: the head showed 0."""
    head = top("nvme0n1", paths=PATHS)
    (reading,), _ = look(fake, head, text=PATH_ROWS + " 259 1 nvme0n1" + AT_REST)
    # 4,815,165,738 sectors.
    assert reading.counters["read_bytes_total"] == 2_465_364_857_856
    assert reading.counters["read_operations_total"] == 34_706_050
    assert reading.instance == "nvme0n1"
    assert reading.note.startswith("sum of the paths nvme0c0n1, nvme0c1n1: nvme0n1 itself")


def test_a_head_that_counts_is_used_alone(fake):
    """Atoptool/atop#157: the head and its paths were both counted."""
    head = top("nvme2n1", paths=("nvme2c0n1", "nvme2c1n1"))
    (reading,), _ = look(fake, head, text=SAMPLE)
    assert reading.counters["read_bytes_total"] == 2_202_009_600
    assert reading.note is None


def test_a_head_that_counts_is_used_where_its_paths_do_not(fake):
    text = "0 0 nvme0c0n1" + AT_REST + "259 1 nvme0n1 5 0 40 1 0 0 0 0 0 1 1\n"
    (reading,), _ = look(fake, top("nvme0n1", paths=PATHS), text=text)
    assert reading.counters["read_bytes_total"] == 20_480


def test_once_the_head_has_moved_it_is_used_for_good(fake):
    fake.diskstats(PATH_ROWS + "259 1 nvme0n1" + AT_REST)
    source = BlockSource((top("nvme0n1", paths=PATHS),), roots=fake.roots)
    notes, sizes = [], []
    for sectors in (0, 8, 8):
        fake.diskstats(PATH_ROWS + f"259 1 nvme0n1 {sectors // 8} 0 {sectors}" + " 0" * 8 + "\n")
        (reading,) = source.read()
        notes.append(reading.note is not None)
        sizes.append(reading.counters["read_bytes_total"])
    source.close()
    assert notes == [True, False, False]
    assert sizes == [2_465_364_857_856, 4096, 4096]


def test_a_partition_of_a_multipath_head_counts_by_the_paths(fake):
    fake.disk("nvme0n1", "259:1")
    fake.partition("nvme0n1p1", "259:2", disk="nvme0n1")
    fake.diskstats(PATH_ROWS + "259 1 nvme0n1" + AT_REST + "259 2 nvme0n1p1" + AT_REST)
    stack = find_stack(mount_of("/data", number="259:2"), roots=fake.roots)
    readings, _ = look(fake, *stack.devices)
    assert [(r.instance, r.role) for r in readings] == [
        ("nvme0n1p1", Role.TOP),
        ("nvme0n1", Role.LEAF),
    ]
    assert readings[0].counters["read_bytes_total"] == 2_465_364_857_856


def test_rows_that_share_the_number_0_0_keep_their_names():
    """influxdata/telegraf#17238: hidden paths all have the number 0:0."""
    assert set(parse_diskstats(PATH_ROWS.encode())) == set(PATHS)


def test_of_two_rows_of_one_name_the_later_counts():
    rows = parse_diskstats(b"7 0 loop0 1 1 1 1 1 1\n7 0 loop0 2 2 2 2 2 2\n")
    assert rows == {"loop0": [2, 2, 2, 2, 2, 2]}


def test_an_empty_diskstats_is_a_reason_for_each_device(fake):
    """giampaolo/psutil#1016, #1062, ray-project/ray#30404, python/typeshed#8829: None,
    and a crash."""
    readings, reasons = look(fake, top("vda"), text="")
    assert readings == []
    assert [r.reason for r in reasons] == [
        "vda has no row in diskstats: this container or kernel hides it"
    ]
    assert "process counters" in reasons[0].remedy


def test_a_container_that_lists_other_disks_alone_says_that_the_datas_is_hidden(fake):
    """lxc/lxcfs#432: lxcfs leaves out the drive of the data."""
    readings, (silent,) = look(fake, top("sdz"), text=SAMPLE)
    assert readings == []
    assert silent.source == "block.diskstats sdz"


def test_a_partition_whose_disk_has_no_row_is_a_device(fake):
    """prometheus/node_exporter#1190: Xen has xvda1 without xvda."""
    fake.disk("xvda1", "202:1")
    stack = find_stack(mount_of("/", number="202:1"), roots=fake.roots)
    (reading,), reasons = look(fake, *stack.devices, text="202 1 xvda1 1 0 8 1 0 0 0 0 0 1 1\n")
    assert reasons == []
    assert (reading.instance, reading.role) == ("xvda1", Role.TOP)
    assert reading.counters["read_bytes_total"] == 4096


def test_no_device_under_the_mount_is_the_stacks_own_reason(fake):
    target = Target(root_pid=1, stack=BlockStack(devices=(), reason="nfs4 has no block device"))
    (silent,) = find(target, roots=fake.roots)
    assert isinstance(silent, Unavailable)
    assert (silent.source, silent.reason) == ("block.diskstats", "nfs4 has no block device")


def test_without_diskstats_the_reason_is_the_kernels(fake):
    (fake.roots.proc / "diskstats").unlink()
    _, (silent,) = look(fake, top("vda"))
    assert silent.reason.endswith("diskstats: No such file or directory")


@pytest.mark.parametrize("name", ["sda", "sda1"])
def test_statistics_switched_off_are_a_reason_with_the_remedy_and_never_a_zero(fake, name):
    fake.disk("sda", "8:0", queue__iostats="0")
    fake.partition("sda1", "8:1", disk="sda")
    fake.diskstats("8 0 sda" + AT_REST + "8 1 sda1" + AT_REST)
    readings, (silent,) = look(fake, top(name))
    assert readings == []
    assert silent.reason == f"{name} counts nothing: the statistics of sda are switched off"
    assert silent.remedy == "echo 1 > /sys/block/sda/queue/iostats"


def test_of_a_stack_only_the_silent_device_is_left_out(fake):
    fake.disk("sda", "8:0", queue__iostats="0")
    fake.disk("dm-0", "253:0", slaves=("sda",), queue__iostats="1")
    fake.diskstats("8 0 sda" + AT_REST + "253 0 dm-0 1 0 8 1 0 0 0 0 0 1 1\n")
    stack = find_stack(mount_of("/data", number="253:0"), roots=fake.roots)
    (reading,), (silent,) = look(fake, *stack.devices)
    assert (reading.instance, silent.source) == ("dm-0", "block.diskstats sda")


def test_a_device_that_is_unplugged_is_left_out_and_the_others_go_on(fake):
    fake.diskstats(SAMPLE)
    source = BlockSource((top("sda"), top("loop0")), roots=fake.roots)
    assert [r.instance for r in source.read()] == ["sda", "loop0"]
    fake.diskstats("".join(line for line in SAMPLE.splitlines(True) if " sda " not in line))
    assert [r.instance for r in source.read()] == ["loop0"]
    source.close()


@pytest.mark.parametrize(
    ("dio", "says"), [("0", "a buffered loop device"), ("1", "page-in counts its bytes twice")]
)
def test_a_loop_device_says_what_its_numbers_imply(fake, dio, says):
    fake.disk("loop0", "7:0", loop__dio=dio)
    (reading,), _ = look(fake, top("loop0"), text=SAMPLE)
    assert reading.counters["read_bytes_total"] == 67_108_864
    assert says in reading.note
