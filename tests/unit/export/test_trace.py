"""The trace for Perfetto: what a counter's track sums to, and that slices nest."""

import io
import itertools
import json
from collections import defaultdict

import pytest

from ioprof.export import trace
from tests.unit.export import recorded


def events_of(run):
    out = io.BytesIO()
    trace.write(run, out)
    found = json.loads(out.getvalue(), parse_constant=lambda name: pytest.fail(name))
    assert found["displayTimeUnit"] == "ms"
    return found["traceEvents"]


def summed(events, track):
    """The integral of a track: each value holds until the next one."""
    told = [(e["ts"] / 1e6, e["args"]["value"]) for e in events if e["name"] == track]
    assert told == sorted(told, key=lambda one: one[0])
    assert told[-1][1] == 0.0, "nothing holds beyond the last look"
    return sum(v * (b - a) for (a, v), (b, _) in itertools.pairwise(told))


def test_a_counters_track_sums_to_what_it_grew_by(tmp_path):
    events = events_of(recorded.write(tmp_path / "run"))
    track = "block.diskstats vda read_bytes per second"
    told = [(e["ts"], e["args"]["value"]) for e in events if e["name"] == track]
    # 1,000 B in the first 0.1 s, none in the second, begun anew in the third, 200 B in the last.
    assert told == [
        (0.0, pytest.approx(10_000)),
        (pytest.approx(1e5), 0.0),
        (pytest.approx(2e5), 0.0),
        (pytest.approx(3e5), pytest.approx(2_000)),
        (pytest.approx(4e5), 0.0),
    ]
    assert summed(events, track) == pytest.approx(1_200)
    (reset,) = [e for e in events if e["ph"] == "i"]
    assert reset["ts"] == pytest.approx(2e5)
    assert "vda read_bytes_total began to count anew" in reset["name"]


def test_what_the_kernel_does_not_keep_has_no_track(tmp_path):
    events = events_of(recorded.write(tmp_path / "run"))
    assert not any("merges" in e["name"] for e in events)


def test_a_gauge_is_told_when_it_changes(tmp_path):
    events = events_of(recorded.write(tmp_path / "run"))
    told = [e["args"]["value"] for e in events if e["name"] == "block.diskstats vda in_flight"]
    assert told == [3, 5]


def test_slices_of_a_rank_nest(tmp_path):
    events = events_of(recorded.write(tmp_path / "run"))
    slices = [e for e in events if e["ph"] == "X"]
    assert [e["name"] for e in slices] == [
        "epoch 0", "step 0", "wait for data", "step 1", "wait for data",
    ]  # fmt: skip
    threads = defaultdict(list)
    for one in slices:
        threads[one["pid"], one["tid"]].append(one)
    for found in threads.values():
        open_until: list[float] = []
        for one in sorted(found, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= one["ts"] + 1e-3:
                open_until.pop()
            end = one["ts"] + one["dur"]
            assert not open_until or end <= open_until[-1] + 1e-3
            open_until.append(end)
    # The second step says that it waited longer than it took: it waited for all of it.
    assert slices[4]["dur"] == pytest.approx(slices[3]["dur"])


def test_every_event_has_what_the_format_asks_for(tmp_path):
    events = events_of(recorded.write(tmp_path / "run", cells=("a", "b")))
    assert {e["ph"] for e in events} == {"M", "C", "i", "X"}
    for one in events:
        assert isinstance(one["pid"], int) and isinstance(one["tid"], int)
        assert one["ph"] == "M" or one["ts"] >= 0
    named = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert named == ["a, n1", "b, n1"]
