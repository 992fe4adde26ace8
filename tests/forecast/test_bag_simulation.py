"""One course of a bag: it learns by the bag's own rule, and is charged as the ledger charges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.forecast.bag_simulation import CourseResult, Work, course_result
from adaptor.forecast.supply import Moment, PilotAhead
from adaptor.model import Request
from adaptor.runtimes.known import ENOUGH, KnownRuntimes
from adaptor.runtimes.learner import RuntimeLearner

LEARNER = RuntimeLearner(initial=40.0, factor=2, longest=1000.0)


class Always(msgspec.Struct, frozen=True):
    """Every task takes this long."""

    mean: float

    def one(self, _progress: float) -> float:
        return self.mean

    def several(self, count: float, _progress: float) -> float:
        return count * self.mean

    def rest(self, ran: float) -> float:
        return max(1e-3, self.mean - ran)


class Exactly:
    """Each request is as long as a task is taken to need then, and starts at once."""

    paced = False

    def __init__(self, most: float = math.inf) -> None:
        """`most`: pilots in all."""
        self._most = most
        self.needed: list[float] = []

    def asked(self, moment: Moment) -> list[PilotAhead]:
        needed = moment.needed("here")
        self.needed.append(needed)
        return [pilot(needed, start=moment.now)] if len(self.needed) <= self._most else []

    def goes_on(self, _moment: Moment, _pilot: PilotAhead, _ages: Sequence[float]) -> bool:
        return True


def pilot(seconds: float, start: float = 0.0, **changes: Any) -> PilotAhead:
    base = PilotAhead(
        site="here", p=1, slots=1, began=start, start=start, end=start + seconds, useful=seconds
    )
    return msgspec.structs.replace(base, **changes)


def course(
    takes: float,
    supply: Exactly,
    *,
    rule: RuntimeLearner = LEARNER,
    waiting: int = 1,
    pilots: Sequence[PilotAhead] = (),
    idle_costs: bool = False,
    **learned: Any,
) -> CourseResult:
    learners = {"here": msgspec.structs.replace(rule, seen=KnownRuntimes(**learned), cuts={})}
    work = Work(now=0.0, waiting=waiting, learners=learners, most=4, idle_costs=idle_costs)
    return course_result(work, pilots, Always(takes), supply)


@pytest.mark.parametrize("factor", [2, 3, 5])
def test_a_task_that_was_cut_is_asked_for_by_the_growth_factor_of_the_site(factor: int) -> None:
    """40 s, 40 s times the factor and so on, until the task of 300 s fits."""
    rule, supply = msgspec.structs.replace(LEARNER, factor=factor), Exactly()
    expected = [40.0]
    while expected[-1] < 300.0:
        expected.append(min(rule.longest, expected[-1] * factor))
    found = course(300.0, supply, rule=rule)
    assert supply.needed == expected
    assert found.end == pytest.approx(sum(expected[:-1]) + 300.0)


def test_a_task_longer_than_any_request_is_given_up() -> None:
    supply = Exactly()
    found = course(5000.0, supply)
    assert supply.needed[-1] == LEARNER.longest
    assert found.end < math.inf


class ByUnits(Exactly):
    """No pilot goes on for another charging unit."""

    def goes_on(self, _moment: Moment, _pilot: PilotAhead, _ages: Sequence[float]) -> bool:
        return False


@pytest.mark.parametrize(
    ("takes", "waiting", "end"), [(150.0, 1, 250.0), (40.0, 3, 140.0), (7.0, 400, 2802.0)]
)
def test_what_a_pilot_leaves_at_the_end_of_a_charging_unit_starts_anew_and_what_it_has_done_counts(
    takes: float, waiting: int, end: float
) -> None:
    rule = msgspec.structs.replace(LEARNER, initial=takes)
    pilots = [pilot(1000.0, unit=100.0), pilot(10_000.0, start=100.0)]
    found = course(takes, ByUnits(most=0), rule=rule, waiting=waiting, pilots=pilots)
    assert found.end == pytest.approx(end)


SEVERAL: dict[str, Any] = {"finished": ENOUGH, "total": ENOUGH * 50.0, "longest": 400.0}


@pytest.mark.parametrize(("even_odds", "end"), [(True, 100.0), (False, math.inf)])
def test_tasks_start_at_even_odds_where_the_bag_does_so(even_odds: bool, end: float) -> None:
    """A pilot has time for usual tasks, and not for the longest; more tasks wait than run."""
    rule = msgspec.structs.replace(LEARNER, even_odds=even_odds)
    found = course(50.0, Exactly(most=0), rule=rule, waiting=2, pilots=[pilot(120.0)], **SEVERAL)
    assert found.end == end


@pytest.mark.parametrize(("idle_costs", "end"), [(False, 100.0), (True, 50.0)])
def test_where_idle_slots_cost_the_same_the_last_task_starts_at_even_odds_too(
    idle_costs: bool, end: float
) -> None:
    """As many wait as run when the second of two slots is asked."""
    rule = msgspec.structs.replace(LEARNER, even_odds=True)
    pilots = [pilot(120.0), pilot(120.0)]
    found = course(
        50.0, Exactly(most=0), rule=rule, waiting=2, pilots=pilots, idle_costs=idle_costs, **SEVERAL
    )
    assert found.end == end


def test_an_idle_slot_takes_what_is_cut_elsewhere() -> None:
    """The first task is cut at 45; the pilot that runs the second one has a slot without a task."""
    wide = msgspec.structs.replace(pilot(300.0), p=2, slots=2)
    found = course(50.0, Exactly(most=0), waiting=2, pilots=[pilot(45.0), wide])
    assert found.end == pytest.approx(95.0)


def test_what_finishes_is_learned() -> None:
    """The first estimate lets no second task start in the pilot; what the first one took does."""
    rule = msgspec.structs.replace(LEARNER, initial=90.0)
    found = course(30.0, Exactly(most=0), rule=rule, waiting=3, pilots=[pilot(100.0)])
    assert found.end == pytest.approx(90.0)


@given(
    takes=st.floats(1.0, 5000.0),
    tasks=st.integers(1, 40),
    p=st.integers(1, 64),
    began=st.floats(-4000.0, 0.0),
    unit=st.sampled_from([1, 60, 3600]),
    price=st.floats(0.01, 50.0),
)
def test_the_cost_is_what_the_ledger_charges_for_the_pilot(
    takes: float, tasks: int, p: int, began: float, unit: int, price: float
) -> None:
    """The pilot is held until the last task ends; one that would start later costs nothing."""
    tariff = Tariff(price_explicit=price, price_donated=price, charging_unit=unit)
    rule = msgspec.structs.replace(LEARNER, longest=1e6)
    held = pilot(1e6, p=p, began=began, tariff=tariff)
    later = pilot(1e3, start=2e6, p=p, tariff=tariff)
    work = Work(now=0.0, waiting=tasks, learners={"here": rule.copy()}, most=1)
    found = course_result(work, [held, later], Always(takes), Exactly())
    ledger = Ledger()
    ledger.set_price("here", tariff, began)
    ledger.reserve(1, "here", Request(p, int(1e6)), "explicit", {7: 1.0}, began)
    ledger.settle(1, began, found.end, {7: Use(useful=1.0, wasted=0.0)}, found.end)
    assert found.cost == ledger.of_bag(7).used


@pytest.mark.parametrize("most", [4, 32], ids=["one by one", "joined"])
def test_each_narrow_pilot_is_charged_until_its_own_last_task_has_ended(most: int) -> None:
    """No task waits, so each ends when it is idle, and not when the bag ends."""
    tariff = Tariff(price_explicit=3600.0, price_donated=3600.0, charging_unit=1)
    held = [pilot(1e4, tariff=tariff, elapsed=(100.0 * place / most,)) for place in range(most)]
    work = Work(now=0.0, waiting=0, learners={"here": LEARNER.copy()}, most=most)
    found = course_result(work, held, Always(100.0), Exactly())
    ends = [100.0 * (1 - place / most) for place in range(most)]
    assert found.end == 100.0
    assert found.cost / 1e6 == pytest.approx(sum(ends), abs=most)


def test_a_pilot_is_charged_while_a_task_waits_that_it_has_no_time_for() -> None:
    tariff = Tariff(price_explicit=3600.0, price_donated=3600.0, charging_unit=1)
    held = [pilot(1e4, tariff=tariff, elapsed=(50.0,)), pilot(30.0, tariff=tariff, elapsed=())]
    work = Work(now=0.0, waiting=1, learners={"here": LEARNER.copy()}, most=2)
    found = course_result(work, held, Always(100.0), Exactly(0))
    assert (found.end, found.cost / 1e6) == (150.0, 150.0 + 30.0)
