"""The text report: whole, within 79 columns, answer first, headroom last."""

from __future__ import annotations

import msgspec
import pytest

from ioprof.record.finding import Finding
from ioprof.record.summary import Summary
from ioprof.report.text import render
from tests.unit.report import summaries

GOLDEN = """\
Emulated accelerator: NVIDIA A100-SXM4-80GB at 2,500 samples/s (MLPerf Training
v3.1). It waits as long as the real one would and computes nothing.
2 accelerators need 514 MB/s for AU 90 %; this mount delivered 20.2 MB/s
(AU 3.5 %): reading from storage (fetch) is the bottleneck.

AU (vs synthetic): step time without reading ÷ step time with it
Cell                     AU  samples/s  ± MAD  steps/window  bottleneck
1x2 torch-files cold  3.5 %        177  2.0 %     24/8.00 s  fetch
1x2 torch-files warm   16 %        800  2.0 %     24/8.00 s  prep

Step time               step  = compute  + prep stall  + fetch stall
1x2 torch-files cold  723 ms    25.6 ms        134 ms         563 ms
1x2 torch-files warm  160 ms    25.6 ms        134 ms

Reading                  ingest    storage  IOPS  mean request  from cache
1x2 torch-files cold  20.0 MB/s  20.2 MB/s   305       65.5 kB         0 %
1x2 torch-files warm  90.4 MB/s      0 B/s     –             –       100 %
1x2 reads fetch       20.0 MB/s  20.2 MB/s   305       65.5 kB         0 %
Ingest is what training consumed. Storage by block.diskstats vda (wire, whole
  device).

Reconciliation        consumed  requested  storage  as expected
1x2 reads fetch         200 MB     200 MB   202 MB          yes
1x2 torch-files cold    200 MB     200 MB   202 MB          yes
  2 cells: Consumed, requested and storage bytes agree within 5 %.

Ceilings, samples/s  compute  prep  fetch  storage  bottleneck
1x2 torch-files        5,000   800    177      181  fetch
Storage ceiling: 20.4 MB/s (fio).

Required      AU  bandwidth            range      peak   IOPS  basis
1x2 steady  90 %   514 MB/s  498 MB – 529 MB  616 MB/s  7,837  measured

dataset  /data/images: 4,000 samples in 10 classes, 452 MB; per sample mean
         113 kB, median 98.0 kB, p95 250 kB, p99 600 kB
mount    /data (ext4 on /dev/vda)
counter  block.diskstats vda (wire). Counts every reader of the device
host     node-a: AMD EPYC 9654, 2 of 2 CPUs usable, 8.00 GiB, Linux 6.12.8
sampler  every 100 ms, at most 0.4 % of one CPU, 0 of 550 ticks missed

This mount feeds at most 0 accelerators at AU 90 %; the first limit is storage."""


def finding(level, **changes):
    made = Finding(level=level, what=f"A {level} thing.", evidence="Seen here.", remedy="Do this.")
    return msgspec.structs.replace(made, **changes)


def widest(text: str) -> int:
    return max(len(line) for line in text.splitlines())


def test_the_whole_text_of_a_small_run_is_as_it_was_read_and_approved():
    small = summaries.summary(topologies=("1x2",), loaders=("torch-files",))
    assert render(small) == GOLDEN


@pytest.mark.parametrize(
    "made",
    [
        summaries.summary(),
        summaries.unmeasured(),
        summaries.on_real(summaries.summary()),
        summaries.summary(topologies=("1x1", "1x2", "1x4", "1x8", "2x8", "16x8")),
        summaries.summary(dataset=summaries.dataset("/mnt/" + "deep/" * 60 + "images")),
        summaries.summary(dataset=summaries.dataset("/mnt/" + "d" * 300)),
        summaries.summary(loaders=("a-loader-with-the-longest-name-that-anybody-ever-gave-one",)),
        summaries.summary(findings=(finding("caution", evidence="/" + "x" * 200),)),
    ],
    ids=["plain", "missing", "real", "six", "deep", "long", "loader", "finding"],
)
def test_no_line_is_wider_than_79_columns(made: Summary):
    assert widest(render(made)) <= 79


def test_the_headroom_sentence_is_the_last_line():
    made = summaries.summary()
    assert render(made).splitlines()[-1] == made.headroom.sentence


def test_an_invalid_finding_stands_above_everything_else():
    made = summaries.summary(findings=(finding("note"), finding("caution"), finding("invalid")))
    lines = render(made).splitlines()
    assert lines[0] == "INVALID: A invalid thing."
    order = [lines.index(f"{level}: A {level} thing.") for level in ("caution", "note")]
    assert order == sorted(order)


def test_a_finding_of_a_cell_names_its_cell_and_is_said_once():
    told = finding("caution", cell="1x1-torch-files-cold")
    made = summaries.summary(findings=(told,))
    cells = (msgspec.structs.replace(made.cells[0], findings=(told,)), *made.cells[1:])
    text = render(msgspec.structs.replace(made, cells=cells))
    assert text.count("caution: [1x1-torch-files-cold] A caution thing.") == 1


def test_emulation_is_said_before_the_answer_and_never_of_a_real_accelerator():
    assert render(summaries.summary()).startswith("Emulated accelerator: NVIDIA A100")
    assert "mulated" not in render(summaries.on_real(summaries.summary()))


def test_a_partial_run_and_a_partial_cell_say_why():
    made = summaries.summary(partial="interrupted after 3 cells")
    cells = tuple(
        msgspec.structs.replace(cell, partial="stopped by Ctrl-C")
        if cell.id == "1x2-dali-files-cold"
        else cell
        for cell in made.cells
    )
    text = render(msgspec.structs.replace(made, cells=cells))
    assert "Partial: interrupted after 3 cells." in text
    assert "1x2 dali-files cold is partial: stopped by Ctrl-C." in text


def test_a_missing_number_is_a_dash_with_its_reason_and_never_zero():
    text = render(summaries.unmeasured())
    assert "– step_s of 8 rows: the trainer made no steps." in text
    row = next(line for line in text.splitlines() if line.startswith("1x1 torch-files cold"))
    assert "0" not in row.removeprefix("1x1 torch-files cold")


def test_a_negative_stall_is_shown_as_it_is():
    made = summaries.summary()
    cells = tuple(
        msgspec.structs.replace(cell, fetch_stall_s=-0.0064) if cell.role == "cold" else cell
        for cell in made.cells
    )
    assert "-6.4 ms" in render(msgspec.structs.replace(made, cells=cells))


def test_a_terminal_escape_in_a_path_is_made_visible():
    text = render(summaries.summary(dataset=summaries.dataset("/data/\x1b[31mred")))
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text


def test_no_storage_ceiling_is_claimed_where_the_client_was_the_limit():
    made = summaries.summary()
    why = {"storage": "the client was the limit"}
    limits = tuple(
        msgspec.structs.replace(
            one, storage=None, storage_read_bytes_per_s=None, bottleneck="prep", reasons=why
        )
        for one in made.ceilings
    )
    text = render(msgspec.structs.replace(made, ceilings=limits))
    assert "No storage ceiling is claimed: the client was the limit." in text
    assert "Storage ceiling:" not in text
