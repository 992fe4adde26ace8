"""Tasks that run on where all others have long finished."""

from __future__ import annotations

import random

import pytest

from adaptor.budget.estimation.estimate import estimate
from adaptor.budget.estimation.other_kind import GAP, OtherKind, chance_of_another_kind, other_kinds
from adaptor.budget.estimation.pareto_tail import Censored, likely_tails
from adaptor.budget.estimation.remaining_work import possible_rests

MINUTE = [50.0 + step for step in range(20)]
"""Runtimes of tasks that take a minute."""


def chance(ran: float, tasks: int = 1, finished: list[float] = MINUTE) -> float:
    threshold = finished[12]
    excesses = [each - threshold for each in finished[13:]]
    running = Censored([ran - threshold] * tasks, tasks)
    tails, _ = likely_tails(excesses, running, threshold)
    return chance_of_another_kind(tails, excesses, running, threshold)


def test_nothing_is_suspected_near_the_longest_runtime() -> None:
    assert chance(GAP * MINUTE[-1] - 0.1) == 0
    assert chance(GAP * MINUTE[-1] + 0.1) > 0


def test_it_grows_with_the_time_and_with_the_number_of_tasks() -> None:
    assert chance(90) < chance(120) < chance(200)
    assert chance(90) < chance(90, 3) < chance(90, 8) < 1
    assert chance(120, 8) > 0.9


def test_runtimes_that_differ_by_themselves_explain_it_better() -> None:
    wide = [2.0 * 1.2**step for step in range(20)]
    assert chance(1.5 * wide[-1], finished=wide) < 0.2 < chance(1.5 * MINUTE[-1], 3)


def test_beside_equal_tasks_another_kind_is_certain() -> None:
    assert chance(90, finished=[60.0] * 20) == pytest.approx(1)
    assert chance(61, finished=[60.0] * 20) == 0


def test_how_long_they_last_is_known_by_their_age_alone() -> None:
    found = [100 + kind.beyond for kind in other_kinds(300.0, 100.0, 1000)]
    assert min(found) >= 300
    for times in (2, 5, 10):
        assert sum(each > times * 300 for each in found) / 1000 == pytest.approx(1 / times, abs=0.01)


def test_they_all_take_equally_long() -> None:
    kind = OtherKind(90.0)
    assert {kind.excess(share) for share in (0.01, 0.5, 1.0)} == {90.0}
    assert kind.further(60.0) * kind.excess(0.5) == pytest.approx(30.0)
    assert kind.further(200.0) == 0
    assert (kind.survival(89.0), kind.survival(90.0)) == (1, 0)
    assert kind.moments(0.3) == (90.0, 0.0)


def rest_of_two_kinds(draw: random.Random) -> tuple[float, float, float]:
    """A fifth of the tasks takes seven times as long as the others, and none of these has finished: the work
    that is left, and the ends of its interval."""
    runtimes = [draw.gauss(400, 60) if draw.random() < 0.2 else draw.gauss(60, 10) for _ in range(300)]
    now = 110.0
    first, waiting = runtimes[:40], runtimes[40:]
    finished = [each for each in first if each <= now]
    running = [now] * (len(first) - len(finished))
    left = sum(waiting) + sum(each - now for each in first if each > now)
    rests = possible_rests(finished, running, len(waiting), now)
    work = estimate(each.work for each in rests)
    return left, work.low, work.high


def test_the_work_of_two_kinds_is_in_its_interval_before_a_long_one_has_finished() -> None:
    draw = random.Random(3)
    found = [rest_of_two_kinds(draw) for _ in range(60)]
    held = sum(low <= left <= high for left, low, high in found)
    assert held >= 0.85 * len(found)
