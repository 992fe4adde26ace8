"""The README is a page that is read in a minute, and each command on it exists."""

from __future__ import annotations

import re

import click
import yaml

from adaptor.cli.main import program
from tests.source_tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_read_in_a_minute_or_two() -> None:
    assert len(README.splitlines()) <= 112
    assert len(README.split()) <= 1200
    assert README.index("![") < 1000, "the picture comes first"


def test_the_first_screen_names_the_command_that_shows_it_and_the_one_that_tests_it() -> None:
    screen = README.splitlines()[:24]
    (demo,) = [line for line in screen if line.startswith("$ make demo ")]
    (test,) = [line for line in screen if line.startswith("$ make test ")]
    assert screen.index(demo) < screen.index(test)
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1] == "exec make test"


def test_the_authors_of_all_five_papers_are_credited() -> None:
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    papers = yaml.safe_load(cited)["references"]
    assert len(papers) == 5
    for page in (README, (ROOT / "docs" / "references.md").read_text(encoding="utf-8")):
        words = " ".join(page.split()).lower()
        for paper in papers:
            assert paper["title"].lower() in words
            for author in paper["authors"]:
                assert author["family-names"].lower() in words


def test_each_command_on_it_exists() -> None:
    context = click.Context(program)
    named = set(re.findall(r"\badaptor ([a-z]+)", README))
    assert named
    assert named <= {*program.list_commands(context), "of"}
