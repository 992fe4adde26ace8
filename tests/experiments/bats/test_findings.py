"""The slides' findings, judged on runs that are made to show them or not."""

from __future__ import annotations

from adaptor_experiments.bats.design import Settings
from adaptor_experiments.bats.experiment import FINDINGS, Cell, findings, numbers
from adaptor_experiments.claims import Bounds
from tests.experiments.bats.made_runs import made_runs

AS_THE_SLIDES = {
    "none": 100.0,
    "random": 97.0,
    "stochastic": 94.0,
    "daemon": 94.0,
    "perfect": 92.0,
    "migration": 94.5,
    "nothing lost": 93.0,
}


def runs(times=AS_THE_SLIDES, spread=None, won=None):
    """`spread`: by which the times of a way go up and down from order to order."""
    spreads, wins = spread or {"random": 2.0}, won or {"random": 1, "stochastic": 6}

    def relative(way, bag, order):
        return 100.0 if way == "none" else times[way] + 0.01 * bag + spreads.get(way, 0.5) * (order - 1)

    return made_runs(relative, wins_of(wins))


def wins_of(wins):
    return lambda way: wins.get(way, 5)


def judged(some, kind="levy"):
    return [Bounds(high=bound).judge(measure(Cell(some, kind, "fastest"))) for measure, bound in FINDINGS]


def verdicts(some):
    return [row[-1] for row in findings(some).rows]


def test_what_is_as_in_the_slides_holds():
    assert judged(runs()) == ["confirms"] * len(FINDINGS)
    assert {*verdicts(runs())} == {"holds in 6 of 6"}


def test_each_finding_fails_where_its_opposite_is_measured():
    slower = {**AS_THE_SLIDES, "random": 103.0, "stochastic": 102.0, "migration": 99.0, "nothing lost": 102.5}
    opposite = runs(slower, spread={"stochastic": 2.0}, won={"random": 6, "stochastic": 1})
    assert judged(opposite) == ["contradicts"] * len(FINDINGS)
    assert {*verdicts(opposite)} == {"does not hold in 6 of 6"}


def test_a_random_choice_that_copies_better_is_no_higher_error_rate():
    better = judged(runs(won={"random": 6, "stochastic": 1}))
    assert better.count("contradicts") == 1
    assert better[3] == "contradicts"


def test_one_bag_leaves_all_open():
    assert set(judged(runs().where(bag=0))) == {"open"}


def test_what_chance_may_have_made_is_open():
    def shaky(way, bag, order):
        return 100.0 if way == "none" else AS_THE_SLIDES[way] + 20 * (-1) ** bag

    assert judged(made_runs(shaky, wins_of({})), "normal")[:3] == ["open"] * 3


def test_the_table_has_a_figure_for_every_kind_and_budget():
    table = findings(runs())
    assert {len(row) for row in table.rows} == {len(table.headings)} == {2 + 6 + 1}
    assert "-5.97 [-5.98, -5.95]" in table.rows[1][2]


def test_the_numbers_of_the_slides_stand_beside_ours():
    rows = {row[1]: row[2:5] for row in numbers(Settings()).rows}
    assert rows["size of a sample"] == ["+/- 30", "30", "agrees"]
    assert rows["tasks on all machines, and spread over them"][1] == "7, 23"
    assert rows["bags, runs of each"] == ["30, 30", "30, 30", "agrees"]
    fewer = {row[1]: row[4] for row in numbers(Settings(bags=8, runs=8)).rows}
    assert fewer["bags, runs of each"] == "options --bags and --runs"
