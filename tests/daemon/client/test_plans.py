"""What the daemon plans is what it then does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from adaptor import api
from adaptor.api import PlanView
from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.config.schema import PriceConfig
from adaptor.daemon.client.plans import read_plan
from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.daemon.sites import terms_of
from adaptor.daemon.treasury import Costs, costs_of
from adaptor.errors import UsageError
from adaptor.resources import OwnNeeds
from tests.daemon.budgeted_site import steps, submit_budgeted
from tests.daemon.fake_site import FakeBackend, FakeServer, FakeSite
from tests.daemon.fake_sites import FakeSites

PRICES = {"near": 9, "far": 3}
SPEC = BagSpec(name="b", cwd="/", output="/nowhere", environment={}, time=120.0)


def plan(site: FakeSite, spec: BagSpec = SPEC, tasks: int = 12, budget: float | None = None) -> PlanView:
    asked = api.GetPlan(spec, tasks, budget)
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


def test_the_requests_of_other_bags_are_none_of_the_plan(site: FakeSite) -> None:
    submit_budgeted(site, 4, 0.001)
    told = plan(site, budget=5.0)
    assert told.requests
    assert told.withheld == {}
    poor = plan(site, budget=0.001)
    assert all("bag 1" not in why for why in poor.withheld.values())


def test_a_reason_that_counts_the_tasks_of_other_bags_says_so(site: FakeSite) -> None:
    assert not any("share pilots" in request.reason for request in plan(site).requests)
    site.submit_bag(40, time=120.0)
    steps(site, 2)
    (why,) = plan(site).withheld.values()
    assert "waiting tasks wait until a pilot ends" in why
    assert why.endswith(" (the tasks of bag 1 count, too: they share pilots)")


@pytest.fixture
def two(tmp_path: Path) -> Iterator[FakeSites]:
    """`far` costs a third of `near`."""
    tariffs = {name: Tariff(price_explicit=price, price_donated=1) for name, price in PRICES.items()}
    two = FakeSites(tmp_path / "state", costs={name: Costs(tariff) for name, tariff in tariffs.items()})
    for site in two.sites.values():  # a price that is not the usual one is shown
        site.config = msgspec.structs.replace(site.config, price=PriceConfig(explicit=9.0))
    yield two
    two.journal.close()


def plan_at_two(two: FakeSites, spec: BagSpec, tasks: int = 16) -> PlanView:
    running: Any = SimpleNamespace(core=two.sites["near"].core, sites=two.sites)
    return asyncio.run(read_plan(running, api.GetPlan(spec, tasks, None)))


def test_the_credits_of_a_bag_that_shares_pilots_are_those_of_the_processors_that_it_gets(
    two: FakeSites,
) -> None:
    told = plan_at_two(two, SPEC)
    assert {each.site: each.p for each in told.requests} == {"near": 8, "far": 8}
    assert told.credits is not None
    assert told.credits.value == pytest.approx(6 * told.work.value / 3600)


def test_the_credits_of_a_cheap_bag_are_those_of_the_cheap_site(two: FakeSites) -> None:
    told = plan_at_two(two, msgspec.structs.replace(SPEC, prefer="cheap"), 64)
    assert {each.site for each in told.requests} == {"far"}
    assert told.credits is not None
    assert told.credits.value == pytest.approx(3 * told.work.value / 3600, rel=0.15)


def test_tasks_that_nothing_can_run_are_named_and_the_others_are_planned(site: FakeSite) -> None:
    asked = api.GetPlan(SPEC, 3, None, {0: OwnNeeds(cpus=99), 2: OwnNeeds(cpus=2, time=600.0)})
    told = asyncio.run(read_plan(site.running, asked))
    assert (told.refused, told.tasks) == (1, 2)
    assert told.reasons == {0: "tasks of 99 cpus fit into no request: max_proc is 2"}
    assert told.work.value > plan(site, tasks=2).work.value
    with pytest.raises(UsageError, match="task 0: tasks of 99 cpus fit into no request"):
        asyncio.run(read_plan(site.running, api.GetPlan(SPEC, 1, None, {0: OwnNeeds(cpus=99)})))


def test_a_site_that_does_not_exist_is_an_error(site: FakeSite) -> None:
    with pytest.raises(UsageError, match="no site 'far'"):
        plan(site, BagSpec(name="b", cwd="/", output="/nowhere", environment={}, sites=("far",)))


def test_a_budget_that_pays_for_less_than_initial_tr_is_planned_with_the_requests_of_a_bag_without_one(
    site: FakeSite,
) -> None:
    unknown = msgspec.structs.replace(SPEC, time=None)
    free = plan(site, unknown)
    told = plan(site, unknown, budget=0.1)
    assert [(each.p, each.tr) for each in told.requests] == [(each.p, each.tr) for each in free.requests]
    assert sum(each.p * each.tr for each in told.requests) > 360, "they are paid for in parts, while they run"
    assert told.end is not None


def test_a_budget_that_pays_for_no_request_has_no_end_and_names_no_bag(site: FakeSite) -> None:
    told = plan(site, budget=0.001)
    assert not told.requests
    assert told.end is None
    (why,) = told.withheld.values()
    assert why.startswith("the bag would pause: 0.001 credits are left (the bag): the smallest")
    assert "waiting tasks may need" in why
    assert "adaptor change" not in why


def test_a_budget_that_pays_for_no_request_is_told_the_least_that_would(site: FakeSite) -> None:
    """It is what submission asks for, and not what a request of initial_tr would cost."""
    unknown = msgspec.structs.replace(SPEC, time=None)
    (why,) = plan(site, unknown, tasks=1, budget=0.001).withheld.values()
    least = float(why.rpartition("--budget ")[2])
    assert least < 0.2
    assert plan(site, unknown, tasks=1, budget=least).requests


@pytest.mark.parametrize(("tasks", "prefer"), [(16, None), (64, None), (16, "balanced")])
def test_each_of_two_sites_is_planned_beside_what_is_planned_at_the_other(
    site: FakeSite, tasks: int, prefer: str | None
) -> None:
    spec = msgspec.structs.replace(SPEC, prefer=prefer)
    names = ("here", "there")
    terms = {name: terms_of(site.config, site.limits) for name in names}
    costs = costs_of(dict.fromkeys(names, site.config))
    core = Core(site.directory, site.journal, FakeServer(), terms, costs)  # type: ignore[arg-type]
    sites = {name: Site(name, site.config, FakeBackend(), site.limits, core) for name in names}
    running: Any = SimpleNamespace(core=core, sites=sites)
    told = asyncio.run(read_plan(running, api.GetPlan(spec, tasks)))
    room = sum(each.p * (each.tr // 120) for each in told.requests)
    assert {each.site for each in told.requests} == set(names)
    assert tasks / 2 <= room <= tasks
