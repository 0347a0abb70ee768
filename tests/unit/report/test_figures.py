"""Figures: one message each, from the data; units, n and window; what is missing is said."""

from __future__ import annotations

import io
import itertools
import re
from typing import Any

import msgspec
import pytest
from PIL import Image

from ioprof.record.summary import Summary
from ioprof.report.figure import Figure
from ioprof.report.figures import draw_all
from ioprof.report.figures.style import DARK, LIGHT, Theme, theme_of
from ioprof.report.figures.timeline import draw as draw_timeline
from tests.unit.report import summaries
from tests.unit.report.timelines import BINS, timeline, timelines

LONG = "a-reader-with-a-name-much-longer-than-anybody-needs"
SIX_TOPOLOGIES = ("1x1", "1x2", "1x4", "1x8", "2x8", "4x8")
SIX_LOADERS = ("torch-files", "dali-files", LONG, "shards", "records", "columns")


def drawn(made: Summary, *, theme: Any = "light", known: bool = True) -> dict[str, Figure]:
    line = {"1x2-torch-files-cold": timeline("1x2-torch-files-cold", known=known)}
    return {figure.name: figure for figure in draw_all(made, line, theme=theme)}


def words(figure: Figure) -> str:
    """Every text of the picture: the SVG names each run of glyphs in a comment."""
    return " ".join(re.findall(r"<!-- (.*?) -->", figure.svg.decode(), re.DOTALL))


@pytest.fixture(scope="module")
def plain() -> dict[str, Figure]:
    return drawn(summaries.summary())


def test_the_figures_come_in_the_order_in_which_they_are_read(plain):
    assert list(plain) == [
        "bandwidth_vs_accelerators",
        "step_breakdown",
        "ceilings",
        "demand_by_topology",
        "timeline-1x2-torch-files-cold",
    ]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        (
            "bandwidth_vs_accelerators",
            "2 accelerators need 514 MB/s for AU 90 %; this mount delivered 20.2 MB/s (AU 3.5 %): "
            "reading from storage (fetch) is the bottleneck",
        ),
        (
            "step_breakdown",
            "With 2 accelerators and torch-files, reading from storage takes 78 % of each step of "
            "723 ms",
        ),
        (
            "ceilings",
            "1x2 with dali-files is limited by fetch, at 177 samples/s; "
            "the accelerators could take 5,000",
        ),
        (
            "demand_by_topology",
            "2 accelerators at AU 90 % ask 514 MB/s of storage, 257 MB/s each",
        ),
        (
            "timeline-1x2-torch-files-cold",
            "1x2 torch-files cold: storage delivered 20.2 MB/s and ranks waited for data "
            "75 % of the time",
        ),
    ],
)
def test_a_title_is_one_sentence_computed_from_the_data(plain, name, title):
    assert plain[name].title == title


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("bandwidth_vs_accelerators", ["bandwidth (MB/s)", "accelerators (topology"]),
        ("step_breakdown", ["time of one step (ms)"]),
        ("ceilings", ["samples per second, all ranks together (samples/s)"]),
        ("demand_by_topology", ["read bandwidth (MB/s)"]),
        (
            "timeline-1x2-torch-files-cold",
            ["(MB/s)", "(1/s)", "busy (%)", "(%)", "seconds since the first epoch began (s)"],
        ),
    ],
)
def test_axes_carry_their_units(plain, name, units):
    for unit in units:
        assert unit in words(plain[name])


def test_captions_say_n_and_window(plain):
    for name in ("bandwidth_vs_accelerators", "step_breakdown", "timeline-1x2-torch-files-cold"):
        assert "n = 12 blocks, 24 steps, in a window of 8.00 s" in plain[name].caption
    assert "n = 12 blocks" in plain["ceilings"].caption


def test_emulation_is_on_every_figure_and_on_none_of_a_real_accelerator(plain):
    said = "Emulated accelerator: NVIDIA A100-SXM4-80GB at 2,500 samples/s (MLPerf Training v3.1)"
    for figure in plain.values():
        assert said in figure.caption
        assert "Emulated accelerator" in words(figure)
    for figure in drawn(summaries.on_real(summaries.summary())).values():
        assert "mulated" not in figure.caption + words(figure)


def test_every_figure_can_be_read_without_being_seen(plain):
    assert "1x2 needs 514 MB/s" in plain["bandwidth_vs_accelerators"].alt
    assert "26 + 134 + 563 = 723 ms" in plain["step_breakdown"].alt
    assert "1x1 prep torch-files 800" in plain["ceilings"].alt
    assert "data wait 75 %" in plain["timeline-1x2-torch-files-cold"].alt


def test_a_png_has_twice_the_nominal_resolution(plain):
    for figure in plain.values():
        with Image.open(io.BytesIO(figure.png)) as picture:
            assert picture.width == 1600


def test_the_same_summary_gives_the_same_bytes(plain):
    again = drawn(summaries.summary())
    assert all(plain[name] == again[name] for name in plain)


def test_where_nothing_was_measured_every_figure_says_what_is_missing():
    figures = drawn(summaries.unmeasured(), known=False)
    missing = {
        "bandwidth_vs_accelerators": "No bandwidth was measured",
        "step_breakdown": "No step was measured",
        "ceilings": "No ceiling was measured",
        "demand_by_topology": "No topology has a demand",
        "timeline-1x2-torch-files-cold": "Not measured: no counter of this mount could be read",
    }
    assert list(figures) == list(missing)
    for name, text in missing.items():
        assert text in words(figures[name])


def test_six_topologies_of_six_loaders_with_long_names_are_all_drawn():
    made = summaries.summary(topologies=SIX_TOPOLOGIES, loaders=SIX_LOADERS)
    figures = drawn(made)
    for name in ("bandwidth_vs_accelerators", "step_breakdown", "ceilings", "demand_by_topology"):
        for topology in SIX_TOPOLOGIES:
            assert topology in words(figures[name])
    assert "32 accelerators need 8.22 GB/s" in figures["bandwidth_vs_accelerators"].title


def test_ceilings_too_far_apart_for_one_axis_from_zero_are_marks_on_a_logarithm():
    near = drawn(summaries.summary())["ceilings"]
    far = drawn(summaries.summary(topologies=("1x1", "4x8")))["ceilings"]
    assert "logarithmic" not in words(near)
    assert "(samples/s), logarithmic" in words(far)


def test_a_timeline_marks_where_an_epoch_begins_even_without_a_pause():
    made = summaries.summary()
    cell_id = "1x2-torch-files-cold"
    joined = msgspec.structs.replace(timeline(cell_id), epochs=[(0.0, 2.0), (2.0, 4.0)])
    alone = msgspec.structs.replace(joined, epochs=[(0.0, 4.0)])
    for line, marked in ((joined, True), (alone, False)):
        figure = draw_all(made, {cell_id: line}, theme="light")[-1]
        assert ("an epoch begins" in words(figure)) is marked
        assert "pause between epochs" not in words(figure)


def test_a_single_topology_and_loader_is_drawn():
    figures = drawn(summaries.summary(topologies=("1x1",), loaders=("torch-files",)))
    assert figures["demand_by_topology"].title.startswith("One accelerator at AU 90 % asks 257 MB")


def test_timelines_are_drawn_of_cells_that_trained_and_no_others():
    made = summaries.summary(topologies=("1x1",), loaders=("torch-files",))
    names = [figure.name for figure in draw_all(made, timelines(made), theme="light")]
    assert names[-2:] == ["timeline-1x1-torch-files-cold", "timeline-1x1-torch-files-warm"]
    assert len(names) == 6


def test_a_mount_without_a_counter_still_shows_what_the_step_marks_know():
    made = summaries.summary()
    cell = next(one for one in made.cells if one.id == "1x2-torch-files-cold")
    cell = msgspec.structs.replace(
        cell, storage_read_bytes_per_s=None, reasons={"storage_read_bytes_per_s": "no such counter"}
    )
    unread = msgspec.structs.replace(
        timeline(cell.id), read_bytes_per_s=[None] * BINS, reads_per_s=[None] * BINS
    )
    said = words(figure := draw_timeline(made, cell, unread, theme=LIGHT))
    assert figure.title == "1x2 torch-files cold: ranks waited for data 75 % of the time"
    assert "Not measured: no such counter" in said
    for tick in ("0.0", "1.0", "2.0", "3.0", "100"):
        assert f" {tick} " in f" {said} "


def test_a_negative_stall_is_hatched_and_named_as_noise():
    made = summaries.summary(topologies=("1x1",), loaders=("torch-files",))
    cells = tuple(
        msgspec.structs.replace(
            cell, step_s=summaries.estimate(0.07), fetch_stall_s=-0.01, prep_stall_s=0.0544
        )
        if cell.role == "cold"
        else cell
        for cell in made.cells
    )
    figure = drawn(msgspec.structs.replace(made, cells=cells))["step_breakdown"]
    assert "Hatched: a negative difference" in figure.caption
    assert "25.6 + 54.4 − 10.0 = 70.0 ms" in words(figure)
    assert "waiting for data takes 63 % of each step" in figure.title


def test_no_storage_ceiling_is_drawn_where_none_is_claimed():
    made = summaries.summary()
    limits = tuple(
        msgspec.structs.replace(
            one,
            storage=None,
            storage_read_bytes_per_s=None,
            bottleneck="client-limited",
            reasons={"storage": "the client was the limit"},
        )
        for one in made.ceilings
    )
    figures = drawn(msgspec.structs.replace(made, ceilings=limits))
    for name in ("bandwidth_vs_accelerators", "ceilings", "demand_by_topology"):
        caption = figures[name].caption
        assert "No storage ceiling is claimed: the client was the limit." in caption
        assert "(fio)" not in words(figures[name])
    assert "limited by the host's CPUs" in figures["ceilings"].title


def test_text_that_looks_like_mathematics_is_drawn_as_it_is():
    loader = "costs-$5-and-$6"
    figures = drawn(summaries.summary(topologies=("1x1",), loaders=(loader,)))
    assert loader in words(figures["step_breakdown"])


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_stand_out_3_to_1_and_words_4_5_to_1_from_the_paper(theme: Theme):
    for colour in (*theme.loaders, *theme.stages.values(), theme.ceiling):
        assert contrast(colour, theme.paper) >= 3.0, colour
    for colour in (theme.ink, theme.muted):
        assert contrast(colour, theme.paper) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_loaders_have_six_colours_and_both_themes_the_same_stages(theme: Theme):
    assert len(set(theme.loaders)) == 6
    assert list(theme.stages) == ["compute", "prep", "fetch", "storage"]
    assert all(a != b for a, b in itertools.pairwise(theme.stages.values()))


def test_the_dark_theme_is_drawn_on_dark_paper():
    figure = drawn(summaries.summary(), theme="dark")["ceilings"]
    with Image.open(io.BytesIO(figure.png)) as picture:
        corner = picture.convert("RGB").getpixel((2, 2))
    assert isinstance(corner, tuple)
    assert "#{:02x}{:02x}{:02x}".format(*corner) == theme_of("dark").paper
