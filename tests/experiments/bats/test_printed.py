"""The numbers of the slides beside ours."""

from __future__ import annotations

from pathlib import Path

from adaptor_experiments.bats.design import Settings
from adaptor_experiments.bats.findings import findings
from adaptor_experiments.bats.printed import compared, left_out, numbers
from adaptor_experiments.bats.tables import tables
from tests.experiments.bats.made_runs import made_runs

RUNS = made_runs(lambda way, bag, order: 100.0 - bag, lambda way: 5)
HERE = Path(__file__).parents[3]


def test_what_the_slides_print_for_their_method_is_what_runs_here():
    ours = {each.what: (each.paper, each.ours) for each in numbers(Settings())}
    assert ours["size of a sample"] == ("+/- 30", "30")
    assert ours["tasks on all machines, and spread over them"][1] == "7, 23"
    assert ours["charging unit (ATU)"][1] == "1 hour"
    assert ours["re-evaluation"][1].startswith("every 5 minutes")
    assert ours["waiting tasks at which migration begins"][1] == "30"
    assert ours["bags, runs of each"][0] == ours["bags, runs of each"][1] == "30, 30"


def test_fewer_runs_than_the_slides_are_said():
    ours = {each.what: each for each in numbers(Settings(bags=8, runs=8))}
    assert ours["bags, runs of each"].reason == "options --bags and --runs"


def test_what_shows_a_reason_exists():
    titles = " ".join(each.title for each in (*tables(RUNS), findings(RUNS)))
    for each in numbers(Settings()):
        shown = each.shown_by
        if shown.startswith("tests/"):
            assert (HERE / shown).is_file(), shown
        elif shown.startswith("table "):
            assert shown.removeprefix("table ").strip("“”") in titles, shown


def test_the_market_is_left_out_and_said():
    text = " ".join(" ".join(row) for row in left_out().rows)
    for each in ("18,000 tasks", "t1.micro", "Bidding", "Spot Market Findings", "8 minutes"):
        assert each in text
    assert all(all(row) for row in compared(Settings()).rows)
