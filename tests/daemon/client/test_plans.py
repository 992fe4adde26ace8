"""What the daemon plans is what it then does."""

from __future__ import annotations

import asyncio

import pytest

from adaptor import api
from adaptor.api import PlanView
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client.plans import read_plan
from adaptor.errors import UsageError
from tests.daemon.budgeted_site import steps
from tests.daemon.fake_site import FakeSite

SPEC = BagSpec(name="b", cwd="/", output="/nowhere", environment={}, time=120.0)


def plan(site: FakeSite, spec: BagSpec = SPEC, tasks: int = 12) -> PlanView:
    asked = api.GetPlan(spec, tasks)
    return asyncio.run(read_plan(site.running, asked))


def test_the_requests_are_those_that_are_then_made(site: FakeSite) -> None:
    told = plan(site)
    assert site.backend.orders == []
    assert site.state.core.broker.state.bags == {}
    site.submit_bag(12, time=120.0)
    steps(site)
    made = [(order.request.p, order.request.tr) for order in site.backend.orders]
    assert [(each.p, each.tr) for each in told.requests] == made
    assert told.end is not None


def test_pilots_and_other_bags_are_taken_account_of(site: FakeSite) -> None:
    before = plan(site)
    site.submit_bag(400, time=120.0)
    steps(site, 3)
    beside = plan(site)
    assert before.end is not None
    assert beside.end is not None
    assert beside.end.value > before.end.low
    assert beside.end.value - beside.now > before.end.value - before.now, "it takes turns with the other bag"


def test_a_site_that_does_not_exist_is_an_error(site: FakeSite) -> None:
    with pytest.raises(UsageError, match="no site 'far'"):
        plan(site, BagSpec(name="b", cwd="/", output="/nowhere", environment={}, sites=("far",)))
