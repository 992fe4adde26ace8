"""The least budget of a bag: at the price of the time that it will use."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from adaptor.api import GetBags
from adaptor.bag_spec import BagSpec
from adaptor.config.schema import BudgetConfig
from adaptor.daemon.client.commands import serve
from adaptor.daemon.client.credits import budget_writer
from adaptor.decisions.first_estimates import least_time
from adaptor.errors import UsageError
from adaptor.guard_rails import EarlySignal
from adaptor.runtimes.known import EarlierTasks
from adaptor.units import Duration, round_up
from tests.daemon.budgeted_site import steps
from tests.daemon.donating_site import DonatingSite
from tests.daemon.fake_site import FakeSite


def test_a_bag_that_only_uses_donated_nodes_needs_only_their_price(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state")
    price = msgspec.structs.replace(site.config.price, explicit=100.0, donated=1.0)
    site.config = msgspec.structs.replace(site.config, price=price)
    site.restart()
    spec = BagSpec(name="b", cwd="/", output="/nowhere", environment={})
    with pytest.raises(UsageError, match="holds no request"):
        budget_writer(site.state.core, {"here": site.state}, spec, 0.5, {})
    lent = msgspec.structs.replace(spec, allocation="transparent")
    assert budget_writer(site.state.core, {"here": site.state}, lent, 0.5, {}) is not None
    with pytest.raises(UsageError, match="holds no request"):
        budget_writer(site.state.core, {"here": site.state}, lent, 0.01, {})


def test_a_bag_of_a_known_kind_needs_the_price_of_what_its_tasks_took(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state")
    site.config = msgspec.structs.replace(
        site.config, price=msgspec.structs.replace(site.config.price, explicit=100.0)
    )
    site.restart()
    core, sites = site.state.core, {"here": site.state}
    spec = BagSpec(name="b", cwd="/", output="/nowhere", environment={})
    tariff, seconds = core.treasury.ledger.tariff("here").of_parts, round(site.state.memory.rules.pad) + 5
    budget = tariff.reservation("explicit", 1, seconds) / 10**6
    known = EarlierTasks(kind="kind fit", tasks=9, mean=1.0, factor=2.0, low=1.0, high=1.0)
    with pytest.raises(UsageError, match="taken to need at least 10s before"):
        budget_writer(core, sites, spec, budget, {})
    assert budget_writer(core, sites, spec, budget, {"here": known}) is not None
    long = msgspec.structs.replace(known, high=3000.0)
    with pytest.raises(UsageError, match="taken to need what earlier tasks of kind fit took before"):
        budget_writer(core, sites, spec, budget, {"here": long})


def test_a_budget_for_less_than_initial_tr_is_taken_if_it_pays_for_short_tasks(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state")
    core, sites = site.state.core, {"here": site.state}
    rules = site.state.memory.rules
    terms = core.terms["here"]
    assert terms.initial_tr > 2 * rules.pad
    spec = BagSpec(name="b", cwd="/", output="/nowhere", environment={})
    least = core.treasury.ledger.tariff("here").of_parts.reservation(
        "explicit", 1, round_up(least_time(rules) + rules.pad, rules.time_resolution)
    )
    assert budget_writer(core, sites, spec, least / 10**6, {}) is not None
    with pytest.raises(UsageError, match=r"taken to need at least \d+s before"):
        budget_writer(core, sites, spec, least / 10**6 * 0.99, {})


def test_the_least_budget_is_the_price_that_the_first_request_then_has(tmp_path: Path) -> None:
    """Pilots are paid for in parts, without the time for which their ends may be late."""
    site = DonatingSite(tmp_path / "state")
    site.config = msgspec.structs.replace(site.config, overrun=Duration(900))
    site.restart()
    core, sites, rules = site.state.core, {"here": site.state}, site.state.memory.rules
    spec = BagSpec(name="b", cwd="/", output="/nowhere", environment={})
    tr, tariff = (
        round_up(least_time(rules) + rules.pad, rules.time_resolution),
        core.treasury.ledger.tariff("here"),
    )
    assert tariff.grace >= 900
    parts, whole = (each.reservation("explicit", 1, tr) / 10**6 for each in (tariff.of_parts, tariff))
    assert budget_writer(core, sites, spec, parts, {}) is not None
    with pytest.raises(UsageError, match=r"may cost [0-9.]+ \(a task .* finished, and begun charging"):
        budget_writer(core, sites, spec, parts / 2, {})
    signalled = msgspec.structs.replace(spec, signal=EarlySignal("USR1", 5.0))
    with pytest.raises(UsageError, match="the end of a pilot may be late"):
        budget_writer(core, sites, signalled, whole / 2, {})


def test_bags_that_share_pilots_are_paused_in_the_words_of_why_where_the_site_has_no_credits(
    tmp_path: Path,
) -> None:
    site = FakeSite(tmp_path / "state")
    site.config = msgspec.structs.replace(site.config, budget=BudgetConfig(credits=0.001, period="day"))
    site.restart()
    for _ in range(2):
        site.submit_bag(4)
    steps(site)
    told = {bag.paused for bag in asyncio.run(serve(site.running, GetBags())).bags}  # type: ignore[attr-defined]
    assert told == {site.told("withheld")[-1]}
    assert next(iter(told)).startswith("bags 1-2 are paused: 0.001 credits are left (site here, per day)")
    site.journal.close()


def test_a_bag_that_has_pilots_to_come_is_not_paused_by_what_the_site_cannot_pay(tmp_path: Path) -> None:
    site = FakeSite(tmp_path / "state")
    site.config = msgspec.structs.replace(site.config, budget=BudgetConfig(credits=0.03))
    site.restart()
    site.submit_bag(40)
    steps(site, 2)
    assert "reserved for pilots" in site.told("withheld")[-1]
    (bag,) = asyncio.run(serve(site.running, GetBags())).bags  # type: ignore[attr-defined]
    assert not bag.paused
    site.journal.close()
