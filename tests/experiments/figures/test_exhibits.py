"""The page of an experiment, as a browser gets it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from adaptor_experiments.figures.canvas import Panels
from adaptor_experiments.figures.exhibits import Exhibit, Report, picture, write
from adaptor_simulation.files import ReplayError


class Run(msgspec.Struct):
    number: int = 7


class Structure(HTMLParser):
    """The path of every element, in the order of the page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, ...]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        kind = dict(attributes).get("class")
        name = f"{tag}.{kind}" if kind else tag
        self.seen.append((*self.open, name))
        if tag not in ("meta", "img"):
            self.open.append(name)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().partition(".")[0] == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)


@pytest.fixture
def whole(tmp_path: Path) -> str:
    table = Exhibit(
        name="some", title="A table", headings=("a", "b"), rows=[["1", "<2>"], ["3", "words " * 20]],
        remarks=("why",),
    )  # fmt: skip
    report = Report(
        title="T & T",
        conclusion=("found 3 < 4",),
        drawings=[Panels(3).save(tmp_path / "f.svg", "A figure")],
        setting="so",
        exhibits=[table],
        remarks=("elsewhere",),
    )
    write(report, [Run()], tmp_path)
    assert (tmp_path / "runs.csv").read_text() == "number\n7\n"
    assert (tmp_path / "tables.md").read_text().splitlines()[2:5] == [
        "| a | b |",
        "| --- | --- |",
        "| 1 | <2> |",
    ]
    assert (tmp_path / "some.csv").read_text().splitlines()[:2] == ["a,b", "1,<2>"]
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_conclusion_comes_first_then_the_figures_then_the_tables(whole: str) -> None:
    names = [path[-1] for path in Structure(whole).seen if path[:2] == ("html", "body")]
    order = ["h1", "section.conclusion", "figure", "section.panel", "div.scroll"]
    assert [names.index(name) for name in order] == sorted(names.index(name) for name in order)
    assert "found 3 &lt; 4" in whole.partition("</section>")[0]


def test_every_table_scrolls_in_a_box_of_its_own_and_sentences_are_wrapped(whole: str) -> None:
    seen = Structure(whole).seen
    tables = [path for path in seen if path[-1] == "table"]
    assert tables
    assert all("div.scroll" in path for path in tables)
    assert sum(path[-1] == "td.words" for path in seen) == 1
    assert ".scroll { overflow-x: auto" in whole


def test_it_is_readable_in_the_dark_and_needs_nothing_from_outside(whole: str) -> None:
    assert "prefers-color-scheme: dark" in whole
    assert "background: #fff" in whole.partition("\nfigure {")[2].partition("}")[0], "figures have dark lines"
    assert whole.count("data:image/svg+xml;base64,") == 1
    assert 'src="http' not in whole


def test_all_text_is_escaped(whole: str) -> None:
    texts = Structure(whole).texts
    assert "<2>" in texts["td"]
    assert "T & T" in texts["h1"]


def test_a_picture_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r"none\.svg"):
        picture("none", tmp_path / "none.svg")
