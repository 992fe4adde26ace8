"""Whether runtimes grow or shrink along the file."""

from __future__ import annotations

import heapq
import math
import random
from statistics import fmean, median

import pytest

from adaptor.runtimes.possible import RuntimeCases, RuntimeKnowledge
from adaptor.runtimes.trend import TrendRuntimes, trends


def log_normal(tasks: int, spread: float = 0.6) -> list[float]:
    draw = random.Random(2)
    return [100.0 * math.exp(draw.gauss(0.0, spread)) for _ in range(tasks)]


@pytest.mark.parametrize("falling", [False, True])
def test_a_sorted_file_has_a_trend_and_its_end_is_foreseen(falling: bool) -> None:
    runtimes = sorted(log_normal(200), reverse=falling)
    found = trends(range(100), runtimes[:100], 200)
    assert found.chance > 0.99
    draw = random.Random(1)
    levels = [trend.level(0.9) for _ in range(50) if (trend := found.drawn(draw)) is not None]
    assert 0.5 * runtimes[180] < median(levels) < 2.0 * runtimes[180]


@pytest.mark.parametrize("falling", [False, True])
def test_what_waits_of_a_sorted_file_takes_as_long_as_its_places_say(falling: bool) -> None:
    """Half of 400 tasks have finished, the next 20 run."""
    runtimes = sorted(log_normal(400), reverse=falling)
    trend = None
    draw = random.Random(1)
    while trend is None or trend.until < 1:
        trend = trends(range(200), runtimes[:200], 400).drawn(draw)
    case = TrendRuntimes(trend, 0.5, 0.55, draw)
    assert case.mean == pytest.approx(fmean(runtimes[220:]), rel=0.2)
    for begin in (220, 310):
        for count in (2, 20):
            found = fmean(case.several(count, (begin - 220) / 180) for _ in range(200))
            assert found == pytest.approx(count * runtimes[begin], rel=0.15)


def test_a_trend_goes_on_as_far_again_as_it_was_seen_in_half_of_the_cases() -> None:
    runtimes = sorted(log_normal(200))
    found, draw = trends(range(20), runtimes[:20], 200), random.Random(1)
    drawn = [trend for _ in range(400) if (trend := found.drawn(draw)) is not None]
    for place, share in ((0.2, 1 / 2), (0.4, 3 / 4)):
        stays = [trend.level(place) == trend.level(1.0) for trend in drawn]
        assert sum(stays) / len(stays) == pytest.approx(share, abs=0.1)


def test_a_file_in_no_order_has_none() -> None:
    runtimes = log_normal(200)
    assert trends(range(100), runtimes[:100], 200).chance < 0.3


def test_short_tasks_that_have_overtaken_others_make_no_trend() -> None:
    """All tasks of a bag run at the same time: the first to end are the short ones, wherever they are."""
    runtimes = log_normal(400, spread=1.0)
    slots, ended, running, at = 100, [], {place: runtimes[place] for place in range(100)}, 0.0
    for place in range(slots, 300):
        first = min(running, key=lambda each: running[each])
        at = running.pop(first)
        ended.append(first)
        running[place] = at + runtimes[place]
    found = trends(ended, [runtimes[place] for place in ended], 400)
    assert found.chance < 0.5


@pytest.mark.parametrize("passed", [12.0, 15.0, 18.0])
def test_a_file_whose_runtimes_rise_again_and_again_has_none(passed: float) -> None:
    """As in a grid of parameters: 2 to 14 s, over and over, on 48 processors. Of what has finished meanwhile
    the later tasks are shorter, and those at the beginning alone rise steeply."""
    free, finished = [0.0] * 48, []
    for place in range(400):
        end = heapq.heappop(free) + 2.0 + place % 13
        heapq.heappush(free, end)
        if end <= passed:
            finished.append((place, 2.0 + place % 13))
        if free[0] > passed:
            break
    found = trends([place for place, _ in finished], [runtime for _, runtime in finished], 400)
    assert found.chance < 0.3


def test_what_runs_of_a_sorted_file_takes_as_long_as_its_places_say() -> None:
    runtimes = sorted(log_normal(200))
    known = RuntimeKnowledge(
        finished=runtimes[:180],
        places=range(180),
        running=[runtimes[179]] * 20,
        guess=100.0,
        surety=1.5,
        tasks=200,
    )
    cases = RuntimeCases(known, random.Random(1))
    rests = []
    for _ in range(60):
        case = cases.next()
        assert isinstance(case, TrendRuntimes)
        rests.append(max(case.rest(runtimes[179]) for _ in range(20)))
    true = runtimes[-1] - runtimes[179]
    assert 0.4 * true < median(rests) < 2.0 * true
    assert max(rests) < 10 * true
