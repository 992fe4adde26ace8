"""Runtimes that agree with what is known of a bag."""

from __future__ import annotations

import math
import random
from statistics import NormalDist, mean, pstdev

import pytest

from adaptor.runtimes.possible import MixedRuntimes, RuntimeCases, RuntimeKnowledge


def rests_of_the_longest(running: float, finished: list[float], count: int) -> list[float]:
    """Of so many tasks that have all run for so long."""
    draw = random.Random(1)
    known = RuntimeKnowledge(
        finished=finished, running=[running] * count, guess=100.0, surety=1.5, tasks=len(finished) + count
    )
    cases = RuntimeCases(known, draw)
    return sorted(max(case.rest(running) for _ in range(count)) for case in (cases.next() for _ in range(60)))


@pytest.mark.parametrize("spread", [0.2, 0.7])
def test_the_longest_of_log_normal_tasks_is_not_taken_for_much_longer_than_it_is(spread: float) -> None:
    """The first 180 of 200 tasks have ended that started at the same time; 20 run on."""
    normal = NormalDist(math.log(100.0), spread)
    all_of_them = [math.exp(normal.inv_cdf((each + 0.5) / 200)) for each in range(200)]
    finished = all_of_them[:180]
    found = rests_of_the_longest(finished[-1], finished, 20)
    true = all_of_them[-1] - finished[-1]
    assert found[3] < true < found[-4]
    assert 0.4 * true < found[30] < 2.0 * true


@pytest.mark.parametrize("ran", [5.3, 6.0])
def test_a_task_that_outlasts_alike_ones_a_little_may_go_on_for_long(ran: float) -> None:
    """Of 20 tasks of 5 s one runs on; it was forecast to end within a second."""
    normal = NormalDist(5.0, 0.05)
    found = rests_of_the_longest(ran, [normal.inv_cdf((each + 0.5) / 19) for each in range(19)], 1)
    assert found[3] < 1
    assert found[-4] > 50


def test_an_alike_task_of_their_age_is_about_to_end() -> None:
    normal = NormalDist(5.0, 0.05)
    found = rests_of_the_longest(5.0, [normal.inv_cdf((each + 0.5) / 19) for each in range(19)], 1)
    assert found[-4] < 0.2


@pytest.mark.parametrize("count", [19, 100])
def test_runtimes_are_those_of_the_finished_tasks(count: int) -> None:
    normal = NormalDist(math.log(100.0), 0.7)
    finished = [math.exp(normal.inv_cdf((each + 0.5) / count)) for each in range(count)]
    known = RuntimeKnowledge(finished=finished, guess=100.0, surety=1.5, tasks=2 * count)
    cases = RuntimeCases(known, random.Random(1))
    means, hundreds = [], []
    for case in (cases.next() for _ in range(100)):
        means.append(case.mean)
        hundreds.append(case.several(100, 0.0))
        assert isinstance(case, MixedRuntimes)
        assert case.deviation == pytest.approx(pstdev(case.one(0.0) for _ in range(1000)), rel=0.5)
    assert mean(means) == pytest.approx(mean(finished), rel=0.15)
    assert mean(hundreds) == pytest.approx(100 * mean(finished), rel=0.15)


def test_without_results_runtimes_are_as_guessed() -> None:
    cases = RuntimeCases(RuntimeKnowledge(guess=100.0, surety=0.2, tasks=50), random.Random(1))
    assert 80 < mean(cases.next().mean for _ in range(60)) < 130
