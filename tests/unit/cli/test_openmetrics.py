"""What a scraper gets: parsed back with the parsers of prometheus_client."""

from __future__ import annotations

import socket
import urllib.request

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as parse_old_text

from ioprof.cli.openmetrics import SIZES, Address, Exporter, Listener, parse_address
from ioprof.errors import UsageError
from ioprof.live.looks import Look, Pair
from ioprof.record import sizes
from ioprof.record.reading import Layer, Number, Reading, Role, Scope
from ioprof.sources.registry import FACTS

BLOCK = Reading(
    source="block.diskstats",
    instance="vda",
    layer=Layer.WIRE,
    scope=Scope.DEVICE,
    role=Role.TOP,
    counters={"read_bytes_total": 2**53, "read_operations_total": None},
    gauges={"in_flight": 3},
)
CLIENT = Reading(
    source="process.block",
    instance='a "b"\n\udcff',
    layer=Layer.CLIENT,
    scope=Scope.PROCESS,
    counters={"read_bytes_total": 0},
)
LABELS = {"source": "block.diskstats", "instance": "vda", "layer": "wire", "scope": "device"}


def exporter(*readings: Reading, silent: dict[str, str] | None = None) -> Exporter:
    made = Exporter()
    pairs = tuple(Pair(before=None, now=reading) for reading in readings)
    made.look = Look(t_s=1.0, pairs=pairs, silent=silent or {})
    return made


def families(one: Exporter):
    registry = CollectorRegistry()
    registry.register(one)
    text = generate_latest(registry).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_values_labels_and_units_are_those_of_the_readings():
    found = families(exporter(BLOCK, CLIENT))
    read = found["ioprof_read_bytes"]
    assert (read.type, read.unit) == ("counter", "bytes")
    first, second = read.samples
    assert first.name == "ioprof_read_bytes_total"
    assert first.value == 2**53
    assert first.labels == LABELS | {"role": "top"}
    assert second.value == 0.0
    assert second.labels["instance"] == 'a "b"\n?', "a path may hold anything"
    assert "role" not in second.labels
    assert found["ioprof_in_flight"].type == "gauge"
    assert found["ioprof_in_flight"].samples[0].value == 3.0


def test_the_help_text_says_where_each_source_has_it_from_and_what_it_gets_wrong():
    said = families(exporter(BLOCK, CLIENT))["ioprof_read_bytes"].documentation
    assert "block.diskstats (wire, device): /proc/diskstats: columns 6" in said
    assert "process.block (client, process): /proc/PID/io" in said
    assert "0 on FUSE" in said


def test_a_value_that_is_not_known_is_left_out_and_a_silent_source_has_its_reason():
    found = families(exporter(BLOCK, silent={"nvml": "there is no driver"}))
    assert "ioprof_read_operations" not in found
    (silent,) = found["ioprof_source_unavailable"].samples
    assert silent.labels == {"source": "nvml", "reason": "there is no driver"}
    assert silent.value == 1.0


def test_request_sizes_are_one_histogram():
    counters: dict[str, Number | None] = dict.fromkeys(sizes.names(), 0)
    counters |= {sizes.bucket(4096): 5, sizes.bucket(10**9): 2}
    sized = Reading(
        source="block.diskstats",
        instance="vda",
        layer=Layer.WIRE,
        scope=Scope.DEVICE,
        counters=counters,
    )
    found = families(exporter(sized))
    assert [name for name in found if "size" in name or "requests" in name] == [SIZES]
    assert found[SIZES].type == "histogram"
    told = {sample.labels["le"]: sample.value for sample in found[SIZES].samples}
    assert (told["2048.0"], told["4096.0"], told["16777216.0"]) == (0.0, 5.0, 5.0)
    assert told["+Inf"] == 7.0


def test_before_the_first_look_only_the_program_is_named():
    assert set(families(Exporter())) == {"ioprof_build"}


def test_no_counter_has_the_name_of_a_gauge():
    names = {name for fact in FACTS for name in fact.counters}
    counters = {name.removesuffix("_total") for name in names if name.endswith("_total")}
    assert not counters & names


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=1.0.0", "text/plain"])
def test_a_scraper_gets_the_format_that_it_asks_for(accept):
    with Listener(exporter(BLOCK), address=Address("127.0.0.1", 0)) as listener:
        request = urllib.request.Request(listener.address.url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=5) as answer:
            kind, text = answer.headers["Content-Type"], answer.read().decode()
    assert kind.startswith(accept.partition(";")[0])
    parse = text_string_to_metric_families if "openmetrics" in accept else parse_old_text
    values = {s.name: s.value for family in parse(text) for s in family.samples}
    assert values["ioprof_read_bytes_total"] == 2**53


def test_a_port_in_use_is_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=rf"127\.0\.0\.1:{port} is in use"):
            Listener(Exporter(), address=Address("127.0.0.1", port))


def test_an_address_of_another_machine_is_a_sentence():
    with pytest.raises(UsageError, match="no address of this machine"):
        Listener(Exporter(), address=Address("192.0.2.1", 0))


@pytest.mark.parametrize(
    ("text", "address", "url"),
    [
        ("127.0.0.1:9400", ("127.0.0.1", 9400), "http://127.0.0.1:9400/metrics"),
        (":9400", ("127.0.0.1", 9400), "http://127.0.0.1:9400/metrics"),
        ("localhost:9400", ("127.0.0.1", 9400), "http://127.0.0.1:9400/metrics"),
        ("127.8.9.1:1", ("127.8.9.1", 1), "http://127.8.9.1:1/metrics"),
        ("[::1]:9400", ("::1", 9400), "http://[::1]:9400/metrics"),
    ],
)
def test_loopback_addresses_are_taken(text, address, url):
    parsed = parse_address(text, anywhere=False)
    assert parsed == address
    assert parsed.url == url


@pytest.mark.parametrize("text", ["0.0.0.0:9400", "[::]:9400", "192.0.2.7:9400", "[2001:db8::1]:1"])
def test_others_are_refused_unless_asked_for(text):
    with pytest.raises(UsageError, match="--listen-anywhere"):
        parse_address(text, anywhere=False)
    assert parse_address(text, anywhere=True).port in (9400, 1)


@pytest.mark.parametrize(
    "text", ["9400", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536", "host:9400", "::1:9400", ":-1"]
)
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match=r"127\.0\.0\.1:9400|\[::1\]:9400"):
        parse_address(text, anywhere=True)
