"""Waits that double after failures in a row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.backoff import Backoff, Pace


def test_waits_double_up_to_the_most_and_a_success_ends_them() -> None:
    backoff = Backoff(first=30, most=100)
    waits = []
    for _ in range(4):
        backoff.failed(1000.0, "refused")
        waits.append(backoff.until - 1000.0)
    assert waits == [30, 60, 100, 100]
    assert backoff.waiting(1099.0)
    assert not backoff.waiting(1100.0)
    backoff.succeeded()
    assert not backoff.waiting(1000.0)


def test_some_failures_may_be_tolerated() -> None:
    backoff = Backoff(first=60, most=3600, tolerated=2)
    for _ in range(2):
        backoff.failed(0.0, "idle")
        assert not backoff.waiting(0.0)
    backoff.failed(0.0, "idle")
    assert backoff.waiting(59.0)


def test_failures_for_days_keep_the_longest_wait() -> None:
    backoff = Backoff(first=2, most=30)
    for _ in range(5000):
        backoff.failed(1000.0, "unreachable")
    assert backoff.until == 1030.0


@given(st.lists(st.floats(0.0, 40.0), max_size=80), st.integers(1, 20), st.floats(0.5, 15.0))
def test_a_pace_bounds_the_looks_of_any_time(idle: list[float], burst: int, every: float) -> None:
    pace, now, looks = Pace(burst, every), 1000.0, list[float]()
    for seconds in idle:
        looks.append(now)
        now += max(seconds if len(looks) % 3 else 0.0, pace.pause(now))
    for first, begin in enumerate(looks):
        for number, end in enumerate(looks[first:], start=1):
            assert number <= burst + 1 + (end - begin) / every + 1e-6


def test_a_burst_is_not_slowed_down_and_comes_back_after_a_rest() -> None:
    pace = Pace(3, 10.0)
    assert [pace.pause(0.0) for _ in range(5)] == [0, 0, 0, 10, 20]
    assert pace.pause(1000.0) == 0
    assert Pace(3, 0.0).pause(0.0) == 0


def test_a_site_that_is_woken_every_second_is_looked_at_a_seventh_as_often() -> None:
    pace, now, looks = Pace(20, 7.5), 0.0, 0
    while now < 3600:
        now += max(1.0, pace.pause(now))
        looks += 1
    assert 480 <= looks <= 510
