"""Stacks of block devices, laid out in a folder as sysfs shows them."""

import pytest

from ioprof.record.reading import Role
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import parse_mountinfo
from ioprof.sources.overlay import layers_of
from tests.unit.sources.fakesys import DATA, FakeSys, mount_of

SAMPLE = {mount.path: mount for mount in parse_mountinfo((DATA / "mountinfo.txt").read_text())}


@pytest.fixture
def fake(tmp_path):
    return FakeSys(tmp_path)


@pytest.fixture
def lvm(fake):
    """The sample's stack: dm-0 (LVM) on md127 (raid0) on nvme0n1p2 and nvme1n1."""
    fake.disk("nvme0n1", "259:0")
    fake.partition("nvme0n1p1", "259:1", disk="nvme0n1")
    fake.partition("nvme0n1p2", "259:2", disk="nvme0n1")
    fake.disk("nvme1n1", "259:3")
    fake.disk("md127", "9:127", slaves=("nvme0n1p2", "nvme1n1"), md__level="raid0")
    fake.disk("dm-0", "253:0", slaves=("md127",), dm__name="vg0-scratch")
    return fake


def roles(stack):
    return {device.name: device.role for device in stack.devices}


def test_the_fake_is_the_sample(lvm):
    """Every line of the recorded topology holds in the folder that the tests build."""
    lvm.disk("nvme2c0n1", "0:0", hidden="1")
    lvm.disk("nvme2n1", "259:9", hidden="0", queue__iostats="1")
    lvm_uuid = lvm.roots.sys / "block" / "dm-0" / "dm" / "uuid"
    lvm_uuid.write_text("LVM-Kd0exampleExampleExampleExampleExampl\n")
    (lvm.roots.sys / "block" / "nvme0n1" / "nvme0n1p2" / "partition").write_text("2\n")
    for line in (DATA / "sys_block_topology.txt").read_text().splitlines():
        path, _, value = line.partition(" = ")
        if line.startswith("#") or "->" in line:
            continue
        real = lvm.roots.sys / path.removeprefix("/sys/")
        assert real.exists(), line
        assert not value or real.read_text().strip() == value


def test_lvm_over_md_over_nvme_has_one_top_and_its_disks_at_the_end(lvm):
    stack = find_stack(SAMPLE["/scratch"], roots=lvm.roots)
    assert stack.top == ("dm-0",)
    assert roles(stack) == {
        "dm-0": Role.TOP,
        "md127": Role.MIDDLE,
        "nvme0n1p2": Role.MIDDLE,
        "nvme0n1": Role.LEAF,
        "nvme1n1": Role.LEAF,
    }
    assert stack.reason is None


def test_two_volumes_of_one_encrypted_disk_do_not_see_each_other(fake):
    """rust-psutil/rust-psutil#29: partition, LUKS and LVM counted the same bytes three times."""
    fake.disk("sda", "8:0")
    fake.partition("sda3", "8:3", disk="sda")
    fake.disk("dm-0", "253:0", slaves=("sda3",), dm__uuid="CRYPT-LUKS2-x")
    fake.disk("dm-1", "253:1", slaves=("dm-0",))
    fake.disk("dm-2", "253:2", slaves=("dm-0",))
    stack = find_stack(mount_of("/data", number="253:2"), roots=fake.roots)
    assert roles(stack) == {
        "dm-2": Role.TOP,
        "dm-0": Role.MIDDLE,
        "sda3": Role.MIDDLE,
        "sda": Role.LEAF,
    }


def test_a_partition_is_the_headline_and_its_disk_is_shown_below(lvm):
    """giampaolo/psutil#1305: NVMe disk and partitions were added up, twice the bandwidth."""
    stack = find_stack(SAMPLE["/"], roots=lvm.roots)
    assert roles(stack) == {"nvme0n1p2": Role.TOP, "nvme0n1": Role.LEAF}


@pytest.mark.parametrize("name", ["nvme0n1", "mmcblk0", "nbd0", "md0", "loop0", "xvda1"])
def test_a_whole_disk_whose_name_ends_in_a_digit_is_no_partition(fake, name):
    """giampaolo/psutil#1305, #1244, #1313, scottchiefbaker/dool#32, #49: told by the name."""
    fake.disk(name, "8:0")
    stack = find_stack(mount_of("/data", number="8:0"), roots=fake.roots)
    assert roles(stack) == {name: Role.TOP}


@pytest.mark.parametrize(
    ("disk", "partition"), [("mmcblk0", "mmcblk0p1"), ("nbd0", "nbd0p1"), ("loop0", "loop0p1")]
)
def test_a_partition_is_told_by_sysfs_not_by_its_name(fake, disk, partition):
    """giampaolo/psutil#1305, sflow/host-sflow#63: disk and partitions were added up."""
    fake.disk(disk, "8:0")
    fake.partition(partition, "8:1", disk=disk)
    stack = find_stack(mount_of("/data", number="8:1"), roots=fake.roots)
    assert roles(stack) == {partition: Role.TOP, disk: Role.LEAF}


@pytest.mark.parametrize(
    "source", ["/dev/root", "/dev/mapper/vg0-scratch", "/dev/disk/by-uuid/1-2", "UUID=1-2", ""]
)
def test_the_number_finds_the_device_whatever_the_source_is_called(lvm, source):
    """aristocratos/btop#140, #1249, aristocratos/bpytop#210, influxdata/telegraf#1386,
    collectd/collectd#2509: looked up by the name in the mount table, it was not found."""
    mount = mount_of("/scratch", source=source, number="253:0")
    assert find_stack(mount, roots=lvm.roots).top == ("dm-0",)


def test_without_sysfs_the_number_is_looked_up_in_diskstats(fake):
    fake.diskstats((DATA / "diskstats.txt").read_text())
    assert roles(find_stack(SAMPLE["/"], roots=fake.roots)) == {"nvme0n1p2": Role.TOP}


def test_the_head_of_multipath_nvme_knows_its_paths_and_a_partition_of_it_too(fake):
    fake.disk("nvme2n1", "259:9")
    fake.partition("nvme2n1p1", "259:10", disk="nvme2n1")
    for name, number in [("nvme2c0n1", "0:0"), ("nvme2c1n1", "0:1"), ("nvme2c0n11", "0:2")]:
        fake.disk(name, number, hidden="1")
    (head,) = find_stack(mount_of("/data", number="259:9"), roots=fake.roots).devices
    assert head.paths == ("nvme2c0n1", "nvme2c1n1")
    top, below = find_stack(mount_of("/data", number="259:10"), roots=fake.roots).devices
    assert (top.name, top.paths, below.name) == ("nvme2n1p1", head.paths, "nvme2n1")


def test_paths_that_sysfs_does_not_list_are_found_in_diskstats(fake):
    # Hidden paths share the number 0:0.
    fake.disk("nvme0n1", "259:1")
    row = "0 0 nvme0c{} 5 0 8 1 0 0 0 0 0 1 1\n"
    fake.diskstats(row.format("0n1") + row.format("1n1") + "259 1 nvme0n1" + " 0" * 11 + "\n")
    (head,) = find_stack(mount_of("/data", number="259:1"), roots=fake.roots).devices
    assert head.paths == ("nvme0c0n1", "nvme0c1n1")


@pytest.mark.parametrize(
    ("source", "others"),
    [
        ("/dev/nvme3n1", ("nvme8n1",)),
        ("/dev/nvme4n1", ("nvme8n1",)),
        ("/dev/mapper/vg-btr", ("nvme8n1",)),
        ("/dev/root", ()),
    ],
)
def test_a_btrfs_is_on_all_its_devices(fake, source, others):
    """henrygd/beszel#200, netdata/netdata#431: a btrfs has a number that no device has."""
    for number, name in enumerate(("nvme3n1", "nvme4n1", "nvme8n1")):
        fake.disk(name, f"259:{number}")
    fake.disk("dm-5", "253:5", dm__name="vg-btr")
    fake.btrfs("aaaa", "dm-5", "nvme3n1", "nvme4n1")
    if others:
        fake.btrfs("0000", *others)
    (fake.roots.sys / "fs" / "btrfs" / "features").mkdir()
    mount = mount_of("/mnt/btr", filesystem="btrfs", source=source)
    stack = find_stack(mount, roots=fake.roots)
    assert stack.top == ("dm-5", "nvme3n1", "nvme4n1")


def test_a_btrfs_that_sysfs_does_not_list_has_no_device_and_says_so(fake):
    stack = find_stack(SAMPLE["/mnt/btr"], roots=fake.roots)
    assert stack.devices == ()
    assert stack.reason == "the devices of the btrfs on /dev/nvme3n1 are not listed in sysfs"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/tank/data", "zfs hides its devices"),
        ("/mnt/nfs4", "nfs4 has no block device under it"),
        ("/mnt/vast", "nfs has no block device under it"),
        ("/mnt/gluster", "fuse.glusterfs has no block device under it"),
        ("/mnt/mfs", "fuse has no block device under it"),
        ("/mnt/smb", "cifs has no block device under it"),
        ("/mnt/weka", "from user space no kernel sees"),
        ("/gpfs/fs1", "gpfs has no block device under it"),
        ("/mnt/beegfs", "its client's own counters tell"),
        ("/dev/shm", "/dev/shm is tmpfs: it lives in memory"),
    ],
)
def test_a_filesystem_without_block_devices_says_why(fake, path, says):
    """canonical/lxd#13314, openzfs/zfs#313, sysstat/sysstat#257 (SPDK): no row,
    and no reason given."""
    stack = find_stack(SAMPLE[path], roots=fake.roots)
    assert stack.devices == ()
    assert says in (stack.reason or "")


def test_a_lustre_number_that_is_also_a_disk_is_not_that_disk(fake):
    fake.disk("sda", SAMPLE["/mnt/lustre"].major_minor)
    assert find_stack(SAMPLE["/mnt/lustre"], roots=fake.roots).devices == ()


def test_ntfs_through_fuseblk_is_on_its_block_device(fake):
    fake.disk("sda", "8:0")
    mount = mount_of("/mnt/ntfs", filesystem="fuseblk", number="8:0")
    assert find_stack(mount, roots=fake.roots).top == ("sda",)


def test_a_number_that_nothing_knows_is_said(fake):
    stack = find_stack(mount_of("/x", source="/dev/root", number="8:7"), roots=fake.roots)
    assert stack.reason == "ext4 on /dev/root names no block device (number 8:7)"


def looped(fake, dio, *, line="20 1 254:0 / / rw - ext4 /dev/vda rw"):
    image = fake.folder / "image"
    image.touch()
    fake.disk("vda", "254:0")
    fake.disk("loop0", "7:0", loop__backing_file=str(image), loop__dio=dio)
    fake.mountinfo(line + "\n")
    return find_stack(mount_of("/data", number="7:0"), roots=fake.roots)


def test_a_loop_device_is_the_headline_and_the_disk_of_its_file_is_below(fake):
    stack = looped(fake, "1")
    assert roles(stack) == {"loop0": Role.TOP, "vda": Role.LEAF}
    assert stack.notes == ()


def test_a_buffered_loop_says_once_that_the_disk_below_may_rest(fake):
    stack = looped(fake, "0")
    assert roles(stack) == {"loop0": Role.TOP, "vda": Role.LEAF}
    (note,) = stack.notes
    assert note.startswith("loop0 reads its file through the page cache")


def test_a_loop_over_a_file_in_memory_says_so(fake):
    stack = looped(fake, "1", line="20 1 0:30 / / rw - tmpfs tmpfs rw")
    assert roles(stack) == {"loop0": Role.TOP}
    assert stack.notes == (
        "the file under loop0: / is tmpfs: it lives in memory and has no storage under it",
    )


def test_a_loop_whose_file_is_gone_is_still_a_device(fake):
    fake.disk("loop0", "7:0", loop__backing_file="/gone/image (deleted)", loop__dio="1")
    stack = find_stack(mount_of("/data", number="7:0"), roots=fake.roots)
    assert stack.top == ("loop0",)
    assert stack.notes == ("the file under loop0 cannot be found: /gone/image (deleted)",)


@pytest.fixture
def overlay(fake):
    """Layers `upper` on sda and `lower` on sdb, by one mountinfo."""
    fake.disk("sda", "8:0")
    fake.disk("sdb", "8:16")
    for name in ("upper", "lower"):
        (fake.folder / name).mkdir()
    fake.mountinfo(
        f"20 1 8:0 / {fake.folder}/upper rw - ext4 a rw\n"
        f"21 1 8:16 / {fake.folder}/lower rw - ext4 b rw\n"
    )
    options = (f"lowerdir={fake.folder}/lower", f"upperdir={fake.folder}/upper", "workdir=/w")
    return mount_of(fake.folder / "merged", filesystem="overlay", options=options)


def test_an_overlay_is_on_the_devices_of_its_layers(fake, overlay):
    stack = find_stack(overlay, roots=fake.roots)
    assert stack.top == ("sda", "sdb")
    assert "overlay of 2 layers" in stack.notes[0]


def test_of_an_overlay_only_the_layer_that_holds_the_file_counts(fake, overlay):
    (fake.folder / "lower" / "file").touch()
    stack = find_stack(overlay, roots=fake.roots, path=fake.folder / "merged" / "file")
    assert stack.top == ("sdb",)
    (fake.folder / "upper" / "file").touch()
    stack = find_stack(overlay, roots=fake.roots, path=fake.folder / "merged" / "file")
    assert stack.top == ("sda",)


def test_a_folder_of_an_overlay_counts_all_layers_that_have_it(fake, overlay):
    for name in ("upper", "lower"):
        (fake.folder / name / "set").mkdir()
    stack = find_stack(overlay, roots=fake.roots, path=fake.folder / "merged" / "set")
    assert stack.top == ("sda", "sdb")


def test_layers_of_an_overlay_that_are_not_visible_here_are_named(fake):
    stack = find_stack(SAMPLE["/var/lib/docker/overlay2/x/merged"], roots=fake.roots)
    assert stack.devices == ()
    assert (stack.reason or "").startswith("the layer /u of the overlay is not visible from here; ")


def test_an_overlay_over_memory_has_no_device_and_says_so(fake, overlay):
    fake.mountinfo("20 1 0:30 / / rw - tmpfs tmpfs rw")
    stack = find_stack(overlay, roots=fake.roots)
    assert stack.devices == ()
    assert "it lives in memory" in (stack.reason or "")


def test_a_layer_on_a_loop_over_another_layers_disk_is_not_added_twice(fake, overlay):
    image = fake.folder / "lower" / "image"
    image.touch()
    fake.disk("loop0", "7:0", loop__backing_file=str(image), loop__dio="1")
    fake.mountinfo(
        f"20 1 7:0 / {fake.folder}/upper rw - ext4 a rw\n"
        f"21 1 8:16 / {fake.folder}/lower rw - ext4 b rw\n"
    )
    stack = find_stack(overlay, roots=fake.roots)
    assert stack.top == ("sdb",)
    assert "loop0 stands on sdb: only sdb is in the headline" in stack.notes


def test_layers_are_split_at_colons_that_are_not_escaped():
    mount = mount_of(
        "/m", filesystem="overlay", options=("lowerdir=/a\\:b:/c::/d", "lowerdir+=/e", "rw")
    )
    assert [str(layer) for layer in layers_of(mount)] == ["/a:b", "/c", "/d", "/e"]


def test_a_relative_layer_is_left_out():
    mount = mount_of("/m", filesystem="overlay", options=("lowerdir=lower:/l",))
    assert [str(layer) for layer in layers_of(mount)] == ["/l"]
