"""Known runtimes: the mean by all that is known, hints, and what runs."""

from __future__ import annotations

import random
import statistics

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.runtimes.known import HINTED_TASKS, EarlierTasks, KnownRuntimes

EARLIER = EarlierTasks(kind="fit.py", tasks=12, mean=300.0, factor=2.0, low=200.0, high=400.0)


def seen(*runtimes: float, ages: tuple[float, ...] = (), now: float = 0.0, **other: object) -> KnownRuntimes:
    made = KnownRuntimes()
    for runtime in runtimes:
        made.add(runtime)
    for age in ages:
        made.start(now - age)
    return msgspec.structs.replace(made, **other)


@given(st.floats(1.0, 1e4), st.integers(30, 200), st.integers(1, 30))
def test_of_equal_tasks_those_that_run_say_little(runtime: float, finished: int, running: int) -> None:
    known = seen(*[runtime] * finished, ages=(runtime / 2,) * running)
    assert runtime <= known.expected(0.0) <= 1.15 * runtime


def test_of_exponential_tasks_those_that_run_on_are_the_long_ones() -> None:
    """On 32 hosts after twice the mean: those that have finished alone look a fifth too short."""
    draw = random.Random(3)
    alone, all_known = list[float](), list[float]()
    for _ in range(200):
        known = KnownRuntimes()
        for _ in range(32):
            at = 0.0
            while at + (runtime := draw.expovariate(1 / 600)) <= 1200.0:
                known.add(runtime)
                at += runtime
            known.start(at)
        alone.append(known.mean)
        all_known.append(known.expected(1200.0))
    assert sum(alone) / len(alone) < 480 < sum(all_known) / len(all_known) < 600


def test_before_any_has_finished_the_mean_is_what_was_said_and_then_the_age_of_those_that_run() -> None:
    assert seen(told=100.0).expected(0.0) == 100.0
    assert seen(told=100.0, ages=(50.0,) * 4).expected(0.0) == 100.0
    assert seen(told=100.0, ages=(200.0,) * HINTED_TASKS).expected(0.0) == pytest.approx(150.0)
    assert seen(ages=(20.0, 40.0)).expected(0.0) == 30.0


def test_a_hint_counts_as_some_finished_tasks() -> None:
    known = seen(*[100.0] * HINTED_TASKS, told=200.0)
    assert known.expected(0.0) == known.with_hint.mean == pytest.approx(150.0)
    assert known.mean == 100.0
    hint = seen(told=200.0).with_hint
    assert (hint.finished, hint.mean) == (HINTED_TASKS, 200.0)
    assert hint.squares / HINTED_TASKS - hint.mean**2 == pytest.approx(100.0**2), "half the mean"


def test_what_the_user_says_outweighs_earlier_bags() -> None:
    assert seen(earlier=EARLIER).hint == 300.0
    assert seen(earlier=EARLIER, told=20.0).hint == 20.0
    assert seen().hint is None
    within = [seen(told=20.0), seen(earlier=msgspec.structs.replace(EARLIER, factor=5.0)), seen()]
    assert [each.hint_within for each in within] == [2.0, 5.0, 2.0]
    assert [seen(1.0).known, seen(earlier=EARLIER).known, seen(ages=(5.0,)).known] == [True, True, False]


def test_the_variation_is_assumed_until_enough_have_finished() -> None:
    """Runtimes whose mean is known are taken to differ by half as much as exponential ones."""
    assert seen().variation == 1.0
    assert seen(told=60.0).variation == 0.5
    assert seen(*[60.0] * 200).variation < 0.11
    few, many = (seen(*[20.0, 100.0] * count).variation for count in (2, 100))
    assert many == pytest.approx(2 / 3, rel=0.02)
    assert many < few < 1


@given(st.lists(st.floats(1.0, 1e4), max_size=20))
def test_the_deviation_is_that_of_the_sample(runtimes: list[float]) -> None:
    expected = statistics.stdev(runtimes) if len(runtimes) > 1 else 0.0
    assert seen(*runtimes).deviation == pytest.approx(expected, rel=1e-6, abs=0.1)


def test_what_is_left_of_a_task_at_a_random_instant_grows_with_the_spread() -> None:
    assert seen().residual == 0.0
    assert seen(*[100.0] * 9).residual == 50.0, "of equal tasks half"
    draw = random.Random(1)
    many = seen(*[draw.expovariate(0.01) for _ in range(10_000)])
    assert many.residual == pytest.approx(100.0, rel=0.05), "of exponential ones the mean"
    assert seen(told=100.0).residual == pytest.approx(62.5), "of tasks of a known mean in between"


def test_a_long_task_takes_the_longer_the_more_tasks_differ_and_the_less_is_known() -> None:
    alike, unlike = seen(*[100.0] * 100), seen(*[20.0, 180.0] * 50)
    assert 100.0 < alike.long_task(0.0, 100.0) < unlike.long_task(0.0, 100.0)
    assert seen(100.0).long_task(0.0, 100.0) > alike.long_task(0.0, 100.0)
    old = alike.running_since([0.0])
    assert old.long_task(5000.0, 100.0) == 5000.0, "one runs for as long already"


def test_a_task_that_finishes_or_is_interrupted_runs_no_longer() -> None:
    known = seen(ages=(30.0, 50.0), now=100.0)
    known.finish(50.0, 40.0)
    assert (known.finished, known.mean, known.running, known.age(100.0)) == (1, 40.0, 1, 30.0)
    known.stop(70.0)
    assert (known.finished, known.running, known.age(100.0)) == (1, 0, 0.0)


@pytest.mark.parametrize("further", [1, 10, 500])
def test_the_mean_of_further_tasks_is_within_a_factor_at_the_certainty_asked_for(further: int) -> None:
    draw = random.Random(1)
    factors, held = list[float](), 0
    for _ in range(300):
        known = seen(*[draw.expovariate(0.01) for _ in range(30)])
        factors.append(known.deviating(further, 0.9))
        held += statistics.fmean(draw.expovariate(0.01) for _ in range(further)) < factors[-1] * known.mean
    assert 0.85 < held / 300 < 0.99
    assert statistics.fmean(factors) < 1.3 + 2.5 / further**0.5
    assert known.deviating(further, 0.5) == 1.0


@given(st.lists(st.floats(1.0, 1e4), max_size=20), st.lists(st.floats(0.0, 1e4), max_size=20))
def test_tasks_that_run_longer_than_others_took_count(finished: list[float], ages: list[float]) -> None:
    known = seen(*finished, ages=tuple(ages), now=1e5)
    assert known.corrected_mean(1e5) == pytest.approx(
        max(known.mean, (sum(finished) + sum(ages)) / max(1, len(finished) + len(ages)))
        if known.age(1e5) > known.mean
        else known.mean,
        rel=1e-6,
        abs=1e-4,
    )


def test_what_runs_or_was_cut_has_outlasted_a_time() -> None:
    known = seen(10.0, ages=(30.0, 50.0), now=100.0, first_start=50.0, not_enough=40.0)
    assert (known.age(100.0), known.oldest(100.0), known.outlasted(100.0)) == (40.0, 50.0, 50.0)
    assert known.outlasted(60.0) == 40.0
    assert (seen().age(5.0), seen().oldest(5.0)) == (0.0, 0.0)


def test_tasks_that_run_or_were_cut_are_overdue_where_they_ran_as_long_as_others_took() -> None:
    known = seen(100.0, ages=(120.0,), now=200.0, cut=3, cut_for=240.0)
    assert known.overdue(200.0, 7) == 7, "those that were cut ran for 80 s"
    assert msgspec.structs.replace(known, cut_for=300.0).overdue(200.0, 7) == 10
    assert seen(100.0, ages=(50.0,), now=200.0).overdue(200.0, 7) == 0


def test_the_longest_time_seen_is_that_of_a_finished_or_an_unfinished_task() -> None:
    assert seen(100.0).longest_seen(0.0) == 100.0
    assert seen(100.0, ages=(150.0,), now=200.0, first_start=50.0).longest_seen(200.0) == 150.0
