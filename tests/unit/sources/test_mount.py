"""Right values of mountinfo lines, read by hand; ids and octal escapes as kernels print them."""

import os
from pathlib import Path

import pytest

from ioprof.errors import MeasureError
from ioprof.sources.mount import find_mount, parse_mountinfo, unescape
from ioprof.sources.source import Roots
from tests.unit.sources.fakesys import DATA, FakeSys


def one(line):
    (mount,) = parse_mountinfo(line)
    return mount


def sample():
    return {mount.path: mount for mount in parse_mountinfo((DATA / "mountinfo.txt").read_text())}


def test_every_line_of_the_sample_is_a_mount():
    lines = (DATA / "mountinfo.txt").read_text().splitlines()
    assert len(sample()) == len(lines) - 1 == 23


@pytest.mark.parametrize(
    ("path", "filesystem", "number"),
    [
        ("/", "ext4", "259:2"),
        ("/scratch", "xfs", "253:0"),
        ("/mnt/btr", "btrfs", "0:40"),
        ("/tank/data", "zfs", "0:41"),
        ("/mnt/lustre", "lustre", "11345:63958"),
        ("/mnt/gluster", "fuse.glusterfs", "0:58"),
        ("/var/lib/docker/overlay2/x/merged", "overlay", "0:64"),
        ("/mnt/sq", "squashfs", "7:0"),
    ],
)
def test_filesystem_and_number_of_the_sample(path, filesystem, number):
    assert (sample()[path].filesystem, sample()[path].major_minor) == (filesystem, number)


def test_a_subvolume_and_a_bind_mount_name_the_folder_that_is_mounted():
    assert sample()["/mnt/btr"].root == "/@data"
    assert sample()["/data"].root == "/sub"
    assert sample()["/data"].mount_id == 61


def test_options_of_the_mount_come_before_those_of_the_superblock():
    assert sample()["/mnt/sq"].options == ("ro", "relatime", "ro", "errors=continue")


def test_a_hash_in_a_source_is_escaped():
    assert sample()["/mnt/mfs"].source == "mfs#192.0.2.71:9421"


def test_ten_fields_without_a_tag_are_a_mount():
    """prometheus/node_exporter#1673: ten fields were too few."""
    mount = one("108 53 0:34 / /var/lib/nfs/rpc_pipefs rw,relatime - rpc_pipefs sunrpc rw")
    assert (mount.mount_id, mount.filesystem, mount.source) == (108, "rpc_pipefs", "sunrpc")
    assert mount.options == ("rw", "relatime", "rw")


@pytest.mark.parametrize("tags", ["", "shared:1 ", "shared:5 master:1 propagate_from:2 "])
def test_any_number_of_tags_is_passed_over(tags):
    mount = one(f"36 35 98:0 /mnt1 /mnt2 rw,noatime {tags}- ext3 /dev/root rw,errors=continue")
    assert (mount.root, mount.path, mount.source) == ("/mnt1", "/mnt2", "/dev/root")
    assert mount.options == ("rw", "noatime", "rw", "errors=continue")


@pytest.mark.parametrize(
    ("escaped", "path"),
    [
        ("/data/My\\040Set", "/data/My Set"),
        ("/tmp/tab\\011x", "/tmp/tab\tx"),
        ("/tmp/new\\012line", "/tmp/new\nline"),
        ("/tmp/b\\134s", "/tmp/b\\s"),
        ("/tmp/b\\134040", "/tmp/b\\040"),
        ("/mnt/with\\040space", "/mnt/with space"),
    ],
)
def test_octal_escapes_are_decoded_once(escaped, path):
    """prometheus/node_exporter#953, netdata/netdata#716, #1259, webmin/webmin#2833,
    uutils/coreutils#5678, moby/moby#38977: paths with blanks were not found."""
    assert unescape(escaped) == path
    assert one(f"49 27 0:43 / {escaped} rw - tmpfs x rw").path == path


def test_an_empty_source_shifts_no_column():
    """opencontainers/runtime-tools#652: an empty source shifted the columns."""
    mount = one("46 27 0:40 / /tmp/mp\\040dir rw,relatime - tmpfs  rw,size=4k")
    assert (mount.path, mount.filesystem, mount.source) == ("/tmp/mp dir", "tmpfs", "")
    assert mount.options == ("rw", "relatime", "rw", "size=4k")


def test_a_name_with_a_unicode_line_separator_stays_one_line():
    assert one("46 27 8:1 / /data/a\u2028b\x0cc rw - ext4 /dev/sda1 rw").path == (
        "/data/a\u2028b\x0cc"
    )


@pytest.mark.parametrize("text", ["", "\n\n", "not a mount\n", "1 2 3:4 / /x rw\n", "# a - b c\n"])
def test_what_is_no_mount_is_passed_over(text):
    assert parse_mountinfo(text) == ()


OVER = "46 27 0:40 / {0} rw,relatime - tmpfs a rw\n47 46 0:41 / {0} rw,relatime - tmpfs b rw\n"


def test_of_two_mounts_on_one_path_the_mount_id_decides(tmp_path):
    fake = FakeSys(tmp_path)
    fake.mountinfo(OVER.format(tmp_path))
    fake.answer_mount_id(47)
    assert find_mount(tmp_path, roots=fake.roots).source == "b"
    fake.answer_mount_id(46)
    assert find_mount(tmp_path, roots=fake.roots).source == "a"


def test_without_mount_ids_the_later_of_two_mounts_on_one_path_is_on_top(tmp_path):
    """prometheus/node_exporter#434: two entries of one path."""
    fake = FakeSys(tmp_path)
    fake.mountinfo("27 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + OVER.format(tmp_path))
    assert find_mount(tmp_path, roots=fake.roots).source == "b"


def test_without_mount_ids_the_longest_mount_path_wins_by_whole_names(tmp_path):
    (tmp_path / "data" / "set").mkdir(parents=True)
    fake = FakeSys(tmp_path)
    fake.mountinfo(
        f"1 0 8:1 / / rw - ext4 root rw\n2 1 8:2 / {tmp_path}/data rw - xfs right rw\n"
        f"3 1 8:3 / {tmp_path}/dat rw - xfs wrong rw\n"
    )
    assert find_mount(tmp_path / "data" / "set", roots=fake.roots).source == "right"


def test_the_mount_id_wins_over_device_numbers_that_do_not_fit(tmp_path):
    """henrygd/beszel#200, aristocratos/btop#140: matched by st_dev, none fits."""
    # As btrfs does: the mount is 0:40, files under it are 0:41 and in a subvolume 0:42.
    fake = FakeSys(tmp_path)
    fake.mountinfo(
        f"30 1 0:41 / /elsewhere rw - tmpfs wrong rw\n48 1 0:40 / {tmp_path} rw - btrfs right rw\n"
    )
    fake.answer_mount_id(48)
    assert find_mount(tmp_path, roots=fake.roots).source == "right"


def test_this_machine_agrees_about_the_root():
    mount = find_mount(Path("/proc/self"))
    assert (mount.path, mount.filesystem) == ("/proc", "proc")


def test_a_link_is_followed_to_the_mount_of_its_end(tmp_path):
    (tmp_path / "link").symlink_to("/proc")
    assert find_mount(tmp_path / "link").filesystem == "proc"


def test_a_path_that_is_not_there_is_an_error_in_one_sentence(tmp_path):
    with pytest.raises(MeasureError, match=r"No such file or directory\. Check the path"):
        find_mount(tmp_path / "nothing")


def test_a_path_under_no_mount_is_an_error(tmp_path):
    fake = FakeSys(tmp_path)
    fake.mountinfo("30 1 0:41 / /elsewhere rw - tmpfs x rw\n")
    with pytest.raises(MeasureError, match="under none of the 1 mounts"):
        find_mount(tmp_path, roots=fake.roots)


def test_a_missing_proc_is_an_error_and_leaves_no_descriptor(tmp_path):
    before = os.listdir("/proc/self/fd")  # noqa: PTH208 - a Path would be one more open file
    with pytest.raises(MeasureError, match="/proc"):
        find_mount(tmp_path, roots=Roots(proc=tmp_path / "none"))
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208
