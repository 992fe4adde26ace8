"""The loops against the plain data structure of the other heuristics, and against what they must mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.profile import Profile
from adaptor.crafting.rollout import kernel
from adaptor.crafting.rollout.kernel import Floats
from tests.examples import examples


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    holds = st.tuples(st.integers(0, 40), st.integers(1, 40), st.integers(1, 4))
    drawn = draw(st.lists(holds, max_size=8))
    return Profile.holding(
        0.0, 16, [(float(begin), float(begin + long), held) for begin, long, held in drawn]
    )


def as_array(profile: Profile) -> Floats:
    return np.array(list(zip(*profile.steps(), strict=True)), np.float64)


@examples(100)
@given(profiles())
def test_rectangles_are_the_free_slots(profile: Profile) -> None:
    found = np.empty((len(profile.steps()) + 1, 3))
    count = kernel.rectangles(as_array(profile), found)
    slots = {(slot.start, slot.start + slot.duration, slot.processors) for slot in profile.free_slots()}
    found[:, 1][found[:, 1] == kernel.NEVER] = math.inf
    rows = {(start, end, int(free)) for start, end, free in found[:count].tolist()}
    assert rows == slots


@examples(100)
@given(profiles(), st.integers(0, 60), st.integers(1, 30), st.integers(1, 16))
def test_taking_is_that_of_the_profile(profile: Profile, start: int, duration: int, p: int) -> None:
    left = kernel.taken(as_array(profile), float(start), float(start + duration), float(p))
    if profile.minimum(start, start + duration) >= p:
        profile.take(start, duration, p)
        assert left.tolist() == as_array(profile).tolist()
    assert (left[kernel.FREE] >= 0).all()


def rules(**changed: float) -> Floats:
    values = {"WIDEST": 16, "UNIT": 1, "TASKS": 1, "MAX_TR": 3600, "LEAST": 60, "PACE": 1, "RESOLUTION": 1}
    array = np.zeros(kernel.RULES)
    for name, value in {**values, **changed}.items():
        array[getattr(kernel, name)] = value
    return array


@examples(100)
@given(profiles(), st.integers(1, 40), st.sampled_from([1, 60]))
def test_offers_fit_and_hold_the_shortest_task(profile: Profile, tasks: int, resolution: int) -> None:
    found = kernel.offers(as_array(profile), rules(RESOLUTION=resolution, LEAST=5), float(tasks))
    for start, length, slots, _ in found.tolist():
        assert profile.minimum(start, start + length) >= slots
        assert 5 <= length <= 3600
        assert length % resolution == 0
        assert 1 <= slots <= min(16, tasks)


@pytest.mark.parametrize(
    ("seconds", "length", "age", "mean", "longest", "finished"),
    [
        (100, 1000, 0, 100, 100, 1),
        (99, 1000, 0, 100, 100, 0),
        (5000, 250, 0, 100, 100, 2),  # its end
        (50, 1000, 50, 100, 100, 1),  # half is done
        (5000, 150, 0, 100, 175, 0),  # no task is started for which its end comes too soon
        (5000, 175, 0, 100, 175, 1.05),
        (5000, 1000, 0, 100, 175, 9.3),  # others are started until as much is left as they take in the mean
    ],
)
def test_tasks_of_one_slot(
    seconds: float, length: float, age: float, mean: float, longest: float, finished: float
) -> None:
    assert kernel.done(seconds, length, age, mean, longest) == pytest.approx(finished)


def test_a_bag_on_a_free_machine_is_done_after_its_rounds() -> None:
    beliefs, wanted = np.array([[100.0, 100.0, 1.0]]), rules()
    free = as_array(Profile(0.0, 16))
    later = kernel.as_now(kernel.offers(free, wanted, 48.0), beliefs, wanted)
    members = kernel.chosen(free, np.empty((0, 4)), 1, kernel.NEVER, 48.0, beliefs, later, wanted)
    assert members[:, kernel.SLOTS].tolist() == [16.0]
    assert kernel.completion(members, 48.0, beliefs[0], later[0], wanted) == pytest.approx(300, rel=0.01)


def test_what_starts_now_is_chosen_beside_what_waits() -> None:
    beliefs, wanted = np.array([[100.0, 100.0, 1.0]]), rules()
    profile = as_array(Profile.holding(0.0, 16, [(0.0, 300.0, 8), (300.0, 1000.0, 16)]))
    later = np.zeros((1, 1, kernel.GRID))
    held = np.empty((0, 4))
    for beside, starts in ((0, [1000]), (1, [0, 1000]), (4, [0, 1000])):
        found = kernel.chosen(profile, held, 1, kernel.NEVER, 100.0, beliefs, later, wanted, beside)
        assert sorted(found[:, kernel.START]) == starts
    assert not len(kernel.chosen(profile, held, 0, kernel.NEVER, 100.0, beliefs, later, wanted, 4)), (
        "no place is left for it to be submitted"
    )


def test_requests_one_after_another_go_on_at_their_pace() -> None:
    beliefs, wanted = np.array([[3600.0, 3600.0, 1.0]]), rules(LEAST=3600)
    later = kernel.as_now(kernel.offers(as_array(Profile(0.0, 16)), wanted, 1e6), beliefs, wanted)
    for place in range(kernel.GRID):
        rounds = kernel.grid_time(place) / 3600
        assert 0.7 * 16 * (rounds - 1) <= later[0, 0, place] <= 16 * rounds + kernel.TINY


def test_tasks_that_have_outlasted_what_is_believed_of_them_are_done_at_once() -> None:
    """Else the search for the second in which they are done would not end."""
    beliefs, wanted = np.array([[100.0, 100.0, 1.0]]), rules()
    running = np.array([[0.0, 500.0, 16.0, 150.0]])
    later = np.zeros((1, 1, kernel.GRID))
    assert kernel.completion(running, 16.0, beliefs[0], later[0], wanted) <= 1.0


@examples(100)
@given(
    st.lists(
        st.tuples(st.integers(0, 5000), st.integers(60, 5000), st.integers(1, 16), st.integers(0, 900)),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 200),
    st.integers(1, 1000),
    st.floats(1.0, 3.0),
)
def test_the_completion_is_a_time_at_which_all_tasks_are_finished(
    drawn: list[tuple[int, int, int, int]], tasks: int, mean: int, spread: float
) -> None:
    members = np.array(
        [(start, long, slots, 0 if start else age) for start, long, slots, age in drawn], float
    )
    beliefs, wanted = np.array([[mean, mean * spread, 1.0]]), rules(LEAST=60)
    later = kernel.as_now(kernel.offers(as_array(Profile(0.0, 16)), wanted, 1e6), beliefs, wanted)
    end = kernel.completion(members, float(tasks), beliefs[0], later[0], wanted)
    assert end > 0
    assert end >= kernel.NEVER or kernel.progress(members, end, beliefs[0], later[0], wanted) >= tasks


ALIKE = np.array([[100.0, 100.0, 1.0]])


@examples(100)
@given(profiles(), st.integers(1, 40))
def test_no_more_is_finished_than_fits_in_what_is_planned(profile: Profile, tasks: int) -> None:
    wanted = rules(MAX_TR=30, LEAST=1)
    quick = np.array([[1.0, 1.0, 1.0]])
    (later,) = kernel.as_planned(kernel.holes(as_array(profile), wanted, float(tasks)), quick, wanted)
    for since in range(12):
        for place in range(kernel.GRID):
            at = kernel.grid_time(place)
            if at > 200:
                break
            begin = kernel.grid_time(since)
            free = sum(min(profile.free_at(second), tasks) for second in range(int(begin), math.ceil(at)))
            assert later[since, place] <= free


def test_what_is_planned_begins_where_the_last_request_ended() -> None:
    """All is free until 20,000 s, and half of it from then on."""
    profile = Profile(0.0, 16)
    profile.take(20_000, 1e9, 8)
    wanted = rules(MAX_TR=1e6, LEAST=100)
    (later,) = kernel.as_planned(kernel.holes(as_array(profile), wanted, 1e6), ALIKE, wanted)
    for since in (10, 20, 28, 33):
        begin = kernel.grid_time(since)
        for place in range(since, 48):
            at = kernel.grid_time(place)
            wide = 16 * ((min(at, 20_000) - begin) // 100) if begin < 19_900 else 0
            assert later[since, place] >= max(wide, 8 * ((at - begin) // 100)) - kernel.TINY


def test_after_a_request_that_ends_late_nothing_of_now_is_left() -> None:
    profile = Profile.holding(0.0, 16, [(1000.0, 50_000.0, 16)])
    found, wanted = kernel.holes(as_array(profile), rules(LEAST=100), 1e6), rules(LEAST=100)
    (again,), (planned,) = kernel.as_now(found, ALIKE, wanted), kernel.as_planned(found, ALIKE, wanted)
    assert kernel.followed(again, 900.0, 20_000.0, 1.0) > 1000
    assert kernel.followed(planned, 900.0, 20_000.0, 1.0) == 0
