"""The HTML report: safe, self-contained, in both themes, in the order in which it is read."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import msgspec
import pytest

from ioprof.record.finding import Finding
from ioprof.record.store import RunDirectory
from ioprof.report.figure import Figure
from ioprof.report.page import render
from ioprof.report.write import write
from tests.unit.report import summaries
from tests.unit.report.timelines import timelines

LIGHT_SVG, DARK_SVG = b"<svg id='light'/>", b"<svg id='dark'/>"
VOID = {"meta", "img", "br", "link", "hr"}


def figures(svg: bytes) -> list[Figure]:
    return [
        Figure(name=name, title="A title", caption="n = 3", alt="Said.", png=b"png", svg=svg)
        for name in ("ceilings", "timeline-1x1-torch-files-cold")
    ]


def page(made=None) -> str:
    made = made or summaries.summary()
    return render(made, figures(LIGHT_SVG), figures(DARK_SVG))


class Outline(HTMLParser):
    """Tags as they open and close, with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def outline(text: str) -> Outline:
    parser = Outline()
    parser.feed(text)
    parser.close()
    return parser


def test_every_tag_that_opens_closes():
    assert outline(page()).open == []
    assert outline(page(summaries.unmeasured())).open == []


def test_names_from_outside_cannot_become_markup():
    evil = '<script>alert("x")</script>'
    finding = Finding(level="caution", what=evil, evidence=evil, remedy=evil, cell=evil)
    made = summaries.summary(
        dataset=summaries.dataset(f"/data/{evil}"),
        loaders=(evil,),
        command=("ioprof", evil),
        findings=(finding,),
        sources={evil: evil},
        partial=evil,
    )
    text = page(made)
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 10


def test_the_page_asks_nothing_of_the_network_and_runs_nothing():
    text = page()
    for tag, attributes in outline(text).seen:
        assert tag not in {"script", "iframe", "object", "embed", "link"}
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in {"src", "href", "srcset", "poster", "action"}:
                assert value is not None
                assert value.startswith("data:image/svg+xml;base64,")
    assert not re.search(r"https?://|@import|url\(", text)


def test_both_themes_are_inlined_and_chosen_by_the_reader():
    text = page()
    for svg in (LIGHT_SVG, DARK_SVG):
        assert text.count(base64.b64encode(svg).decode()) == 2
    assert "@media (prefers-color-scheme: dark)" in text
    assert "@media print" in text


def test_pictures_have_words_and_tables_have_headers():
    seen = outline(page()).seen
    pictures = [attributes for tag, attributes in seen if tag == "img"]
    assert len(pictures) == 4
    assert all(attributes["alt"] == "A title. Said." for attributes in pictures)
    headers = [attributes for tag, attributes in seen if tag == "th"]
    assert headers
    assert all(attributes["scope"] in {"col", "row"} for attributes in headers)
    tables = sum(tag == "table" for tag, _ in seen)
    assert tables == sum(tag == "caption" for tag, _ in seen) == 5


def test_the_answer_comes_first_and_how_to_read_it_last():
    caution = Finding(level="caution", what="Careful.", evidence="Seen.", remedy="Do.")
    invalid = Finding(level="invalid", what="Wrong.", evidence="Seen.", remedy="Redo.")
    text = page(summaries.summary(findings=(caution, invalid)))
    order = [
        "Wrong.",
        "Emulated accelerator:",
        "<h1>",
        "This mount feeds at most 0 accelerators",
        "Careful.",
        "Key numbers by cell",
        ">Figures<",
        "Ceilings and demand",
        "What it was measured on",
        "How to read it",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_numbers_stand_with_unit_n_and_spread():
    text = page()
    for part in ("20.2 MB/s", "170–184", "24 steps<br>8.00 s", "65.5 kB", "1.01", "0.4 % of one"):
        assert part in text


def test_a_missing_number_is_a_dash_and_its_reason_is_listed():
    text = page(summaries.unmeasured())
    assert "the trainer made no steps" in text
    assert "None" not in text


def test_real_training_shows_its_proof():
    text = page(summaries.on_real(summaries.summary()))
    assert "loss 2.31 to 1.9, weights changed, ranks hold equal weights" in text
    assert "mulated" not in text


@pytest.mark.parametrize("known", [True, False], ids=["measured", "missing"])
def test_writing_leaves_pictures_and_page_in_the_run_directory(tmp_path, known):
    made = summaries.summary(topologies=("1x1",), loaders=("torch-files",))
    if not known:
        made = msgspec.structs.replace(
            summaries.unmeasured(), cells=summaries.unmeasured().cells[:3]
        )
    run = RunDirectory(tmp_path / "run")
    run.root.mkdir()
    write(run, made, timelines(made, known=known))
    names = {path.name for path in run.figures.iterdir()}
    assert {"ceilings.png", "ceilings.svg", "demand_by_topology.png"} <= names
    assert all((run.figures / name).stat().st_size > 1000 for name in names)
    assert run.page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
