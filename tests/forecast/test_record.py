"""Which forecasts are judged, which bags count, and how often they held."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.forecast.record import LATE, FirstForecast, Judged, Outcome, record_of
from adaptor.model import Estimate, UserChange

FIRST = FirstForecast(
    made=1000.0, finished=30, tasks=100, cost=Estimate(1.0, 1.5, 2.0), end=Estimate(2000.0, 2500.0, 3000.0)
)
UNCHANGED = Outcome(cost=1.2, end=2400.0, change=None, changed=None)


def judged(**outcome: object) -> Judged:
    return Judged(first=FIRST, outcome=msgspec.structs.replace(UNCHANGED, **outcome))


def made_after(finished: int, tasks: int) -> Judged:
    return Judged(first=msgspec.structs.replace(FIRST, finished=finished, tasks=tasks), outcome=UNCHANGED)


def test_cost_and_end_are_judged_by_themselves() -> None:
    dear, late = judged(cost=2.1), judged(end=3001.0)
    assert (dear.cost_held, dear.end_held) == (False, True)
    assert (late.cost_held, late.end_held) == (True, False)
    early = judged(end=1999.0)
    assert early.end_held is False, "sooner than forecast is a miss, too"


def test_nothing_is_judged_before_it_is_known() -> None:
    running, unsettled = judged(end=None), judged(cost=None)
    assert (running.cost_held, running.end_held) == (None, None)
    assert (unsettled.cost_held, unsettled.end_held) == (None, True)
    found = record_of([running, unsettled])
    assert (found.bags, found.cost, found.end, found.not_counted) == (0, None, None, {})


@pytest.mark.parametrize("change", ["budget changed", "cancelled", "retried", "pilots cancelled"])
def test_what_the_user_changed_afterwards_does_not_count(change: UserChange) -> None:
    after, before = judged(change=change, changed=1000.0), judged(change=change, changed=999.9)
    assert after.not_counted == change
    assert (after.cost_held, after.end_held) == (None, None)
    assert before.not_counted == ""
    found = record_of([after, before])
    assert (found.bags, found.not_counted) == (1, {change: 1})


def test_a_bag_that_runs_on_after_a_change_is_not_among_those_that_ended() -> None:
    assert record_of([judged(change="budget changed", changed=1500.0, end=None)]).not_counted == {}


def test_a_forecast_with_little_left_to_forecast_does_not_count() -> None:
    assert made_after(50, 100).not_counted == ""
    assert made_after(51, 100).not_counted == LATE
    assert made_after(2, 4).not_counted == ""
    assert record_of([made_after(99, 100)]).not_counted == {LATE: 1}


def test_the_record_counts_each_bag_once_with_what_chance_leaves_open() -> None:
    bags = [judged()] * 20 + [judged(cost=9.0)] * 2 + [judged(cost=0.5, end=9000.0)]
    found = record_of([*bags, judged(change="retried", changed=2000.0)])
    assert found.bags == 23
    assert found.cost is not None
    assert found.end is not None
    assert (found.cost.held, found.end.held) == (20, 22)
    assert found.cost.value == pytest.approx(20 / 23)
    assert (found.cost.low, found.cost.high) == (
        pytest.approx(0.679, abs=1e-3),
        pytest.approx(0.955, abs=1e-3),
    )
    assert found.not_counted == {"retried": 1}


outcomes = st.builds(
    Outcome,
    cost=st.none() | st.floats(0, 4),
    end=st.none() | st.floats(1000, 4000),
    change=st.none() | st.just("cancelled"),
    changed=st.none() | st.floats(0, 4000),
)


@given(st.lists(outcomes, max_size=30))
def test_every_ended_bag_is_counted_or_not_for_a_reason_or_is_still_to_be_settled(
    found: list[Outcome],
) -> None:
    record = record_of(Judged(first=FIRST, outcome=each) for each in found)
    ended = [each for each in found if each.end is not None]
    waiting = [
        each
        for each in ended
        if each.cost is None and not (each.change and (each.changed or 0) >= FIRST.made)
    ]
    assert record.bags + sum(record.not_counted.values()) + len(waiting) == len(ended)
    for share in (record.cost, record.end):
        assert (share is None) is (record.bags == 0)
        assert share is None or 0 <= share.low <= share.value <= share.high <= 1
        assert share is None or math.isclose(share.value * record.bags, share.held)
