"""Chosen slots that will not do, and those that do."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.budget.errors import InfeasibleError
from adaptor.budget.provisioning.replanning import (
    DAEMON,
    Left,
    NoSlots,
    Replan,
    Tolerance,
    expected_seconds,
    reevaluate,
    replan,
)
from adaptor.budget.provisioning.site_offers import HeldSlots
from tests.budget.provisioning.offer_strategies import offers, site
from tests.examples import examples

NEAR = site("near", price=1.0, processors=8, mean=100.0)
FAR = site("far", price=3.0, processors=8, mean=100.0)


def left(tasks=100.0, seconds=10_000.0, budget=100.0):
    return Left(tasks=tasks, seconds=seconds, budget=budget)


def test_what_is_on_its_way_is_left_alone():
    assert replan(left(), [NEAR, FAR], {"near": 2}) is None
    assert replan(left(tasks=0.0, seconds=-5.0, budget=0.0), [NEAR], {"near": 2}) is None


def test_who_is_late_gets_more_slots_for_what_is_left():
    found = replan(left(seconds=2500.0), [NEAR, FAR], {"near": 2})
    assert found is not None
    assert found.slots["near"] == 8
    assert "the chosen slots would take 1h 24m" in found.reason
    assert "8 at near" in found.reason


def test_who_is_too_dear_gets_cheaper_slots():
    budget = 100 * 100 / 3600 * 1.2
    found = replan(left(budget=budget), [NEAR, FAR], {"far": 4})
    assert found is not None
    assert found.slots["near"] > 0
    assert found.slots.get("far", 0) < 4


def test_time_that_is_paid_is_not_paid_again():
    held = msgspec.structs.replace(NEAR, charging_unit=3600.0, held=(HeldSlots(4, 3600.0),))
    tasks = 4 * 3300 / 100
    assert replan(left(tasks=tasks, budget=0.1), [held], {"near": 4}) is None
    fresh = msgspec.structs.replace(NEAR, charging_unit=3600.0)
    assert reevaluate(tasks, [fresh], 1000.0).cost > 0


def test_where_nothing_would_do_the_chosen_slots_stay():
    assert isinstance(replan(left(budget=0.5), [NEAR, FAR], {"near": 2}), NoSlots)
    assert replan(left(seconds=10.0), [NEAR], {"near": 8}) is None, "they are all there are"


@examples(80)
@given(
    offers(held=True),
    st.floats(1, 500),
    st.floats(-10, 1e5),
    st.floats(0, 500),
    st.lists(st.integers(0, 5), min_size=4, max_size=4),
)
def test_another_plan_is_within_what_is_left_and_better(sites, tasks, seconds, budget, counts):
    slots = {each.name: min(count, each.processors) for each, count in zip(sites, counts, strict=False)}
    found = replan(left(tasks, seconds, budget), sites, slots)
    assume(isinstance(found, Replan))
    for each in sites:
        assert 0 <= found.slots.get(each.name, 0) <= each.processors
    plan = reevaluate(tasks, sites, budget)
    assert plan.cost <= budget * (1 + 1e-6)
    assert found.slots != {name: count for name, count in slots.items() if count}
    if expected_seconds(tasks, sites, slots) * (1 - DAEMON.gain) <= plan.seconds:
        assert "credits more" in found.reason, "no sooner, so those chosen cost more than is left"


def test_a_budget_that_holds_nothing_is_no_plan():
    with pytest.raises(InfeasibleError):
        reevaluate(100.0, [NEAR], 0.5)


def test_the_daemon_keeps_to_a_plan_that_is_dearer_by_less_than_5_percent():
    cost = 100 * 100 / 3600
    exact = Tolerance(name="exact", time=0.05, budget=0.0, gain=0.0)
    assert replan(left(budget=cost * 0.97), [NEAR, FAR], {"near": 2}) is None
    assert replan(left(budget=cost * 0.97), [NEAR, FAR], {"near": 2}, exact) is not None
