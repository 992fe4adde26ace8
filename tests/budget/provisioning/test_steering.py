"""Allocations decided again with what is left."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.budget.errors import InfeasibleError
from adaptor.budget.provisioning.allocation import least_time
from adaptor.budget.provisioning.steering import Aim, Progress, can_wait, steer
from tests.budget.provisioning.offer_strategies import offers, site
from tests.examples import examples

SITES = [site("cheap", mean=300.0), site("dear", price=2.0, mean=200.0)]


def at(now=0.0, waiting=1000, spent=0.0, committed=0.0):
    return Progress(now=now, waiting=waiting, spent=spent, committed=committed)


def test_preferences_go_from_slow_and_cheap_to_fast_and_dear():
    found = [steer(Aim(prefer=prefer), at(), SITES).allocation for prefer in ("cheap", "balanced", "fast")]
    assert found[0].seconds > found[1].seconds > found[2].seconds
    assert found[0].cost < found[1].cost < found[2].cost


def test_a_deadline_is_met_at_the_least_cost():
    step = steer(Aim(deadline=50_000.0, prefer="cheap"), at(now=36_000.0), SITES)
    assert step.kept
    assert step.allocation.seconds <= 14_000


def test_a_deadline_that_cannot_be_kept_is_missed_by_as_little_as_possible():
    step = steer(Aim(deadline=1000.0), at(), SITES)
    assert not step.kept
    assert step.allocation.seconds == pytest.approx(least_time(1000, SITES), rel=1e-3)


@examples(40)
@given(offers(), st.integers(1, 500), st.floats(0.5, 3.0), st.floats(0, 50), st.floats(0, 50))
def test_never_more_than_what_is_left(sites, tasks, share, spent, committed):
    least = tasks * min(each.cost_per_task for each in sites)
    aim = Aim(budget=spent + committed + share * least, prefer="fast")
    try:
        step = steer(aim, at(0.0, tasks, spent, committed), sites)
    except InfeasibleError:
        assume(False)
    assert spent + committed + step.allocation.cost <= aim.budget * (1 + 1e-5)


def test_what_is_spent_and_committed_is_not_spent_again():
    with pytest.raises(InfeasibleError, match="the budget is 40"):
        steer(Aim(budget=100.0), at(spent=50.0, committed=10.0), SITES)


@examples(40)
@given(offers(), st.integers(1, 500), st.floats(1.0, 1e6), st.floats(1.0, 3.0))
def test_who_waits_can_still_buy_all_in_half_of_the_time_left(sites, tasks, seconds, longer):
    near, far = (Aim(deadline=1000.0 + left, prefer="cheap") for left in (seconds, longer * seconds))
    progress = at(1000.0, tasks)
    if can_wait(near, progress, sites):
        assert least_time(tasks, sites) <= seconds / 2 * (1 + 1e-3)
        assert can_wait(far, progress, sites), "the more time there is"


@pytest.mark.parametrize(
    "aim",
    [Aim(prefer="cheap"), Aim(deadline=1e9, prefer="balanced"), Aim(deadline=1e9, prefer="fast")],
)
def test_nobody_waits_without_a_deadline_or_to_be_faster(aim):
    assert not can_wait(aim, at(), SITES)


def test_nobody_waits_without_anything_to_buy_in_the_end():
    assert not can_wait(Aim(deadline=1e9, prefer="cheap"), at(), [])
