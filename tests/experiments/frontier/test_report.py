"""The tables of made runs, and the page."""

from __future__ import annotations

import math

import msgspec
import pytest

from adaptor_experiments.commands.replay import replay
from adaptor_experiments.frontier import experiment
from adaptor_experiments.frontier.design import KNOWLEDGE, UNITS, WISHES, Row, Settings, Wish
from adaptor_experiments.frontier.experiment import counted, report_of, tables, violations
from adaptor_experiments.tables import Runs
from tests.simulation.invoking_replay import call

PLAIN = Row(
    bag="image", order=0, unit=60, known="unknown", sites="one", wish=Wish(),
    tasks=10, work=10.0, least=10.0, done=10, ended=True,
    cost=14.0, end=1.0, plain_cost=14.0, plain_end=1.0, best=1.2,
)  # fmt: skip


def row(wish: Wish, **figures) -> Row:
    return msgspec.structs.replace(PLAIN, wish=wish, **figures)


def test_a_mean_is_of_the_runs_that_are_done_and_can_be():
    runs = Runs(
        [
            row(Wish(budget=1.5), best=1.0),
            row(Wish(budget=1.5), best=4.0),
            row(Wish(budget=1.5), best=9.0, ended=False),
            row(Wish(budget=1.1), best=None),
            row(Wish(deadline=2.0), best=9.0, end=2.1),
        ]
    )
    assert counted(runs).geometric("best") == pytest.approx(2.0)
    assert math.isnan(Runs().geometric("best"))


def test_more_budget_is_never_later_and_a_later_deadline_never_dearer():
    found = violations(
        Runs(
            [
                row(Wish(budget=1.2), end=2.0),
                row(Wish(budget=1.5), end=3.0),
                row(Wish(budget=1.35), end=9.0, ended=False),
                row(Wish(deadline=2.0), cost=10.0, end=1.5),
                row(Wish(deadline=4.0), cost=12.0, end=1.5),
                row(Wish("cheap"), cost=10.0),
                row(Wish("balanced"), cost=8.0),
                row(Wish("fast"), cost=16.0),
            ]
        )
    )
    assert list(found.values()) == [[1.5], [1.2], [1.25], [0.5], [3.0]]


def test_the_page_has_the_picture_and_every_table(tmp_path):
    wished = [
        row(wish, unit=unit, known=known, cost=12.0, end=1.1, sure=[True, False])
        for unit in UNITS
        for known in KNOWLEDGE
        for wish in WISHES
    ]
    report = report_of(Runs(wished), Settings(orders=1, bags=("image",)), tmp_path)
    factors, budgets, deadlines, forecasts, checks = report.exhibits
    assert factors.rows[0] == ["one", "none", "unknown", *["1.20 (1.20)"] * 3]
    assert budgets.rows[0] == ["one", "1s", "1.1", *["1 of 1", "1.20", "1.20 (1.20)"] * 3]
    assert deadlines.rows[0] == ["one", "1s", "1.5", *["1 of 1", "0.73", "1.20 (1.20)"] * 3]
    assert forecasts.rows[:2] == [
        ["1s", "first forecast", "15 of 15", "0", "0%"],
        ["1s", "half of the tasks", "0 of 15", "0", "-"],
    ]
    assert checks.rows[-2][1] == f"9 of {9 * 9}"  # 1.1 × the work is less than 12 credits
    assert len(report.drawings) == 1
    assert tables(Runs(wished)) == list(report.exhibits)


@pytest.mark.nightly
def test_the_command_runs_two_bags_quickly_and_prints_the_tables(monkeypatch, tmp_path):
    asked: list[experiment.Piece] = []

    def made(piece):
        asked.append(piece)
        return [
            row(wish, bag=piece.bag, unit=piece.unit, known=piece.known, sites=piece.sites)
            for wish in piece.wishes
        ]

    monkeypatch.setattr(experiment, "EXPERIMENT", msgspec.structs.replace(experiment.EXPERIMENT, run=made))
    command = ["budget-frontier", "--quick", "--processes", "1", "--output", tmp_path / "out"]
    result = call(replay, *command)
    assert result.exit_code == 0, result.output
    there = len(asked)
    assert call(replay, *command).output == result.output
    assert len(asked) == there, "what was run is not run again"
    assert {(each.bag, each.order) for each in asked} == {("image", 0), ("levy", 0)}
    assert "How many times the best it is" in result.output
    assert "budget (one): 1.20 (unknown), 1.20 (earlier), 1.20 (time) times the best" in result.output
    assert "budget (donated): 1.20 (unknown), 1.20 (time) times the best" in result.output
