"""First forecasts in the journal, and what became of them."""

from __future__ import annotations

import pytest

from adaptor import api
from adaptor.api import FirstForecastView
from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.forecast.calibration import Kind, Raw
from adaptor.forecast.record import FirstForecast
from adaptor.journal.credits import write_entry
from adaptor.journal.forecast_rows import bags_with_forecast, first_forecast, forecast_record, past_scores
from adaptor.journal.forgetting import forget_bag
from adaptor.journal.queries import answer
from adaptor.model import Estimate, Request
from tests.scheduling.broker_world import World


class Books:
    """The ledger of a world, kept in its journal."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.ledger = Ledger()
        self.ledger.set_price("site", Tariff(price_explicit=1.0, price_donated=1.0), 0.0)

    def reserve(self, pilot: int, bag: int) -> None:
        """A processor for an hour."""
        with self._world.journal.transaction() as db:
            write_entry(db, self.ledger.reserve(pilot, "site", Request(1, 3600), "explicit", {bag: 1.0}, 0.0))

    def settle(self, pilot: int, bag: int, seconds: float) -> None:
        use = {bag: Use(useful=seconds, wasted=0.0)}
        with self._world.journal.transaction() as db:
            write_entry(db, self.ledger.settle(pilot, 0.0, seconds, use, seconds))


@pytest.fixture
def books(world: World) -> Books:
    return Books(world)


def keep(world: World, bag: int, *, cost: float = 0.5, end: float = 1000.0, finished: int = 1) -> None:
    """A forecast of about so many credits, and an end so many seconds from now."""
    at = world.now + end
    first = FirstForecast(
        made=world.now,
        finished=finished,
        tasks=2,
        cost=Estimate(cost - 0.1, cost, cost + 0.1),
        end=Estimate(at - 100.0, at, at + 100.0),
    )
    world.journal.keep_forecast(bag, first)


def run(world: World, bag: int, took: float) -> None:
    """The bag's two tasks end after so many seconds."""
    player = world.join(f"w{bag}", processors=2)
    world.finish(player, took=took / 2)
    world.finish(player, took=took / 2)


def view(world: World, books: Books, bag: int) -> FirstForecastView:
    found = first_forecast(world.journal.connection, books.ledger, bag)
    assert found is not None
    return found


def test_a_forecast_that_is_kept_stays(world: World, books: Books) -> None:
    bag = world.submit(2)
    keep(world, bag, cost=0.5)
    keep(world, bag, cost=9.0)
    assert view(world, books, bag).cost == Estimate(0.4, 0.5, 0.6)
    assert world.journal.read(bags_with_forecast) == {bag}
    world.restart()
    assert view(world, books, bag).cost == Estimate(0.4, 0.5, 0.6)


def test_the_cost_is_known_when_the_pilots_are_settled_and_the_end_at_once(
    world: World, books: Books
) -> None:
    bag = world.submit(2)
    books.reserve(1, bag)
    keep(world, bag)
    assert view(world, books, bag).final_end is None
    run(world, bag, took=950.0)
    found = view(world, books, bag)
    assert (found.final_cost, found.cost_held) == (None, None)
    assert (found.final_end, found.end_held) == (world.now, True)
    assert forecast_record(world.journal.connection, books.ledger).bags == 0
    books.settle(1, bag, seconds=2520.0)
    found = view(world, books, bag)
    assert (found.final_cost, found.cost_held) == (pytest.approx(0.7), False)
    record = forecast_record(world.journal.connection, books.ledger)
    assert record.cost is not None
    assert record.end is not None
    assert (record.bags, record.cost.held, record.end.held) == (1, 0, 1)


def test_cancelled_and_retried_bags_do_not_count(world: World, books: Books) -> None:
    cancelled, retried = world.submit(2), world.submit(2, retries=0)
    keep(world, cancelled)
    keep(world, retried)
    world.now += 10
    world.broker.cancel(cancelled)
    world.commit()
    player = world.join("w", processors=2)
    for _ in range(2):
        world.finish(player, exit_code=1)
    world.retry(retried)
    world.run_to_the_end()
    assert view(world, books, cancelled).not_counted == "cancelled"
    assert view(world, books, retried).not_counted == "retried"
    record = forecast_record(world.journal.connection, books.ledger)
    assert (record.bags, record.not_counted) == (0, {"cancelled": 1, "retried": 1})


def test_what_was_retried_before_its_forecast_counts(world: World, books: Books) -> None:
    bag = world.submit(2, retries=0)
    player = world.join("w", processors=2)
    world.finish(player, exit_code=1)
    world.retry(bag)
    world.now += 1
    keep(world, bag, end=2.0)
    world.run_to_the_end()
    assert view(world, books, bag).not_counted == ""


def test_pilots_that_the_user_cancels_change_the_bags_that_run(world: World, books: Books) -> None:
    ended = world.submit(2)
    keep(world, ended)
    run(world, ended, took=1000.0)
    running = world.submit(2)
    keep(world, running)
    world.journal.note_user_change_of_all("pilots cancelled", world.now + 1)
    assert view(world, books, ended).not_counted == ""
    assert view(world, books, running).not_counted == "pilots cancelled"


def test_the_journal_alone_tells_the_same_as_the_running_ledger(world: World, books: Books) -> None:
    bag = world.submit(2)
    books.reserve(1, bag)
    keep(world, bag)
    run(world, bag, took=950.0)
    books.settle(1, bag, seconds=1800.0)
    db = world.journal.connection
    asked = api.GetReport(bag)
    alone, live = answer(db, asked, world.now), answer(db, asked, world.now, books.ledger)
    assert alone == live
    assert alone.first_forecast == view(world, books, bag)
    assert alone.forecast_record == forecast_record(db, books.ledger)


def test_the_record_is_told_where_it_is_asked_for(world: World) -> None:
    world.submit(2)
    quiet = answer(world.journal.connection, api.GetBags(), world.now)
    asked = answer(world.journal.connection, api.GetBags(record=True), world.now)
    assert quiet.record is None
    assert asked.record is not None
    assert asked.record.bags == 0


def test_a_bag_without_a_forecast_has_nothing_to_tell(world: World) -> None:
    told = answer(world.journal.connection, api.GetReport(world.submit(2)), world.now)
    assert told.first_forecast is None
    assert told.forecast_record is None


def test_what_came_of_forecasts_calibrates_later_ones(world: World, books: Books) -> None:
    """One score for each kind of forecast of a bag that ended as its user had left it."""

    def keep_raw(bag: int, kind: Kind, end: float) -> None:
        at = world.now + end
        raw = Raw(kind=kind, made=world.now, unit=1.0, ends=Estimate(at - 100.0, at, at + 100.0))
        world.journal.keep_forecast(bag, None, raw)

    first, cancelled = world.submit(2), world.submit(2)
    keep_raw(first, "first", 950.0)
    keep_raw(first, "first", 9.0)
    keep_raw(first, "late", 500.0)
    keep_raw(cancelled, "first", 1000.0)
    assert world.journal.read(past_scores) == {}, "nothing has ended"
    world.broker.cancel(cancelled)
    world.commit()
    run(world, first, took=950.0)
    scores = world.journal.read(past_scores)
    assert {kind: len(some) for kind, some in scores.items()} == {"first": 1, "late": 1}
    assert scores["first"] == [pytest.approx(0.0, abs=1e-6)]
    assert scores["late"][0] > 0
    world.restart()
    assert world.journal.read(past_scores) == scores
    with world.journal.transaction() as db:
        forget_bag(db, first, books.ledger)
    assert world.journal.read(past_scores) == {}
