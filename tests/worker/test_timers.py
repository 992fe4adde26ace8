"""The heap of the worker's times: every timer acts once, when it was last set to, and not before."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from adaptor.worker.timers import NEVER, Timers

times = st.integers(0, 20).map(float) | st.just(NEVER)
steps = st.one_of(
    st.tuples(st.just("set"), st.integers(0, 4), times),
    st.tuples(st.just("advance"), st.integers(0, 4), times),
    st.tuples(st.just("run"), st.just(0), st.integers(0, 3).map(float)),
)


@given(st.lists(steps, max_size=60))
def test_timers_are_what_a_table_of_times_is(many: list[tuple[str, int, float]]) -> None:
    timers, now, acted = Timers(), 0.0, list[tuple[int, float]]()
    made = [timers.new(partial(lambda n, at: acted.append((n, at)), number)) for number in range(5)]
    table = dict.fromkeys(range(5), NEVER)
    for what, number, value in many:
        if what == "run":
            now += value
            timers.run(now)
            due = sorted((at, each) for each, at in table.items() if at <= now)
            assert sorted(acted) == sorted((each, now) for _, each in due)
            table.update((each, NEVER) for _, each in due)
            acted.clear()
        else:
            table[number] = min(table[number], value) if what == "advance" else value
            getattr(made[number], what)(value)
        assert timers.next_due() == min(table.values())
        assert [timer.due for timer in made] == list(table.values())


def test_they_act_in_the_order_of_their_times_and_may_set_others() -> None:
    timers, acted = Timers(), list[str]()
    last = timers.new(lambda _now: acted.append("last"))
    first = timers.new(lambda _now: (acted.append("first"), last.set(3.0)))  # type: ignore[func-returns-value]
    between = timers.new(lambda _now: acted.append("between"))
    between.set(2.0)
    first.set(1.0)
    timers.run(3.0)
    assert acted == ["first", "between", "last"]


def test_timers_that_are_set_earlier_and_later_for_days_take_no_more_memory() -> None:
    timers = Timers()
    timer = timers.new(lambda _now: None)
    for now in range(1000):
        timer.set(now + 5000.0)
        timer.set(float(now))
        timers.run(float(now))
    assert len(timers._heap) <= 8
