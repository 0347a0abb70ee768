from pathlib import Path

from ioprof.record.reading import Layer, Unavailable
from ioprof.sources.network import find, parse
from ioprof.sources.source import Roots, Target

DATA = Path(__file__).parents[2] / "data" / "net" / "proc_net_dev.txt"


def look(*arguments, **named):
    return find(*arguments, **named)


def make(tmp_path, text):
    (tmp_path / "proc" / "net").mkdir(parents=True)
    (tmp_path / "proc" / "net" / "dev").write_text(text)
    return Roots(proc=tmp_path / "proc", sys=tmp_path / "sys")


def test_receive_is_the_first_column_and_transmit_the_ninth():
    assert parse(DATA.read_bytes()) == {"lo": (1000, 1000), "eth0": (1200000, 640000)}


def test_a_wide_counter_may_touch_the_name():
    text = b"  eth0:18446744073709551615 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"
    assert parse(text) == {"eth0": (2**64 - 1, 7)}


def test_an_alias_keeps_its_colon():
    assert parse(b"eth0:1: 5 0 0 0 0 0 0 0 6 0 0 0 0 0 0 0\n") == {"eth0:1": (5, 6)}


def test_a_torn_number_is_no_interface():
    text = b"eth0: 5 0 0 0 0 0 0 0 x 0 0 0 0 0 0 0\neth1: 5 0 0 0 0 0 0 0 6\n"
    assert parse(text) == {"eth1": (5, 6)}


def test_loopback_is_an_instance_of_its_own(tmp_path):
    (source,) = look(Target(root_pid=1), roots=make(tmp_path, DATA.read_text()))
    lo, eth0 = source.read()
    assert (lo.instance, eth0.instance) == ("lo", "eth0")
    assert eth0.layer is Layer.LINK
    assert eth0.counters == {"receive_bytes_total": 1200000, "transmit_bytes_total": 640000}
    assert "never leaves" in lo.note
    source.close()


def test_a_bond_and_its_members_say_that_they_count_the_same_bytes(tmp_path):
    row = "{}: 5 0 0 0 0 0 0 0 6 0 0 0 0 0 0 0\n"
    roots = make(tmp_path, "".join(row.format(n) for n in ("bond0", "eth0", "eth1")))
    net = roots.sys / "class" / "net"
    (net / "bond0" / "bonding").mkdir(parents=True)
    (net / "bond0" / "bonding" / "slaves").write_text("eth0 eth1\n")
    (net / "eth0").mkdir()
    (net / "eth0" / "master").symlink_to("../bond0")
    (source,) = look(Target(root_pid=1), roots=roots)
    bond, member, other = source.read()
    assert "a bond of eth0, eth1: count it or them, never both" in bond.note
    assert "a member of bond0: count it or bond0, never both" in member.note
    assert "never both" not in other.note
    source.close()


def test_an_interface_that_comes_later_is_seen(tmp_path):
    roots = make(tmp_path, DATA.read_text())
    (source,) = look(Target(root_pid=1), roots=roots)
    assert len(list(source.read())) == 2
    with (roots.proc / "net" / "dev").open("a") as file:
        file.write("veth1: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n")
    assert [r.instance for r in source.read()] == ["lo", "eth0", "veth1"]
    source.close()


def test_absent_it_says_which_file(tmp_path):
    (found,) = look(Target(root_pid=1), roots=Roots(proc=tmp_path))
    assert isinstance(found, Unavailable)
