"""What a bag will cost and when it will end."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.estimation.bag_knowledge import BagKnowledge, Window
from adaptor.budget.estimation.forecast import forecast, worth_telling

SEEN = BagKnowledge(
    now=1000.0,
    tasks=100,
    finished=[10.0] * 40,
    running=[],
    waiting=60,
    pilots=[],
    charged=2.0,
    rate=0.01,
    unit=1.0,
    startup=0.0,
)


def window(slots: int, start: float = 0.0, unit: float = 1.0, paid_until: float = 1000.0) -> Window:
    return Window(
        slots=slots,
        start=start,
        end=1e9,
        last_end=1e9,
        unit=unit,
        rate=0.01,
        running=start <= 1000,
        paid_until=paid_until,
    )


SEEN = msgspec.structs.replace(SEEN, pilots=[window(6)])


def test_equal_tasks_cost_what_they_take() -> None:
    found = forecast(SEEN)
    assert found.least == pytest.approx(2.0 + 600 * 0.01)
    assert found.least <= found.cost.low <= found.cost.value <= found.cost.high < 2.0 + 6 * 120 * 0.01
    assert found.end is not None
    assert found.end.low == pytest.approx(1100.0, abs=10.0)


def test_nothing_is_left() -> None:
    found = forecast(msgspec.structs.replace(SEEN, waiting=0))
    assert (found.cost.low, found.cost.high) == (2.0, 2.0)
    assert found.end is not None
    assert found.end.value == 1000.0


def test_without_any_slot_it_ends_nobody_knows_when() -> None:
    assert forecast(msgspec.structs.replace(SEEN, pilots=[])).end is None


def test_it_begins_when_the_first_slot_is_there() -> None:
    found = forecast(msgspec.structs.replace(SEEN, pilots=[window(6, start=5000.0, paid_until=5000.0)]))
    assert found.end is not None
    assert found.end.low == pytest.approx(5100.0, abs=10.0)


def test_two_runtimes_at_least() -> None:
    with pytest.raises(ValueError, match="two finished tasks"):
        forecast(msgspec.structs.replace(SEEN, finished=[10.0]))
    assert not worth_telling(1, 1000)
    assert worth_telling(30, 1000)
    assert worth_telling(5, 20)


def test_what_is_paid_already_costs_nothing_more() -> None:
    pilots = [window(6, unit=3600.0, paid_until=3600.0)]
    hourly = msgspec.structs.replace(SEEN, unit=3600.0, charged=216.0, pilots=pilots)
    found = forecast(hourly)
    assert (found.cost.low, found.cost.high) == (216.0, 216.0)
    longer = forecast(msgspec.structs.replace(hourly, waiting=1700))
    assert longer.least == pytest.approx(216.0 + (17_000 - 15_600) * 0.01)
    assert longer.cost.low >= longer.least
    assert longer.cost.high == pytest.approx(216.0 + 6 * 3600 * 0.01)


def test_a_pilot_that_ends_takes_its_slots_with_it() -> None:
    """Without the second pilot, which ends after one task, the work takes nearly twice as long."""
    short = msgspec.structs.replace(window(6), end=1015.0)
    found = forecast(msgspec.structs.replace(SEEN, pilots=[window(6), short]))
    assert found.end is not None
    assert found.end.value > 1080.0


def test_what_the_pilots_have_no_time_for_is_asked_for_besides() -> None:
    short = msgspec.structs.replace(window(6), end=1030.0)
    found = forecast(msgspec.structs.replace(SEEN, pilots=[short]))
    assert found.end is not None
    assert found.end.high > 1030.0
    assert found.cost.low >= found.least >= 2.0 + 600 * 0.01 - 1e-6


def test_the_longest_task_may_end_last() -> None:
    """As each runtime is twice the one before, a hundred more tasks have longer ones among them."""
    finished = [float(2**power) for power in range(15)]
    found = forecast(msgspec.structs.replace(SEEN, finished=finished, waiting=100, pilots=[window(100)]))
    assert found.end is not None
    assert found.end.high > SEEN.now + finished[-1] > SEEN.now + found.work.high / 100


@given(
    st.lists(st.floats(0.1, 1e4), min_size=2, max_size=40), st.lists(st.floats(0, 1e4), max_size=8),
    st.integers(0, 1000), st.integers(0, 50), st.floats(1, 3600),
)  # fmt: skip
def test_intervals_are_in_order(
    finished: list[float], running: list[float], waiting: int, slots: int, unit: float
) -> None:
    pilots = [window(slots, unit=unit)] if slots else []
    found = forecast(
        msgspec.structs.replace(
            SEEN, finished=finished, running=running, waiting=waiting, unit=unit, pilots=pilots
        )
    )
    assert SEEN.charged <= found.least <= found.cost.low <= found.cost.value <= found.cost.high
    if found.end is not None:
        assert SEEN.now <= found.end.low <= found.end.value <= found.end.high


def test_the_cost_lies_in_the_interval_as_often_as_it_says() -> None:
    """Pilots of 4 slots that leave when nothing waits, charged by the minute."""
    draw = random.Random(11)
    kept = 0
    for _ in range(200):
        runtimes = [max(5.0, draw.gauss(60, 20)) for _ in range(200)]
        found = forecast(
            msgspec.structs.replace(
                SEEN,
                now=1000.0,
                tasks=200,
                finished=runtimes[:30],
                waiting=170,
                charged=0.0,
                unit=60.0,
                pilots=[window(1, unit=60.0)] * 4,
            )
        )
        kept += found.cost.low <= _paid(runtimes[30:], 4, 60.0) * SEEN.rate <= found.cost.high
    assert kept >= 0.85 * 200


def _paid(runtimes: list[float], slots: int, unit: float) -> float:
    """Seconds of slots, begun units whole."""
    ends = [0.0] * slots
    for each in runtimes:
        ends[ends.index(min(ends))] += each
    return sum(-(-end // unit) * unit for end in ends)


def test_pilots_that_end_with_a_unit_go_on_where_work_is_left() -> None:
    """Six slots are paid for 200 s more, and the tasks need 33 s on them, or 1,000 s."""
    ending = msgspec.structs.replace(window(6), end=1200.0)
    for waiting, at_least, at_most in ((20, 1000.0, 1100.0), (600, 1950.0, 2200.0)):
        known = msgspec.structs.replace(SEEN, pilots=[ending], waiting=waiting, tasks=30 + waiting)
        found = forecast(known).end
        assert found is not None
        assert at_least <= found.low <= found.high <= at_most
