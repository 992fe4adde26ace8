"""Re-evaluating a running bag."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError, InfeasibleError
from adaptor.budget.provisioning.bats import expected_seconds, reevaluate
from adaptor.budget.provisioning.site_offers import HeldSlots
from tests.budget.provisioning.offer_strategies import offers, site
from tests.examples import examples


def capacity(plan, sites):
    """Tasks that are done by the plan's end, counted from its words."""
    done = 0.0
    kept = {(keep.site, keep.group): keep.processors for keep in plan.keeps}
    for each in sites:
        groups = [(-1, 0, 0.0, each.lost)]
        groups += [
            (n, held.processors, held.paid, each.lost - each.startup) for n, held in enumerate(each.held)
        ]
        for place, number, paid, lost in groups:
            keep = kept.get((each.name, place), 0)
            done += keep * max(0.0, plan.seconds - lost) / each.task.mean
            done += max(0, number - keep) * max(0.0, min(paid, plan.seconds) - lost) / each.task.mean
    return done


def cost(plan, sites):
    total = 0.0
    for each in sites:
        for keep in plan.keeps:
            if keep.site == each.name:
                paid = each.held[keep.group].paid if keep.group >= 0 else 0.0
                total += keep.processors * each.cost(plan.seconds - paid)
    return total


@examples(80)
@given(offers(held=True), st.floats(0.5, 500), st.floats(0.5, 10))
def test_the_rest_is_done_within_the_money(sites, tasks, share):
    budget = share * tasks * min(each.cost_per_task for each in sites)
    try:
        plan = reevaluate(tasks, sites, budget)
    except InfeasibleError:
        assume(False)
    assert plan.cost == pytest.approx(cost(plan, sites))
    assert plan.cost <= budget * (1 + 1e-9)
    assert capacity(plan, sites) >= tasks * (1 - 1e-3)
    for each in sites:
        assert plan.processors(each.name) <= each.processors


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
    assert rich.processors("dear") > poor.processors("dear")
    assert poor.processors("cheap") == 20


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
