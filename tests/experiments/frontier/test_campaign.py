"""A bag with some wishes, run by the parts of the daemon that decide."""

from __future__ import annotations

import itertools
import math

import msgspec
import pytest

from adaptor_experiments.forecasts.site_run import submitted
from adaptor_experiments.frontier import experiment
from adaptor_experiments.frontier.design import (
    KNOWLEDGE,
    SINGLE,
    UNITS,
    WISHES,
    Settings,
    Shape,
    Wish,
    site_of,
    sites_of,
)
from adaptor_experiments.frontier.experiment import Piece, earlier_of, pieces, run_piece

TASKS = [100.0, 300.0] * 30
WORK = math.fsum(TASKS) / 3600


def piece(*wishes: Wish, known="unknown", unit=60, sites="one") -> Piece:
    return Piece("image", 0, unit, known, sites, 1, wishes)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(experiment, "tasks_of", lambda bag, seed, order: TASKS)


def test_a_run_without_a_wish_is_measured_by_itself(small):
    (row,) = run_piece(piece(Wish()))
    assert row.ended
    assert row.done == row.tasks == len(TASKS)
    assert row.work == pytest.approx(WORK)
    assert row.cost >= row.work
    assert (row.slowdown, row.plain_cost) == (1.0, row.cost)
    assert row.best >= 1
    assert str(row.wish) == row.kind == "none"


@pytest.mark.parametrize("known", KNOWLEDGE)
def test_a_wish_is_measured_by_the_run_without_one(small, known):
    plain, budget, deadline = run_piece(piece(Wish(), Wish(budget=4.0), Wish(deadline=8.0), known=known))
    assert budget.budget == pytest.approx(4 * WORK)
    assert budget.cost <= budget.budget
    assert budget.roomy
    assert deadline.deadline == pytest.approx(8 * plain.end)
    assert deadline.kept
    assert math.isinf(budget.deadline)
    assert (str(budget.wish), deadline.kind) == ("budget 4", "deadline")


def test_a_bag_that_its_budget_cannot_pay_for_ends_paused(small):
    row = run_piece(piece(Wish(), Wish(budget=0.5)))[-1]
    assert not row.ended
    assert not row.kept
    assert not row.possible
    assert 0 < row.done < row.tasks
    assert row.cost <= row.budget + 1e-6


def test_a_deadline_alone_is_decided_without_its_forecasts():
    with_them, without = (
        submitted(TASKS, site_of(60), deadline=1800.0, order="random", foresees=foresees).run()
        for foresees in (True, False)
    )
    assert with_them == without


def test_an_earlier_bag_is_another_bag_of_its_kind():
    found = earlier_of("levy", 1, 0)
    assert found.low < found.mean < found.high
    assert found != earlier_of("levy", 1, 1)


def test_all_bags_tariffs_and_knowledge_are_run_and_budgets_with_deadlines_in_a_few():
    found = pieces(Settings(orders=2, bags=("image", "constant")))
    assert {(each.unit, each.known) for each in found if each.sites == "one"} == {
        *itertools.product(UNITS, ["unknown"]),
        *itertools.product((1, 3600), KNOWLEDGE),
    }
    both = [each for each in found if each.wishes == WISHES]
    assert {(each.order, each.known, each.sites) for each in both} == {(0, "unknown", "one")}
    assert {each.wishes[0] for each in found} == {SINGLE[0]} == {Wish()}
    assert {(each.sites, each.bag) for each in found} == {
        ("one", "image"),
        ("one", "constant"),
        ("two", "image"),
        ("donated", "image"),
    }


@pytest.mark.parametrize("sites", ["two", "donated"])
def test_cheaper_places_are_used_and_no_budget_is_exceeded(small, sites):
    plain, cheap, budget = run_piece(piece(Wish(), Wish("cheap"), Wish(budget=4.0), sites=sites, unit=1))
    assert plain.least < plain.work
    assert plain.least <= cheap.cost < plain.work
    assert budget.cost <= budget.budget == pytest.approx(4 * budget.least)
    assert budget.ended
    assert min(cheap.best, budget.best) > 0.9


def test_local_users_take_the_donated_nodes_from_time_to_time():
    first, donated = sites_of("donated", 60)
    assert first.donation is None
    assert donated.tariff.price_donated < first.tariff.price_explicit
    assert donated.jobs.submit[:2].tolist() == [1800, 4200]
    assert set(donated.jobs.run.tolist()) == {600}
    assert donated.idleness.begun > 0


def test_the_shape_of_the_site_and_the_number_of_tasks_can_be_chosen(monkeypatch):
    shape = Shape(heuristic="adaptive", initial_tr=3600.0, processors=24, requests=1, tasks=5)
    (site,) = sites_of("one", 1, shape)
    limits = site.limits
    assert (site.processors, limits.max_pending_requests, limits.max_proc) == (24, 1, 24)
    assert (site.heuristic, site.initial_tr) == ("adaptive", 3600.0)
    assert sites_of("two", 1, shape)[0].processors == 12
    assert site_of(1, Shape(heuristic="elastic")).limits.max_pilots == 500
    found = pieces(Settings(orders=1, bags=("image",), shape=shape))
    assert {each.shape for each in found} == {shape}
    (row,) = run_piece(msgspec.structs.replace(found[0], wishes=(Wish(),)))
    assert (row.tasks, row.done) == (5, 5)
