"""What each counter saw of a known amount, by hand."""

import pytest

from ioprof.calibration.looks import Look, candidates
from ioprof.record.headline import Trial
from ioprof.record.reading import Layer, Reading, Role, Scope


def reading(source, instance, value, *, layer=Layer.WIRE, scope=Scope.DEVICE, role=None):
    name = {Layer.APP: "requested_bytes_total", Layer.LINK: "receive_bytes_total"}
    return Reading(
        source=source,
        instance=instance,
        layer=layer,
        scope=scope,
        counters={name.get(layer, "read_bytes_total"): value},
        role=role,
    )


def look(t_s, *readings):
    return Look(t_s=t_s, readings=readings)


def trial(access="read", read_bytes=1000):
    return Trial(access=access, read_bytes=read_bytes, page_bytes=read_bytes, seconds=1.0)


def test_others_work_is_taken_off():
    """50 in half a second at rest; then 1,200 in 2 s, of which 200 are others': 1,000 ÷ 1,000."""
    idle = (look(0.0, reading("nfs", "/a", 0)), look(0.5, reading("nfs", "/a", 50)))
    before, after = look(1.0, reading("nfs", "/a", 100)), look(3.0, reading("nfs", "/a", 1300))
    (found,) = candidates([(trial(), before, after)], idle=idle)
    assert found.background_bytes_per_s == 100
    assert found.ratios == {"read": pytest.approx(1.0)}


def test_the_devices_on_top_are_added_and_those_below_left_out():
    def at(t_s, a, b, below):
        return look(
            t_s,
            reading("block.diskstats", "sda", a, role=Role.TOP),
            reading("block.diskstats", "sdb", b, role=Role.TOP),
            reading("block.diskstats", "sdc", below, role=Role.LEAF),
        )

    (found,) = candidates(
        [(trial(), at(1, 0, 0, 0), at(2, 400, 600, 9000))], idle=(at(0, 0, 0, 0), at(1, 0, 0, 0))
    )
    assert found.instances == ("sda", "sdb")
    assert found.ratios["read"] == 1.0


def test_every_interface_of_a_host_stands_for_itself():
    def at(eth, lo):
        return look(
            0.0,
            reading("net", "eth0", eth, layer=Layer.LINK, scope=Scope.HOST),
            reading("net", "lo", lo, layer=Layer.LINK, scope=Scope.HOST),
        )

    found = candidates([(trial(), at(0, 0), at(1040, 7))], idle=(at(0, 0), at(0, 0)))
    assert [c.instances for c in found] == [("eth0",), ("lo",)]
    assert [c.ratios["read"] for c in found] == [pytest.approx(1.04), pytest.approx(0.007)]


@pytest.mark.parametrize("after", [None, 5])
def test_a_counter_that_fell_or_is_unknown_has_no_ratio(after):
    one = look(0.0, reading("nfs", "/a", 10))
    two = look(1.0, reading("nfs", "/a", after))
    (found,) = candidates([(trial(), one, two)], idle=(one, one))
    assert found.ratios == {"read": None}


def test_an_instance_that_is_gone_leaves_no_ratio():
    one = look(0.0, reading("nfs", "/a", 10), reading("nfs", "/b", 10))
    two = look(1.0, reading("nfs", "/a", 1010))
    (found,) = candidates([(trial(), one, two)], idle=(one, one))
    assert found.ratios == {"read": None}


def test_what_could_not_be_read_has_no_ratio():
    one = look(0.0, reading("nfs", "/a", 10))
    (found,) = candidates([(trial(read_bytes=0), one, one)], idle=(one, one))
    assert found.ratios == {"read": None}
