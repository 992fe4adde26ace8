"""Which bags are forecast anew in a step, which forecast is kept, and what is shown."""

from __future__ import annotations

import time

import msgspec
import pytest

from adaptor.api import BagView, ForecastView, TaskInput
from adaptor.daemon.client.credits import forecast_view
from adaptor.decisions.forecasting.told import INTERVAL, SOON, bags_ahead
from adaptor.decisions.memory import MadeForecast, Memory
from adaptor.forecast.forecast import Forecast
from adaptor.journal.views import bags
from adaptor.model import Estimate
from adaptor.scheduling.bag import Bag
from tests.daemon.budgeted_site import set_budget, steps
from tests.daemon.fake_site import FakeSite
from tests.decisions.test_aims import SPEC, asked, finish, submit
from tests.journal.bags import add_bag
from tests.scheduling.broker_world import World


def submit_after(site: FakeSite, first: Bag) -> Bag:
    """One task, in a bag that runs after another."""
    spec = msgspec.structs.replace(SPEC, after=(first.id,))
    id = add_bag(site.journal, spec, [TaskInput("true")], time.time(), gated=True)
    site.restart()
    return site.state.core.broker.state.bags[id]


def submit_linked(site: FakeSite) -> Bag:
    """Two tasks, the second after the first."""
    id = add_bag(site.journal, SPEC, [TaskInput("true"), TaskInput("true", after=[0])], time.time())
    site.restart()
    return site.state.core.broker.state.bags[id]


NOTHING = Forecast(end=None, work=Estimate(0, 0, 0))


def test_a_forecast_is_made_anew_when_it_is_old_or_twice_as_much_is_known(world: World) -> None:
    bag, player = world.submit(20), world.join("w1")

    def due(finished: int, age: float) -> bool:
        told = {bag: MadeForecast(world.now - age, NOTHING, finished)}
        return [each.id for each in bags_ahead(world.broker.state, told, world.now)] == [bag]

    assert bags_ahead(world.broker.state, {}, world.now), "it was never made"
    assert not due(0, INTERVAL - 1)
    assert due(0, INTERVAL)
    world.finish(player)
    assert due(0, SOON), "the first task has finished"
    assert not due(0, SOON / 2)
    assert not due(1, SOON)
    for _ in range(3):
        world.finish(player)
    assert due(2, SOON)
    assert not due(3, SOON)
    assert due(4, -1.0), "the clock was set back"


def test_the_first_results_make_a_forecast_at_once_if_nothing_was_known_of_the_tasks(world: World) -> None:
    bag, player = world.submit(20), world.join("w1")
    blind = MadeForecast(world.now, msgspec.structs.replace(NOTHING, blind=True))
    assert not bags_ahead(world.broker.state, {bag: blind}, world.now)
    world.finish(player, took=0.1)
    assert bags_ahead(world.broker.state, {bag: blind}, world.now)


def test_steps_share_a_forecast(site: FakeSite) -> None:
    bag = submit(site, 40, deadline=1e12)
    finish(site, bag, 20, 60.0)
    set_budget(site, bag.id, 10.0)
    steps(site)
    first = site.state.core.decided.forecasts[bag.id]
    steps(site, 3)
    assert site.state.core.decided.forecasts[bag.id] is first


def test_only_what_a_decision_depends_on_is_forecast_where_nobody_asks(site: FakeSite) -> None:
    free, bound = submit(site, 5), submit(site, 5, deadline=1e12)
    state, now = site.state.core.broker.state, site.state.core.now()
    assert [bag.id for bag in bags_ahead(state, {}, now)] == [free.id, bound.id]
    assert [bag.id for bag in bags_ahead(state, {}, now, set())] == [bound.id]


def kept(site: FakeSite) -> dict[int, tuple[float, int, int]]:
    rows = site.journal.connection.execute("SELECT bag, made, finished, tasks FROM forecast")
    return {bag: (made, finished, tasks) for bag, made, finished, tasks in rows}


def test_the_first_forecast_is_kept_without_a_question_and_once(site: FakeSite) -> None:
    bag = submit(site, 40, prefer="cheap")
    steps(site)
    assert kept(site) == {}, "too little is known"
    finish(site, bag, 10, 60.0)
    steps(site, 2)
    ((made, finished, tasks),) = kept(site).values()
    assert (finished, tasks) == (10, 40)
    finish(site, bag, 25, 1.0, first=10)
    steps(site, 2)
    assert kept(site) == {bag.id: (made, 10, 40)}


def test_what_was_simulated_is_kept_once_for_each_kind_of_forecast(site: FakeSite) -> None:
    bag = submit(site, 40, prefer="cheap")
    steps(site, 2)
    finish(site, bag, 10, 60.0)
    steps(site, 2)
    rows = site.journal.connection.execute("SELECT bag, kind FROM raw_forecast").fetchall()
    assert sorted(rows) == [(bag.id, "alone first"), (bag.id, "paid early")]
    finish(site, bag, 25, 1.0, first=10)
    steps(site, 2)
    assert len(site.journal.connection.execute("SELECT * FROM raw_forecast").fetchall()) == 3


def test_without_a_pilot_no_forecast_is_kept(site: FakeSite) -> None:
    bag = submit(site, 40, prefer="cheap")
    finish(site, bag, 10, 60.0)
    steps(site)
    assert kept(site) == {}
    assert asked(site) > 0
    site.state.core.decided = Memory()  # the next forecast is due
    steps(site)
    assert list(kept(site)) == [bag.id]


def cheap_bag_with_results(site: FakeSite) -> tuple[Bag, BagView]:
    """Ten of its 40 tasks have taken a minute."""
    bag = submit(site, 40, prefer="cheap")
    steps(site)
    finish(site, bag, 10, 60.0)
    steps(site)
    (view,) = bags(site.journal.connection, str(bag.id))
    return bag, view


def test_what_is_kept_is_what_is_shown(site: FakeSite) -> None:
    _, view = cheap_bag_with_results(site)
    shown = forecast_view(site.state.core, view)
    assert shown is not None
    rows = site.journal.connection.execute("SELECT cost_low, cost_value, end_high FROM forecast")
    assert shown.cost is not None
    assert shown.end is not None
    assert rows.fetchone() == (shown.cost.low, shown.cost.value, shown.end.high)


def test_a_budget_below_the_cost_pays_for_a_part_of_the_tasks(site: FakeSite) -> None:
    bag, view = cheap_bag_with_results(site)

    def shown() -> ForecastView:
        found = forecast_view(site.state.core, view)
        assert found is not None
        return found

    assert (shown().budget, shown().paid) == (None, None)
    cost = shown().cost
    assert cost is not None
    set_budget(site, bag.id, 2 * cost.value)
    assert (shown().budget, shown().paid) == (pytest.approx(2 * cost.value, abs=1e-6), None)
    paid = []
    for share in (0.8, 0.9):
        set_budget(site, bag.id, cost.value * share)
        paid.append(shown().paid or 0)
    assert 10 < paid[0] < paid[1] < 40


def test_a_budget_below_the_least_of_the_work_is_told_before_the_cost_can_be_named(site: FakeSite) -> None:
    bag = submit(site, 40, prefer="cheap")
    finish(site, bag, 5, 60.0)
    steps(site)
    (view,) = bags(site.journal.connection, str(bag.id))
    least = site.state.core.decided.forecasts[bag.id].forecast.least
    paid = []
    for share in (0.8, 0.9, 1.1):
        set_budget(site, bag.id, share * least)
        shown = forecast_view(site.state.core, view)
        assert shown is not None
        assert shown.cost is None
        paid.append(shown.paid)
    few, more, all_ = paid
    assert few is not None
    assert more is not None
    assert 5 < few < more < 40
    assert all_ is None


def test_bags_that_share_their_pilots_have_an_end_from_the_first_look_at_the_queue_and_no_cost(
    site: FakeSite,
) -> None:
    bag = submit(site, 40)
    (view,) = bags(site.journal.connection, str(bag.id))
    assert forecast_view(site.state.core, view) is None, "nobody knows the queue"
    steps(site)
    ((made, finished, tasks),) = kept(site).values()
    assert (finished, tasks) == (0, 40)
    shown = forecast_view(site.state.core, view)
    assert shown is not None
    assert shown.cost is None
    assert shown.end is not None
    assert made <= shown.end.low <= shown.end.value <= shown.end.high
    row = site.journal.connection.execute("SELECT cost_low, end_value FROM forecast").fetchone()
    assert row == (None, shown.end.value)
    finish(site, bag, 20, 60.0)
    steps(site, 2)
    assert kept(site) == {bag.id: (made, 0, 40)}, "the first one is judged"


@pytest.mark.parametrize("finished", [0, 20])
def test_a_bag_whose_tasks_wait_for_others_has_no_forecast(site: FakeSite, finished: int) -> None:
    first = submit(site, 40)
    follower = submit_after(site, first)
    linked = submit_linked(site)
    steps(site)
    finish(site, first, finished, 60.0)
    steps(site, 2)
    views = {view.id: forecast_view(site.state.core, view) for view in bags(site.journal.connection, "all")}
    assert views[first.id] is not None
    assert views[follower.id] is None, "it starts when the first bag has ended"
    assert views[linked.id] is None
    assert list(kept(site)) == [first.id]


def test_a_forecast_whose_interval_has_passed_is_not_shown(site: FakeSite) -> None:
    bag = submit(site, 40)
    steps(site)
    (view,) = bags(site.journal.connection, str(bag.id))
    core = site.state.core
    shown = forecast_view(core, view)
    assert shown is not None
    assert shown.end is not None
    made = core.decided.forecasts[bag.id]
    passed = Estimate(core.now() - 3, core.now() - 2, core.now() - 1)
    over = msgspec.structs.replace(made, forecast=msgspec.structs.replace(made.forecast, end=passed))
    core.decided = msgspec.structs.replace(core.decided, forecasts={bag.id: over})
    assert forecast_view(core, view) is None
