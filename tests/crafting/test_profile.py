"""The profile against hand-computed cases and against counting every second."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.profile import Profile

from .crafting_strategies import HORIZON, Hold, holds, profiles


def seconds(profile: Profile, until: int = HORIZON + 2) -> list[int]:
    """Free processors in each second from 0 on."""
    return [profile.free_at(second) for second in range(until)]


def test_a_site_with_nothing_on_it_is_free_for_ever() -> None:
    profile = Profile(100.0, 8)
    assert profile.steps()[0][0] == 100.0
    assert profile.steps() == [(100.0, 8)]
    assert profile.free_at(1e12) == 8
    assert profile.earliest_start(8, math.inf) == 100.0
    assert profile.earliest_start(9, 1) == math.inf


def test_taking_makes_steps_and_giving_back_removes_them() -> None:
    profile = Profile(0, 8)
    profile.take(10, 20, 3)
    profile.take(20, 20, 5)
    assert profile.steps() == [(0, 8), (10, 5), (20, 0), (30, 3), (40, 8)]
    profile.give(20, 20, 5)
    profile.give(10, 20, 3)
    assert profile.steps() == [(0, 8)]


def test_taking_for_ever_has_no_end() -> None:
    profile = Profile(0, 8)
    profile.take(10, math.inf, 3)
    assert profile.steps() == [(0, 8), (10, 5)]
    assert profile.earliest_start(6, 10) == 0
    assert profile.earliest_start(6, 11) == math.inf


def test_neighbours_with_the_same_number_are_one_step() -> None:
    profile = Profile(0, 8)
    profile.take(0, 10, 3)
    profile.take(10, 10, 3)
    assert profile.steps() == [(0, 5), (20, 8)]


def test_more_than_is_free_cannot_be_taken_and_changes_nothing() -> None:
    profile = Profile(0, 4)
    profile.take(10, 10, 3)
    before = profile.steps()
    with pytest.raises(ValueError, match="2 processors wanted for 15 s, but 1 are free"):
        profile.take(0, 15, 2)
    assert profile.steps() == before


def test_a_copy_goes_its_own_way() -> None:
    profile = Profile(0, 4)
    twin = profile.copy()
    twin.take(0, 5, 4)
    assert profile.steps() == [(0, 4)]
    assert twin.steps() == [(0, 0), (5, 4)]


def test_what_lies_before_the_start_is_left_out() -> None:
    profile = Profile.holding(100, 4, [(50, 120, 1), (0, 100, 4)])
    assert profile.steps() == [(100, 3), (120, 4)]
    assert profile.free_at(0) == 3


def test_holds_beyond_the_site_leave_nothing_free_and_never_less() -> None:
    profile = Profile.holding(0, 4, [(0, 10, 3), (0, 20, 3), (5, math.inf, 1)])
    assert profile.steps() == [(0, 0), (20, 3)]
    assert min(free for _, free in profile.steps()) == 0


def test_the_earliest_start_looks_past_holes_that_are_too_short() -> None:
    profile = Profile.holding(0, 4, [(0, 10, 4), (15, 20, 2), (30, 40, 4)])
    assert profile.earliest_start(3, 5) == 10
    assert profile.earliest_start(3, 6) == 20
    assert profile.earliest_start(2, 20) == 10
    assert profile.earliest_start(2, 21) == 40
    assert profile.earliest_start(3, 1, not_before=12.5) == 12.5
    assert profile.earliest_start(1, 1, not_before=1000) == 1000


@given(st.integers(0, 20), holds())
def test_holding_equals_counting_every_second(processors: int, taken: list[Hold]) -> None:
    profile = Profile.holding(0, processors, [(start, start + long, p) for start, long, p in taken])
    used = [sum(p for start, long, p in taken if start <= s < start + long) for s in range(HORIZON + 2)]
    assert seconds(profile) == [max(0, processors - each) for each in used]


@given(holds())
def test_take_and_give_equal_counting_every_second(taken: list[Hold]) -> None:
    profile, expected = Profile(0, 20), [20] * (HORIZON + 2)
    held: list[Hold] = []
    for start, long, p in taken:
        possible = min(expected[start : start + long]) >= p
        if possible:
            profile.take(start, long, p)
            held.append((start, long, p))
            expected[start : start + long] = [each - p for each in expected[start : start + long]]
        else:
            with pytest.raises(ValueError, match="processors wanted"):
                profile.take(start, long, p)
        assert seconds(profile) == expected
    steps = profile.steps()
    assert all(a[1] != b[1] and a[0] < b[0] for a, b in pairwise(steps))
    for start, long, p in held:
        profile.give(start, long, p)
    assert profile.steps() == [(0, 20)]


@given(profiles(), st.integers(0, HORIZON), st.integers(1, HORIZON))
def test_the_minimum_is_that_of_the_seconds(profile: Profile, start: int, long: int) -> None:
    assert profile.minimum(start, start + long) == min(seconds(profile, start + long)[start:])


@given(profiles(), st.integers(1, 20), st.integers(1, 30), st.integers(0, HORIZON))
def test_the_earliest_start_is_the_first_second_that_will_do(
    profile: Profile, processors: int, long: int, not_before: int
) -> None:
    free = seconds(profile, 3 * HORIZON)
    reference = next(
        (s for s in range(not_before, 2 * HORIZON) if min(free[s : s + long]) >= processors), math.inf
    )
    assert profile.earliest_start(processors, long, not_before) == reference


@given(
    profiles(),
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.one_of(st.integers(0, 20), st.just(math.inf)),
            st.one_of(st.integers(-2, HORIZON + 5), st.just(-math.inf)),
        ),
        max_size=6,
    ),
)
def test_placing_is_taking_from_the_earliest_start_on(
    profile: Profile, jobs: list[tuple[int, float, float]]
) -> None:
    other = profile.copy()
    for processors, long, not_before in jobs:
        start = other.earliest_start(processors, long, not_before)
        if start < math.inf:
            other.take(start, long, processors)
        assert profile.place(processors, long, not_before) == start
        assert profile.steps() == other.steps()
