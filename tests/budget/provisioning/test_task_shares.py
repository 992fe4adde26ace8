"""Tasks parted among sites by cost and time."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.allocation import least_time
from adaptor.budget.provisioning.steering import Aim, Progress
from adaptor.budget.provisioning.task_shares import DAEMON, split_tasks
from tests.budget.provisioning.offer_strategies import offers, site
from tests.examples import examples

CHEAP = site("cheap 1", price=1.0, processors=10, mean=600.0)
FAST = site("fast 1", price=6.0, processors=10, mean=300.0)
SITES = {"cheap": (CHEAP,), "fast": (FAST,)}


def at(waiting=120, now=0.0, spent=0.0, committed=0.0):
    return Progress(now=now, waiting=waiting, spent=spent, committed=committed)


@examples(60)
@given(
    offers(),
    st.integers(1, 2000),
    st.sampled_from(["cheap", "balanced", "fast"]),
    st.none() | st.floats(60, 1e6),
    st.none() | st.floats(0.01, 1000),
)
def test_every_task_has_one_place_within_the_offers_and_the_budget(sites, tasks, prefer, deadline, budget):
    by_site = {each.name: (each,) for each in sites}
    found = split_tasks(Aim(deadline=deadline, budget=budget, prefer=prefer), at(tasks), by_site)
    assert sum(share.tasks for share in found.by_site.values()) == tasks
    assert found.by_site.keys() <= by_site.keys()
    for name, share in found.by_site.items():
        assert share.tasks > 0
        assert 0 < share.slots <= by_site[name][0].processors
        assert f"{share.tasks}" in found.reason
        assert name in found.reason
    if budget is not None and math.isfinite(found.seconds):
        assert sum(share.cost for share in found.by_site.values()) <= budget * (1 + 1e-5)


def test_the_cheapest_site_alone_where_there_is_time_enough():
    found = split_tasks(Aim(deadline=100_000.0, prefer="cheap"), at(), SITES)
    assert found.by_site.keys() == {"cheap"}
    assert not found.urgent
    assert found.reason.startswith("cheapest within ")
    assert found.reason.endswith(": 120 tasks at cheap (0.167 credits each)")
    assert (found.tasks("fast"), found.slots("fast"), found.part("fast")) == (0, 0, 0.0)
    assert found.part("cheap") == 1.0


def test_the_dear_site_has_what_the_cheap_one_cannot_do_by_the_deadline():
    found = split_tasks(Aim(deadline=3700.0, prefer="cheap"), at(), SITES)
    assert not found.urgent
    assert found.tasks("cheap") == pytest.approx(60, abs=10)
    assert found.tasks("cheap") + found.tasks("fast") == 120
    later = split_tasks(Aim(deadline=4500.0, prefer="cheap"), at(), SITES)
    assert later.tasks("fast") < found.tasks("fast")


def test_a_deadline_that_cannot_be_kept_is_missed_by_as_little_as_can_be():
    found = split_tasks(Aim(deadline=1000.0, prefer="cheap"), at(), SITES)
    assert found.urgent
    assert found.by_site.keys() == {"cheap", "fast"}
    assert "late" in found.reason


def test_a_budget_that_does_not_hold_the_tasks_goes_as_far_as_it_can():
    found = split_tasks(Aim(budget=10.0, prefer="fast"), at(spent=1.0, committed=2.0), SITES)
    assert found.by_site.keys() == {"cheap"}
    assert "the budget is 7" in found.reason
    assert "what is left goes where a task costs least: 120 tasks at cheap" in found.reason
    hourly = site("cheap 1", price=1.0, processors=10, mean=600.0, charging_unit=36_000.0)
    found = split_tasks(Aim(budget=2.0, prefer="fast"), at(), {"cheap": (hourly,), "fast": (FAST,)})
    assert found.by_site.keys() == {"fast"}, "not even one request of the cheaper one can be paid"


def test_some_of_the_budget_is_kept_back_unless_it_is_needed():
    ample = split_tasks(Aim(budget=50.0, prefer="fast"), at(), SITES)
    assert sum(each.cost for each in ample.by_site.values()) <= 45.0
    needed = 120 * 600 / 3600
    scant = split_tasks(Aim(budget=needed * 1.05, prefer="fast"), at(), SITES)
    assert scant.tasks("cheap") > 110
    assert "goes where" not in scant.reason


def test_who_has_to_be_waited_for_gets_what_the_time_after_that_allows():
    waits = site("cheap 1", price=1.0, processors=10, mean=600.0, wait=1800.0)
    sooner = split_tasks(Aim(deadline=3700.0, prefer="cheap"), at(), SITES)
    later = split_tasks(Aim(deadline=3700.0, prefer="cheap"), at(), {"cheap": (waits,), "fast": (FAST,)})
    assert 0 < later.tasks("cheap") < sooner.tasks("cheap")
    in_vain = site("cheap 1", price=1.0, processors=10, mean=600.0, wait=3600.0)
    none = split_tasks(Aim(deadline=3700.0, prefer="cheap"), at(60), {"cheap": (in_vain,), "fast": (FAST,)})
    assert none.by_site.keys() == {"fast"}


def test_processors_that_are_free_at_several_instants_are_one_portion():
    later = site("cheap 2", price=1.0, processors=10, mean=600.0, wait=600.0)
    found = split_tasks(Aim(deadline=50_000.0, prefer="cheap"), at(), {"cheap": (CHEAP, later)})
    assert found.by_site.keys() == {"cheap"}
    assert found.tasks("cheap") == 120


def test_waiting_is_not_charged():
    waits = site("a", processors=1, mean=600.0, charging_unit=600.0, wait=7200.0)
    found = split_tasks(Aim(prefer="cheap"), at(6), {"a": (waits,)})
    assert found.by_site["a"].cost == pytest.approx(1.0)
    assert found.seconds > 7200 + 5 * 600


def test_no_processor_at_all_is_an_error():
    with pytest.raises(BudgetError, match="no site has a processor"):
        split_tasks(Aim(prefer="cheap"), at(), {"a": (site("a", processors=0),)})


@examples(60)
@given(
    st.integers(20, 300),
    st.integers(1, 40),
    st.floats(0.0, 20_000.0),
    st.floats(0.05, 0.8),
    st.floats(0.3, 3.0),
)
def test_cheaper_processors_that_come_later_are_waited_for_while_they_hold_the_tasks(
    tasks, processors, wait, price, slack
):
    """As donated nodes that will become idle: the rest is bought if they cannot do all tasks in time."""
    later = site("later", price=price, processors=processors, wait=wait)
    alone = least_time(tasks, [later], DAEMON.certainty**0.5)
    offers = {"now": [site("now", processors=100)], "later": [later]}
    split = split_tasks(Aim(deadline=alone * slack, prefer="cheap"), Progress(now=0.0, waiting=tasks), offers)
    if slack > 1.01:
        assert split.slots("now") == 0
        assert split.tasks("later") == tasks
    elif slack < 0.9 and alone * slack > 3000:  # what is there now could do all by then
        assert split.tasks("now") > 0


def test_what_costs_less_elsewhere_comes_first():
    found = split_tasks(Aim(deadline=3700.0, prefer="cheap"), at(), SITES)
    assert found.slots_at_less("fast") == found.slots("cheap") > 0
    assert found.slots_at_less("cheap") == 0
    assert found.slots_at_less("elsewhere") == 0
