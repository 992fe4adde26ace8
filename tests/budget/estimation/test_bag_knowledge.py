"""What a forecast is made from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.credits import MILLION
from adaptor.budget.accounting.entries import Part, Reserved
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.estimation.bag_knowledge import (
    BagKnowledge,
    BagTasks,
    PilotKnowledge,
    bag_knowledge,
    charged_so_far,
)

HOURLY = Tariff(price_explicit=2.0, price_donated=1.0, charging_unit=3600)
BY_THE_SECOND = Tariff(price_explicit=3.0, price_donated=0.5)
TASKS = BagTasks(total=100, done=40, runtimes=[10.0] * 40, started=[990.0, 1005.0, 970.0])


def pilot(
    started: float | None = None, predicted: float | None = None, granted: float = 7200
) -> PilotKnowledge:
    reserved = Reserved(
        pilot=1, site="a", p=4, tr=7200, kind="explicit", tariff=HOURLY, parts=(Part(1, 1),), at=0.0
    )
    return PilotKnowledge(
        slots=4, started=started, predicted_start=predicted, granted=granted, reserved=reserved
    )


def known(*pilots: PilotKnowledge, tasks: BagTasks = TASKS, used: int = 0) -> BagKnowledge:
    return bag_knowledge(tasks, pilots, used, [BY_THE_SECOND, HOURLY], "explicit", 30.0, now=1000.0)


def test_running_tasks_neither_wait_nor_have_finished() -> None:
    found = known()
    assert (found.tasks, found.waiting) == (100, 57)
    assert found.running == [10.0, 0.0, 30.0]


def test_the_cheapest_site_says_the_rate_and_the_unit() -> None:
    found = known()
    assert found.unit == 3600
    assert found.rate == pytest.approx(2.0 / 3600)
    donated = bag_knowledge(TASKS, [], 0, [BY_THE_SECOND, HOURLY], "donated", 30.0, now=1000.0)
    assert (donated.unit, donated.rate) == (1, pytest.approx(0.5 / 3600))


def test_a_task_of_several_processors_costs_all_of_them() -> None:
    wide = BagTasks(total=2, done=2, runtimes=[1.0, 1.0], started=[], processors=8)
    assert known(tasks=wide).rate == pytest.approx(8 * 2.0 / 3600)


def test_a_running_pilot_is_charged_for_the_unit_that_has_begun() -> None:
    found = known(pilot(started=400.0), used=MILLION)
    assert found.charged == 1.0 + 4 * 2.0
    (window,) = found.pilots
    assert (window.start, window.end, window.paid_until) == (400.0, 7600.0, 4000.0)


def test_a_queued_pilot_has_slots_and_costs_nothing_yet() -> None:
    found = known(pilot(predicted=1500.0))
    (window,) = found.pilots
    assert (found.slots, found.charged) == (4, 0.0)
    assert (window.start, window.paid_until, window.running) == (1500.0, 1500.0, False)
    assert window.rate * 4 == pytest.approx(4 * 2.0 / 3600)


def test_a_queued_pilot_starts_no_sooner_than_now() -> None:
    assert [each.start for each in known(pilot(predicted=900.0), pilot()).pilots] == [1000.0, 1000.0]


@given(st.lists(st.floats(0, 5000), max_size=5), st.integers(0, 10**9))
def test_a_bag_is_never_charged_less_than_for_what_has_ended(ages: list[float], used: int) -> None:
    pilots = [pilot(started=10_000.0 - age) for age in ages]
    assert charged_so_far(used, pilots, 10_000.0) >= used / MILLION


def test_a_clock_may_begin_at_zero() -> None:
    (window,) = known(pilot(started=0.0)).pilots
    assert (window.start, window.paid_until, window.running) == (0.0, 3600.0, True)
