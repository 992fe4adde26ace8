"""Deadlines and preferences in the daemon: what may be asked for, and when a bag pauses."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client.credits import check_deadline
from adaptor.decisions.forecasting.told import forecast_of
from adaptor.errors import UsageError
from adaptor.forecast.forecast import Forecast
from adaptor.journal.recovery import load_bag
from adaptor.model import TaskState
from adaptor.reports import JobState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.facts import facts_of
from backends.base import SchedulerError
from tests.daemon.budgeted_site import set_budget, steps
from tests.daemon.donating_site import DonatingSite
from tests.daemon.fake_site import FakeSite
from tests.daemon.fake_sites import FakeSites
from tests.journal.bags import add_bag

SPEC = BagSpec(name="b", cwd="/", output="/nowhere", environment={})


def submit(site: FakeSite, tasks: int, **wishes: object) -> Bag:
    spec = msgspec.structs.replace(SPEC, **wishes)
    id = add_bag(site.journal, spec, [TaskInput("true")] * tasks, time.time())
    site.restart()
    return site.state.core.broker.state.bags[id]


def finish(site: FakeSite, bag: Bag, tasks: int, seconds: float, first: int = 0) -> None:
    """So many tasks, from this one on, were done by a pilot that is gone."""
    with site.journal.transaction() as db:
        for task in range(first, first + tasks):
            db.execute(
                "INSERT INTO attempt (bag, task, number, pilot, node, worker, leased, outcome, started,"
                " ended, wall) VALUES (?, ?, 1, 0, 'n', 'w', 0, 'done', 0, ?, ?)",
                (bag.id, task, seconds, seconds),
            )
            db.execute(
                "UPDATE task SET state = 'done', result = 1 WHERE bag = ? AND number = ?", (bag.id, task)
            )
        db.execute(
            "UPDATE bag SET waiting = waiting - ?, done = done + ?, runtime = runtime + ? WHERE id = ?",
            (tasks, tasks, tasks * seconds, bag.id),
        )
    site.restart()


def look_ahead(site: FakeSite, bag: int) -> Forecast:
    """The forecast of a bag by what is known now."""
    core = site.state.core
    facts = facts_of(core.broker.state, core.broker.state.bags[bag])
    return forecast_of(core.snapshot("here", time.time()), facts)


def asked(site: FakeSite) -> int:
    return sum(order.request.p for order in site.backend.orders)


def test_a_cheap_bag_begins_with_few_and_says_why(site: FakeSite) -> None:
    submit(site, 20, prefer="cheap")
    steps(site)
    assert asked(site) == 1
    assert "(cheap): the first hosts find out" in site.told("issued")[0]


@pytest.mark.parametrize("size_is_known", [True, False])
def test_a_site_of_unknown_size_gets_no_request_of_a_bag_with_a_budget(
    site: FakeSite, size_is_known: bool
) -> None:
    """After a restart the scheduler may be away: then it is not known how wide a request may be."""
    bag = submit(site, 20)
    set_budget(site, bag.id, 1000.0)
    site.backend.silent = None if size_is_known else SchedulerError("connection refused")
    steps(site, 2)
    assert bool(asked(site)) is size_is_known


def test_a_deadline_begins_with_few_and_a_near_one_asks_for_all(site: FakeSite) -> None:
    submit(site, 20, deadline=time.time() + 3000)
    steps(site)
    assert asked(site) == 1, "whatever the first estimate of the runtime says"
    near = submit(site, 20, deadline=time.time() + 20)
    steps(site)
    assert f"bag {near.id} (cheap with a deadline): " in site.told("issued")[-1]
    assert "the deadline in" in site.told("issued")[-1]


def test_the_sums_survive_a_restart(site: FakeSite) -> None:
    bag = submit(site, 20, prefer="cheap")
    finish(site, bag, 10, 7.0)
    loaded = load_bag(site.journal, bag.id)
    assert (loaded.runtime, loaded.squares) == (70.0, 490.0)
    assert loaded.count(TaskState.DONE) == 10


def test_it_goes_on_late_where_only_the_deadline_fails(site: FakeSite) -> None:
    bag = submit(site, 40, deadline=time.time() + 30)
    finish(site, bag, 20, 60.0)
    steps(site)
    assert asked(site) == 4
    assert "cannot be kept: as fast as can be" in site.told("issued")[0]


def test_it_pauses_where_neither_can_be_kept_and_goes_on_with_the_budget_it_names(site: FakeSite) -> None:
    bag = submit(site, 40, deadline=time.time() + 30)
    finish(site, bag, 20, 60.0)
    set_budget(site, bag.id, 0.05)
    steps(site)
    assert asked(site) == 0
    told = site.told("withheld")[-1]
    assert "neither its budget nor its deadline can be kept" in told
    assert site.state.core.decided.paused["here"] == {bag.id: told}
    set_budget(site, bag.id, float(told.rpartition("--budget ")[2].split()[0]))
    steps(site)
    assert asked(site) > 0
    assert site.state.core.decided.paused["here"] == {}


def test_the_forecast_counts_what_runs(site: FakeSite) -> None:
    bag = submit(site, 40, deadline=time.time() + 9000)
    finish(site, bag, 20, 60.0)
    before = look_ahead(site, bag.id)
    assert before.end is None, "nobody knows the queue"
    assert before.least == pytest.approx(20 * 60 / 3600)
    steps(site)
    site.backend.say(site.backend.orders[0].tag, JobState.RUNNING)
    steps(site)
    after = look_ahead(site, bag.id)
    assert after.end is not None
    assert after.least > before.least


def test_a_bag_that_runs_on_donated_nodes_alone_is_forecast_at_the_donated_price(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state")
    price = msgspec.structs.replace(site.config.price, explicit=8.0, donated=2.0)
    site.config = msgspec.structs.replace(site.config, price=price)
    bag = submit(site, 40, allocation="transparent", deadline=time.time() + 9000)
    finish(site, bag, 20, 60.0)
    ahead = look_ahead(site, bag.id)
    assert ahead.least == pytest.approx(2 * 20 * 60 / 3600)
    site.journal.close()


def test_too_little_is_known_for_a_cost(site: FakeSite) -> None:
    bag = submit(site, 40, prefer="fast")
    finish(site, bag, 1, 60.0)
    assert look_ahead(site, bag.id).cost is None


def test_a_deadline_in_the_past_is_refused() -> None:
    with pytest.raises(UsageError, match="1h in the past"):
        check_deadline(1000.0, 4600.0)
    check_deadline(5000.0, 4600.0)
    check_deadline(None, 4600.0)


@pytest.mark.parametrize(("left", "longer"), [(600, False), (-5, True)])
def test_a_request_ends_with_its_last_task_before_the_deadline_unless_it_is_over(
    site: FakeSite, left: float, longer: bool
) -> None:
    submit(site, 400, deadline=time.time() + left)
    steps(site)
    assert site.backend.orders
    assert any(order.request.tr > 600 + 60 + 31 for order in site.backend.orders) is longer


def test_what_is_left_for_a_site_is_told_as_its_part_of_the_budget(tmp_path: Path) -> None:
    two = FakeSites(tmp_path / "state")
    two.submit_bag(64, budget=400_000, prefer="fast", time=60.0)
    two.step("near", "far", "near", "far")
    assert any("paid for at first (the part of far in bag 1)" in told for told in two.told("far", "issued"))
    two.journal.close()
