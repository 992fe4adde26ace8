"""Possible rests of a bag, and how often the real one is among them."""

from __future__ import annotations

import heapq
import math
import random
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.estimation.estimate import estimate
from adaptor.budget.estimation.remaining_work import DRAWS, possible_rests
from tests.examples import examples

UNIT = 3300.0


def work(finished: list[float], running: list[float], waiting: int) -> list[float]:
    return [rest.work for rest in possible_rests(finished, running, waiting, UNIT)]


def test_equal_tasks_leave_no_doubt() -> None:
    rests = possible_rests([100.0] * 30, [], 50, UNIT)
    assert len(rests) == DRAWS
    assert [rest.work for rest in rests] == pytest.approx([5000.0] * DRAWS)
    assert [rest.residual for rest in rests] == pytest.approx([50.0] * DRAWS)


def test_running_tasks_need_only_their_rest() -> None:
    assert work([100.0] * 30, [60.0, 90.0], 0) == pytest.approx([50.0] * DRAWS)


def test_nothing_is_left() -> None:
    assert set(work([90.0, 100.0, 130.0], [], 0)) == {0.0}


def test_tasks_that_run_on_show_that_the_bag_is_longer_than_its_finished_part() -> None:
    finished = [10.0] * 15 + [100.0] * 5
    assert statistics.median(work(finished, [50.0] * 10, 100)) > statistics.median(work(finished, [], 110))


def test_a_task_that_has_run_longer_than_all_others_is_not_done() -> None:
    assert statistics.median(work([90.0, 100.0, 110.0], [500.0], 0)) > 0


def test_one_finished_task_is_not_enough() -> None:
    with pytest.raises(ValueError, match="two finished tasks"):
        possible_rests([5.0], [1.0], 10, UNIT)


def test_very_long_tasks_count_for_the_residual_only_as_long_as_is_said() -> None:
    runtimes = [float(2**power) for power in range(20)]
    short, long = (
        statistics.fmean(rest.residual for rest in possible_rests(runtimes, [], 100, longest))
        for longest in (1e4, 1e6)
    )
    assert short < long


seconds = st.integers(0, 50_000).map(float)


@examples(40)
@given(
    st.lists(seconds, min_size=2, max_size=50), st.lists(seconds, max_size=60), st.integers(0, 100_000)
)  # fmt: skip
def test_hours_or_seconds_make_no_difference(
    finished: list[float], running: list[float], waiting: int
) -> None:
    rests = possible_rests(finished, running, waiting, UNIT)
    assert rests == possible_rests(finished[::-1], running[::-1], waiting, UNIT)
    scaled = possible_rests(
        [64 * each for each in finished], [64 * each for each in running], waiting, 64 * UNIT
    )
    assert [each.work for each in scaled] == pytest.approx([64 * each.work for each in rests], rel=1e-6)
    assert all(0 <= each.work < math.inf and 0 <= each.residual < math.inf for each in rests)


KINDS: dict[str, Callable[[random.Random], float]] = {
    "normal": lambda draw: max(1.0, draw.gauss(150, 30)),
    "uniform": lambda draw: draw.uniform(10, 200),
    "gamma": lambda draw: draw.gammavariate(3, 70),
    "exponential": lambda draw: draw.expovariate(1 / 100),
    "log-normal": lambda draw: draw.lognormvariate(4, 1.2),
    "two kinds": lambda draw: draw.gauss(300, 30) if draw.random() < 0.3 else draw.gauss(60, 10),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_work_lies_in_the_interval_about_nine_times_in_ten(kind: str) -> None:
    draw = random.Random(11)
    held = []
    for _ in range(150):
        finished, running, left = first_of([KINDS[kind](draw) for _ in range(300)], slots=15)
        said = estimate(work(finished, running, 300 - len(finished) - len(running)))
        held.append(said.low <= left <= said.high)
    assert 0.8 <= statistics.fmean(held) <= 0.98


def test_early_ends_of_short_tasks_do_not_mislead() -> None:
    """The first 30 to end of a bag on many slots are mostly its shorter tasks."""
    draw = random.Random(2)
    naive, ours = [], []
    for _ in range(100):
        finished, running, left = first_of([draw.expovariate(1.0) for _ in range(300)], slots=40)
        waiting = 300 - len(finished) - len(running)
        naive.append(statistics.fmean(finished) * (waiting + len(running)) / left)
        ours.append(statistics.median(work(finished, running, waiting)) / left)
    assert statistics.fmean(naive) < 0.7
    assert statistics.fmean(ours) == pytest.approx(1.0, abs=0.12)


def test_of_many_finished_tasks_the_forecast_is_narrow() -> None:
    draw = random.Random(4)
    said = estimate(work([draw.expovariate(0.01) for _ in range(1000)], [], 100_000))
    assert said.low < 100 * 100_000 < said.high
    assert said.high / said.low < 1.3


def test_a_sample_of_the_finished_says_the_same_as_all() -> None:
    """However many run beside it."""
    draw = random.Random(8)
    finished, running, _ = first_of([draw.expovariate(0.01) for _ in range(9000)], slots=1000, ends=4000)
    waiting = 9000 - len(finished) - len(running)
    whole, sample = (
        estimate(rest.work for rest in possible_rests(finished[::every], running, waiting, UNIT, every))
        for every in (1, 8)
    )
    assert sample.value == pytest.approx(whole.value, rel=0.08)
    assert sample.low < whole.value < sample.high


def first_of(runtimes: list[float], slots: int, ends: int = 30) -> tuple[list[float], list[float], float]:
    """Runtimes of the first to end, how long the others have run by then, and the work that is left."""
    ahead = [(runtime, 0.0, runtime) for runtime in runtimes[:slots]]
    heapq.heapify(ahead)
    finished: list[float] = []
    following = iter(runtimes[slots:])
    while True:
        now, _, runtime = heapq.heappop(ahead)
        finished.append(runtime)
        if len(finished) == ends:
            running = [now - start for _, start, _ in ahead]
            return finished, running, sum(runtimes) - sum(finished) - sum(running)
        following_one = next(following)
        heapq.heappush(ahead, (now + following_one, now, following_one))
