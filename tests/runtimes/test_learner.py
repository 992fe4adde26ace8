"""The learning of the runtime: the paper's words, the mixed bag, and what must never happen."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.runtimes.known import ENOUGH
from adaptor.runtimes.learner import SHORTEST, RuntimeLearner

HOUR = 3600.0


def learner(initial: float = HOUR, factor: int = 2, longest: float = 10 * HOUR) -> RuntimeLearner:
    return RuntimeLearner(initial=initial, factor=factor, longest=longest)


def test_before_any_task_the_initial_estimate_counts() -> None:
    assert learner().estimate == HOUR
    assert learner().estimate_of(7) == HOUR
    assert not learner().knows


def test_a_task_that_finished_or_was_cut_is_known() -> None:
    finished, cut = learner(), learner()
    finished.finished(40)
    cut.cut(1, 40)
    assert finished.knows
    assert cut.knows


def test_when_the_time_was_enough_the_longest_finished_task_counts() -> None:
    bag = learner()
    for runtime in (40, 300, 20):
        bag.finished(runtime)
    assert bag.estimate == 300


def test_when_it_was_not_enough_it_is_multiplied_by_the_factor() -> None:
    bag = learner(initial=60, factor=3)
    bag.cut(1, 60)
    assert bag.estimate == 180
    bag.cut(1, 185)
    assert bag.estimate == 3 * 185


def test_many_tasks_cut_by_the_same_walltime_grow_it_once() -> None:
    bag = learner(initial=60)
    for task in range(16):
        bag.cut(task, 60)
    assert bag.estimate == 120


def test_a_cut_before_the_estimated_time_is_no_evidence() -> None:
    bag = learner(initial=600)
    bag.cut(1, 60)
    assert bag.estimate == 600
    assert bag.estimate_of(1) == 600


def test_a_mixed_bag_goes_back_to_the_longest_finished_task() -> None:
    """Short tasks are finished when a long one is cut, twice; then that one finishes."""
    bag = learner()
    for _ in range(ENOUGH - 2):
        bag.finished(10)
    bag.cut(99, 200)
    assert bag.estimate == 400
    bag.finished(11)
    assert bag.estimate == 400
    bag.cut(99, 400)
    assert (bag.estimate, bag.estimate_of(99)) == (800, 800)
    bag.finished(500, task=99)
    assert (bag.estimate, bag.estimate_of(99)) == (500, 500)
    assert bag.cuts == {}


@pytest.mark.parametrize("cut", [1, 3])
def test_cut_tasks_say_nothing_of_the_others_once_far_more_have_finished(cut: int) -> None:
    bag = learner()
    for task in range(cut):
        bag.cut(task, 2 * HOUR)
    for _ in range(ENOUGH * cut - 1):
        bag.finished(10)
    assert bag.estimate == bag.estimate_of(99) == 4 * HOUR
    bag.finished(10)
    assert (bag.estimate, bag.estimate_of(0), bag.estimate_of(99)) == (10, 4 * HOUR, 10)


def test_a_cut_task_that_is_given_up_no_longer_raises_the_estimate() -> None:
    bag = learner()
    bag.finished(10)
    bag.cut(1, 100)
    bag.cut(2, 400)
    assert set(bag.cuts) == {1, 2}
    assert (bag.known.finished, bag.known.cut, bag.known.cut_after) == (1, 2, 250)
    bag.forget(2)
    assert bag.estimate == 200
    bag.forget(1)
    assert bag.estimate == 10
    bag.forget(1)


def test_where_nothing_has_finished_what_the_given_up_task_told_still_counts() -> None:
    bag = learner(initial=60)
    bag.cut(1, 60)
    bag.forget(1)
    assert bag.estimate == 120


def test_a_cut_task_that_finishes_sooner_elsewhere_takes_its_evidence_along() -> None:
    bag = learner()
    bag.cut(1, HOUR)
    bag.finished(1800, task=1)
    assert bag.estimate == 1800


def test_a_task_that_had_all_the_site_can_give_is_hopeless() -> None:
    bag = learner(longest=1000)
    bag.cut(1, 990)
    bag.cut(2, 700)
    assert bag.hopeless(1)
    assert not bag.hopeless(2)
    assert not bag.hopeless(3)
    bag.cut(2, 740)
    assert not bag.hopeless(2), "its pilot had less than it was planned for"
    bag.cut(2, 760)
    assert bag.hopeless(2), "it had nearly all"


def test_a_task_that_is_cut_again_and_again_becomes_hopeless() -> None:
    """Even where the start of a pilot takes so much that a task never has all of the longest time."""
    bag, cuts = learner(initial=10, longest=100), 0
    while not bag.hopeless(1):
        bag.cut(1, min(bag.estimate_of(1), 80))
        cuts += 1
        assert cuts < 10


def test_tasks_cut_together_do_not_make_each_other_hopeless() -> None:
    bag = learner(initial=10, longest=100)
    for task in range(5):
        bag.cut(task, 80)
    assert not any(bag.hopeless(task) for task in range(5))


def test_a_factor_that_cannot_grow_is_refused() -> None:
    with pytest.raises(ValueError, match="integer of 2 or more, not 1"):
        learner(factor=1)


@given(st.lists(st.floats(0.001, 1e5), max_size=30))
def test_the_mean(runtimes: list[float]) -> None:
    bag = learner()
    for runtime in runtimes:
        bag.finished(runtime)
    assert bag.seen.mean == pytest.approx(statistics.fmean(runtimes) if runtimes else 0.0)


Event = tuple[str, int, float]
EVENTS = st.lists(
    st.tuples(st.sampled_from(["finished", "cut", "forget"]), st.integers(0, 5), st.floats(0, 500)),
    max_size=30,
)


def replay(bag: RuntimeLearner, events: list[Event]) -> None:
    for kind, task, seconds in events:
        if kind == "finished":
            bag.finished(seconds, task)
        elif kind == "cut":
            bag.cut(task, seconds)
        else:
            bag.forget(task)


def known(bag: RuntimeLearner) -> tuple[object, ...]:
    tasks = range(6)
    return (
        bag.estimate, [bag.estimate_of(task) for task in tasks], [bag.hopeless(task) for task in tasks],
        bag.known,
    )  # fmt: skip


@given(EVENTS, EVENTS)
def test_a_copy_learns_the_same_and_on_its_own(before: list[Event], after: list[Event]) -> None:
    original = learner(initial=60, longest=300)
    replay(original, before)
    again, before_that = original.copy(), known(original)
    assert known(again) == before_that
    replay(again, after)
    assert known(original) == before_that
    replay(original, after)
    assert known(again) == known(original)


@given(EVENTS)
def test_estimates_stay_within_bounds_and_above_what_was_not_enough(
    events: list[Event],
) -> None:
    bag = learner(initial=60, longest=300)
    replay(bag, events)
    assert SHORTEST <= bag.estimate <= 300
    for task, ran in bag.cuts.items():
        assert bag.estimate_of(task) >= max(SHORTEST, min(2 * ran, 300))
        assert math.isfinite(bag.estimate_of(task))


def at_even_odds(*runtimes: float) -> RuntimeLearner:
    bag = RuntimeLearner(initial=HOUR, factor=2, longest=10 * HOUR, even_odds=True)
    for runtime in runtimes:
        bag.finished(runtime)
    return bag


MIXED = (100, 200, 300, 400, 500, 600, 700, 800)


def test_at_even_odds_a_task_needs_the_mean_once_enough_have_finished() -> None:
    bag = at_even_odds(*MIXED)
    assert bag.even == bag.estimate_of(1, even=True) == 450
    assert bag.estimate == bag.estimate_of(1) == 800


def test_there_are_no_odds_while_few_have_finished_or_one_has_outlasted_them() -> None:
    few, outlasted = at_even_odds(*MIXED[:-1]), at_even_odds(*MIXED)
    outlasted.cut(9, 900)
    outlasted.cut(10, 900)
    for bag in (few, outlasted):
        assert bag.even == bag.estimate
    outlasted.forget(10)
    assert (outlasted.even, outlasted.estimate_of(9)) == (450, pytest.approx(990))


def test_without_even_odds_a_task_needs_the_estimate() -> None:
    bag = learner()
    for runtime in MIXED:
        bag.finished(runtime)
    assert bag.even == bag.estimate == 800


def test_a_task_that_was_cut_at_even_odds_starts_where_the_longest_fits() -> None:
    bag = at_even_odds(*MIXED)
    bag.cut(9, 500)
    assert bag.estimate_of(9, even=True) == bag.estimate_of(9) == 800
    bag.cut(9, 790)
    assert bag.estimate_of(9) == pytest.approx(869)


@given(st.lists(st.floats(1, 9 * HOUR), max_size=20), st.lists(st.floats(1, 9 * HOUR), max_size=5))
def test_even_odds_need_no_more_than_the_estimate(runtimes: list[float], cuts: list[float]) -> None:
    bag = at_even_odds(*runtimes)
    for task, ran in enumerate(cuts):
        bag.cut(task, ran)
    assert SHORTEST <= bag.even <= bag.estimate
