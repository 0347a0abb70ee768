"""InfiniBand ports as sysfs shows them, and ethtool as a program in a folder on the PATH."""

from pathlib import Path

import pytest

from ioprof.record.reading import Layer, Scope, Unavailable
from ioprof.sources.infiniband import find, parse_counter, parse_ethtool
from ioprof.sources.source import Roots, Target

DATA = Path(__file__).parents[2] / "data" / "net"
ETHTOOL = (DATA / "ethtool_S_mlx5.txt").read_bytes()
PORT = "class/infiniband/mlx5_0/ports/1"


def look(roots):
    return find(Target(root_pid=1), roots=roots)


@pytest.fixture
def roots(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Roots(proc=tmp_path / "proc", sys=tmp_path / "sys", root=tmp_path)


@pytest.fixture
def port(roots):
    """The recorded tree."""
    for line in (DATA / "infiniband_tree.txt").read_text().splitlines():
        path, _, value = line.partition(" ")
        file = roots.sys / path.removeprefix("/sys/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value + "\n")
    return roots.sys / PORT


def one(roots):
    (source,) = look(roots)
    (reading,) = source.read()
    source.close()
    return reading


def test_words_of_four_bytes_are_bytes(roots, port):
    reading = one(roots)
    assert reading.counters == {
        "receive_bytes_total": 10_737_418_240,
        "transmit_bytes_total": 49_382_712,
        "receive_packets_total": 2_621_440,
        "transmit_packets_total": 262_144,
        "transmit_wait_ticks_total": 77,
    }
    assert (reading.source, reading.instance) == ("infiniband", "mlx5_0/1")
    assert (reading.layer, reading.scope) == (Layer.LINK, Scope.HOST)
    assert reading.note.startswith("InfiniBand at 200 Gb/sec (4X HDR): all traffic of the port")


@pytest.mark.parametrize("text", ["N/A (no PMA)\n", "", "\n", "-1", "12 34", "4294967295\n"])
def test_what_is_not_a_number_that_moves_is_none_and_never_zero(roots, port, text):
    assert parse_counter(text.encode()) is None
    (port / "counters" / "port_xmit_wait").write_text(text)
    reading = one(roots)
    assert reading.counters["transmit_wait_ticks_total"] is None
    assert reading.counters["receive_bytes_total"] == 10_737_418_240


def test_a_counter_that_the_kernel_refuses_is_none(roots, port):
    (port / "counters" / "port_xmit_packets").unlink()
    (port / "counters" / "port_xmit_packets").mkdir()  # opens, and cannot be read
    assert one(roots).counters["transmit_packets_total"] is None


def test_before_linux_4_5_the_wide_counters_lie_beside_those_that_stop(roots, port):
    (port / "counters_ext").mkdir()
    (port / "counters_ext" / "port_rcv_data_64").write_text("5000000000\n")
    (port / "counters" / "port_rcv_data").write_text("4294967295\n")
    reading = one(roots)
    assert reading.counters["receive_bytes_total"] == 20_000_000_000
    assert reading.counters["transmit_bytes_total"] == 49_382_712


def test_a_port_that_is_down_says_so(roots, port):
    (port / "state").write_text("1: DOWN\n")
    assert "(4X HDR), down: all traffic" in one(roots).note


def test_a_port_without_counters_is_named_and_the_others_go_on(roots, port):
    (roots.sys / "class" / "infiniband" / "mlx4_0" / "ports" / "2" / "counters").mkdir(parents=True)
    source, silent = look(roots)
    assert [r.instance for r in source.read()] == ["mlx5_0/1"]
    assert silent.source == "infiniband mlx4_0/2"
    source.close()


def test_an_adapter_that_is_unplugged_is_left_out(roots, port):
    (source,) = look(roots)
    for file in (port / "counters").iterdir():
        file.write_text("")
    assert list(source.read()) == []
    source.close()


def test_without_such_hardware_there_is_nothing_to_say(roots):
    assert look(roots) == []


def test_the_statistics_of_an_mlx5_interface():
    assert parse_ethtool(ETHTOOL) == {
        b"rx_packets": 1000,
        b"rx_bytes": 1_200_000,
        b"rx_vport_unicast_bytes": 10_900_000_000,
        b"tx_vport_unicast_bytes": 120_000_000,
        b"rx_vport_rdma_unicast_bytes": 0,
        b"rx_bytes_phy": 10_950_000_000,
        b"rx_prio0_bytes": 10_950_000_000,
    }


@pytest.fixture
def mlx5(roots):
    """Interface eth1 with the driver mlx5_core, and eth0 with another."""
    for name, driver in (("eth0", "virtio_net"), ("eth1", "mlx5_core")):
        folder = roots.sys / "class" / "net" / name / "device"
        folder.mkdir(parents=True)
        (folder / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
    return roots


def program(roots, script):
    file = roots.root / "usr" / "sbin" / "ethtool"
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_rdma_the_network_stack_and_the_port_are_told_apart(mlx5):
    program(mlx5, f'[ "$*" = "-S eth1" ] && exec /bin/cat {DATA}/ethtool_S_mlx5.txt')
    (source,) = look(mlx5)
    readings = list(source.read())
    source.close()
    assert [(r.source, r.instance, *r.counters.values()) for r in readings] == [
        ("ethtool.rdma", "eth1", 0, None),
        ("ethtool.vport", "eth1", 10_900_000_000, 120_000_000),
        ("ethtool.phy", "eth1", 10_950_000_000, None),
    ]
    assert {(r.layer, r.scope) for r in readings} == {(Layer.LINK, Scope.HOST)}
    assert all(r.t_s is not None for r in readings), "read in a thread of its own"


def test_an_ethtool_that_fails_says_its_last_words(mlx5):
    program(mlx5, 'echo "no stats available" >&2; exit 94')
    (source,) = look(mlx5)
    with pytest.raises(OSError, match="status 94: no stats available"):
        list(source.read())
    source.close()


def test_an_interface_that_is_gone_takes_no_other_with_it(mlx5):
    gone = mlx5.sys / "class" / "net" / "eth2" / "device"
    gone.mkdir(parents=True)
    (gone / "driver").symlink_to("../../../bus/pci/drivers/mlx5_core")
    program(mlx5, f'[ "$*" = "-S eth1" ] && exec /bin/cat {DATA}/ethtool_S_mlx5.txt')
    (source,) = look(mlx5)
    assert {r.instance for r in source.read()} == {"eth1"}
    source.close()


def test_without_ethtool_it_names_the_package(mlx5):
    (found,) = look(mlx5)
    assert isinstance(found, Unavailable)
    assert "RDMA on eth1" in found.reason
    assert found.remedy == "install the package ethtool"
