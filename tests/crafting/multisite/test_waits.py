"""How late the requests of a site are expected to start."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.multisite.waits import HALF_LIFE, LARGEST_SHARE, LEAST_WAIT, SHARES, WaitLearner


def test_nothing_is_known_at_first() -> None:
    assert WaitLearner().lateness(4, 0) == 0
    assert WaitLearner().worst(0) is None


def test_the_newest_request_counts_as_much_as_all_before_it() -> None:
    waits = WaitLearner()
    waits.started(4, 100, 0)
    assert waits.lateness(4, 0) == 100
    waits.started(4, 200, 0)
    assert waits.lateness(4, 0) == 150


def test_to_start_early_is_not_to_be_late() -> None:
    waits = WaitLearner()
    waits.started(4, -50, 0)
    assert waits.lateness(4, 0) == 0
    assert waits.worst(0) == 0


def test_the_nearest_width_speaks_for_one_that_nothing_is_known_of() -> None:
    waits = WaitLearner()
    waits.started(1, 10, 0)
    waits.started(64, 1000, 0)
    assert [waits.lateness(p, 0) for p in (1, 2, 5, 33, 64, 4096)] == [10, 10, 10, 1000, 1000, 1000]
    assert waits.worst(0) == 1000


def test_what_is_old_is_forgotten() -> None:
    waits = WaitLearner()
    waits.started(4, 100, 0)
    assert waits.lateness(4, HALF_LIFE) == 50


def test_one_that_was_given_up_was_at_least_so_late() -> None:
    waits = WaitLearner()
    waits.started(4, 100, 0)
    waits.gave_up(4, 900, 0)
    assert waits.lateness(4, 0) == 900
    waits.gave_up(4, 5, 0)
    assert waits.lateness(4, 0) == 900


def test_long_requests_are_late_in_another_way_than_short_ones() -> None:
    waits = WaitLearner()
    waits.started(4, 600, 0, tr=36_000)
    waits.started(4, 0, 0, tr=60)
    assert [waits.lateness(4, 0, tr) for tr in (36_000, 60)] == [600, 0]
    assert waits.lateness(4, 0, 600) == waits.lateness(4, 0) == 300, "of another time all of the width speak"


def test_waits_count_as_shares_of_the_predicted_ones() -> None:
    waits = WaitLearner()
    waits.waited(4, 1000.0, 250.0, None, submitted=0.0, tr=600)
    waits.waited(64, 1000.0, 750.0, None, submitted=0.0)
    waits.waited(4, LEAST_WAIT - 1, 90.0, None, submitted=0.0)
    assert waits.shares == (0.25, 0.75), "a short predicted wait says little"
    for _ in range(SHARES):
        waits.waited(4, 1000.0, 1e9, None, submitted=0.0)
    assert waits.copy().shares == (LARGEST_SHARE,) * SHARES


@given(st.lists(st.tuples(st.integers(1, 99), st.floats(-50, 500)), min_size=1))
def test_never_beyond_what_was_seen(seen: list[tuple[int, float]]) -> None:
    waits = WaitLearner()
    for at, (processors, late) in enumerate(seen):
        waits.started(processors, late, at)
    worst = waits.worst(len(seen))
    assert worst is not None
    assert 0 <= worst <= max(0.0, *(late for _, late in seen)) + 1e-9
