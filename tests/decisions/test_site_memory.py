"""What the broker is told of how pilots are charged."""

from __future__ import annotations

import time

import msgspec
import pytest

from adaptor.decisions.site_memory import SLACK, WITHDRAWN
from adaptor.model import Allowed, SharedBound
from adaptor.reports import JobState
from adaptor.scheduling.state import Meter
from tests.daemon.budgeted_site import steps, submit_budgeted
from tests.daemon.fake_site import FakeSite


def meters(site: FakeSite) -> dict[int, Meter]:
    return site.state.core.broker.state.meters


def test_a_running_pilot_of_a_paying_bag_has_a_meter_until_its_end(site: FakeSite) -> None:
    submit_budgeted(site, 1, 1)
    steps(site)
    (order,) = site.backend.orders
    assert meters(site) == {}, "it is queued"
    site.backend.say(order.tag, JobState.RUNNING)
    steps(site)
    (meter,) = meters(site).values()
    assert meter.started == pytest.approx(time.time() - 5, abs=60)
    assert meter.unit == 1
    assert meter.spare == 60 + SLACK, "a worker waits for its idle time before it leaves"
    site.restart()
    steps(site)
    assert meters(site) == {1: meter}
    site.backend.say(order.tag, JobState.COMPLETED)
    steps(site)
    assert meters(site) == {}


def test_what_the_scheduler_allows_now_bounds_requests(site: FakeSite) -> None:
    """It allowed more when the daemon started."""
    site.backend.allowed = Allowed(max_proc=2, max_tr=300, together=(SharedBound(most=3),))
    site.submit_bag(8)
    steps(site, 2)
    assert site.backend.orders
    assert max(order.request.p for order in site.backend.orders) <= 2
    assert max(order.request.tr for order in site.backend.orders) <= 300
    assert site.state.memory.limits.max_tr > 300, "what is configured stays as it is"


def test_pilots_that_bags_share_have_none(site: FakeSite) -> None:
    site.submit_bag(1)
    steps(site)
    site.backend.say(site.backend.orders[0].tag, JobState.RUNNING)
    steps(site)
    assert meters(site) == {}


@pytest.mark.parametrize(
    ("now", "until"), [(1000.0, 1540.0), (1599.0, 1540.0), (1600.0, 2140.0), (900.0, 1540.0)]
)
def test_work_is_paid_until_the_unit_ends_less_what_it_takes_to_leave(now: float, until: float) -> None:
    assert Meter(started=1000.0, unit=600.0, spare=60.0).paid_until(now) == until


def test_sizes_that_were_refused_are_not_asked_for_again_after_a_restart(site: FakeSite) -> None:
    site.backend.refuses = lambda order: order.request.tr > 100
    site.submit_bag(8)
    steps(site)
    refused = {(order.request.p, order.request.tr) for order in site.backend.orders}
    assert refused
    site.backend.orders.clear()
    site.restart()
    steps(site, 2)
    again = [(order.request.p, order.request.tr) for order in site.backend.orders]
    assert again
    assert not refused.intersection(again)


def test_the_budget_holds_what_pilots_get_beyond_what_they_ask_for(site: FakeSite) -> None:
    """Which is known as soon as one has started."""
    submit_budgeted(site, 4, 100)
    steps(site)
    order = site.backend.orders[0]
    assert site.state.memory.rules.held_each == 1
    site.backend.say(order.tag, JobState.RUNNING)
    report = site.backend.reports[order.tag]
    site.backend.reports[order.tag] = msgspec.structs.replace(report, held=2 * order.request.p)
    steps(site)
    assert site.state.memory.rules.held_each == 2


def test_the_withdrawals_of_an_hour_are_bounded_where_nothing_is_configured(site: FakeSite) -> None:
    memory, now = site.state.memory, time.time()
    assert memory.rules.max_withdrawals is None
    for _ in range(WITHDRAWN):
        memory._withdrawals.note(now)
    site.submit_bag(8)
    steps(site)
    assert not site.state.memory._rules_now(time.time()).may_withdraw
    assert site.state.memory._rules_now(now + 3601).may_withdraw
