"""Re-evaluating a running bag."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError, InfeasibleError
from adaptor.budget.provisioning.replanning import expected_seconds, reevaluate
from adaptor.budget.provisioning.site_offers import HeldSlots
from tests.budget.provisioning.offer_strategies import offers, site
from tests.examples import examples


def ways(plan, sites):
    """`(tasks done by the plan's end, credits)` for each choice of those held ones that stay until then."""
    per_site = []
    for each in sites:
        wanted = plan.processors.get(each.name, 0)
        held = each.held[0] if each.held else HeldSlots(0)
        found = []
        for stay in range(min(held.processors, wanted) + 1):
            if (fresh := wanted - stay) > each.fresh:
                continue
            ends = [(stay, plan.seconds, each.lost - each.startup), (fresh, plan.seconds, each.lost)]
            ends.append((held.processors - stay, min(held.paid, plan.seconds), each.lost - each.startup))
            done = sum(count * max(0.0, end - lost) / each.task.mean for count, end, lost in ends)
            cost = stay * each.cost(plan.seconds - held.paid) + fresh * each.cost(plan.seconds)
            found.append((done, cost))
        per_site.append(found)
    for chosen in itertools.product(*per_site):
        yield sum(done for done, _ in chosen), sum(cost for _, cost in chosen)


@examples(80)
@given(offers(held=True), st.floats(0.5, 500), st.floats(0.5, 10))
def test_the_rest_is_done_within_the_money(sites, tasks, share):
    budget = share * tasks * min(each.cost_per_task for each in sites)
    try:
        plan = reevaluate(tasks, sites, budget)
    except InfeasibleError:
        assume(False)
    assert plan.cost <= budget * (1 + 1e-9)
    assert any(
        done >= tasks * (1 - 1e-3) and cost == pytest.approx(plan.cost) for done, cost in ways(plan, sites)
    )
    for each in sites:
        assert plan.processors.get(each.name, 0) <= each.processors


def test_paid_time_is_used_for_nothing():
    held = site(charging_unit=3600.0, mean=300.0, held=(HeldSlots(10, 3000.0),))
    plan = reevaluate(50, [held], 0.0)
    assert plan.cost == 0
    assert plan.seconds <= 3000


def test_expected_violation_of_the_budget_drops_dear_machines():
    sites = [
        site("cheap", 1.0, 20, 600.0, charging_unit=3600.0, held=(HeldSlots(5, 600.0),)),
        site("dear", 5.0, 20, 300.0, charging_unit=3600.0, held=(HeldSlots(20, 600.0),)),
    ]
    rich, poor = reevaluate(400, sites, 400), reevaluate(400, sites, 80)
    assert rich.seconds < poor.seconds
    assert rich.processors["dear"] > poor.processors.get("dear", 0)
    assert poor.processors["cheap"] == 20


def test_too_little_money_calls_the_user():
    with pytest.raises(InfeasibleError, match=r"100 tasks need .* credits at the least, and 5 are left"):
        reevaluate(100, [site(charging_unit=3600.0)], 5)


def test_positions_that_cannot_be():
    with pytest.raises(BudgetError, match="0 credits or more"):
        reevaluate(1, [site()], -1)
    with pytest.raises(BudgetError, match="no site"):
        reevaluate(1, [site(processors=0)], 1)
    assert reevaluate(0, [site()], 0).cost == 0


def test_a_slower_site_is_expected_to_take_longer():
    fast, slow = site(mean=300.0), site(mean=900.0)
    assert expected_seconds(100, [fast], {"here": 10}) < expected_seconds(100, [slow], {"here": 10})
    assert expected_seconds(100, [fast], {}) == float("inf")
    assert expected_seconds(100, [msgspec.structs.replace(fast, startup=60.0)], {"here": 10}) == (
        expected_seconds(100, [fast], {"here": 10})
    )
