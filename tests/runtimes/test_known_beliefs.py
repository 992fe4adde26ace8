"""What the runtimes may be: a ladder before anything is known, one belief afterwards."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.runtimes.known import Belief, EarlierTasks, KnownRuntimes
from tests.runtimes.known import known_runtimes

POSSIBLE = 64_800.0


def beliefs(times: KnownRuntimes, now: float, running: int, share: float = 1.0) -> list[Belief]:
    return times.beliefs(now, running, POSSIBLE, share)


def rungs(times: KnownRuntimes, now: float = 0.0, running: int = 0) -> list[float]:
    return [each.mean for each in beliefs(times, now, running)]


def test_before_anything_is_known_all_doublings_of_a_minute_are_thought_of() -> None:
    assert rungs(known_runtimes()) == [60.0 * 2**k for k in range(11)]


def test_what_a_task_has_outlasted_is_no_longer_thought_of() -> None:
    assert rungs(known_runtimes(mean_start=0.0, first_start=0.0), now=500.0, running=3)[0] == 960.0
    assert rungs(known_runtimes(not_enough=7000.0))[0] == 7680.0


def test_a_user_who_says_how_long_tasks_take_is_mostly_believed() -> None:
    found = beliefs(known_runtimes(told=600.0), 0.0, 0)
    assert max(found, key=lambda each: each.weight).mean == 600.0
    assert rungs(known_runtimes(told=600.0, not_enough=700.0))[0] > 700.0  # and was wrong


def test_alike_tasks_are_known_after_the_first() -> None:
    known = known_runtimes(finished=4, mean=100.0, longest=100.0)
    assert beliefs(known, 0.0, 4) == [Belief(100.0, 100.0, 1.0)]


def test_the_short_tasks_that_finish_first_do_not_speak_for_the_others() -> None:
    first_wave = known_runtimes(finished=2, mean=300.0, longest=310.0, mean_start=0.0, first_start=0.0)
    assert rungs(first_wave, now=1000.0, running=98)[0] == 1920.0
    half = known_runtimes(finished=50, mean=600.0, longest=1000.0, mean_start=0.0, first_start=0.0)
    (learned,) = beliefs(half, 1000.0, 50)
    assert learned.longest == pytest.approx(1816.0), "as many in the second 1,000 s as in the first"
    assert learned.mean == pytest.approx(1004.0)


def test_nor_does_the_first_one_that_finishes() -> None:
    """It is as long as itself, but the others are as old."""
    first = known_runtimes(finished=1, mean=300.0, longest=300.0, mean_start=2.0, first_start=0.0)
    assert rungs(first, now=300.0, running=99)[0] == 480.0
    alone = known_runtimes(finished=1, mean=300.0, longest=300.0, mean_start=250.0, first_start=250.0)
    assert beliefs(alone, 300.0, 99) == [Belief(300.0, 300.0)], "the others have just begun"


def test_tasks_that_were_cut_speak_as_those_that_run() -> None:
    cut = known_runtimes(finished=50, mean=600.0, longest=1000.0, not_enough=1000.0, cut=50, cut_after=1000.0)
    running = known_runtimes(finished=50, mean=600.0, longest=1000.0, mean_start=0.0, first_start=0.0)
    assert beliefs(cut, 1000.0, 0) == beliefs(running, 1000.0, 50)
    few = known_runtimes(finished=1, mean=300.0, longest=300.0, not_enough=1000.0, cut=9, cut_after=1000.0)
    assert rungs(few)[0] == 1920.0


@given(
    least=st.floats(10, 5_000),
    most=st.floats(1.5, 8),
    seen=st.floats(0.4, 1),
    tasks=st.integers(20, 2000),
)
def test_of_runtimes_spread_evenly_mean_and_longest_are_found(
    least: float, most: float, seen: float, tasks: int
) -> None:
    """When that part of the first wave has finished."""
    longest, finished = least * most, int(seen * tasks)
    until = least + (longest - least) * finished / tasks
    times = known_runtimes(
        finished=finished,
        mean=(least + until) / 2,
        longest=until,
        mean_start=0.0 if finished < tasks else None,
        first_start=0.0 if finished < tasks else None,
    )
    (found,) = beliefs(times, until, tasks - finished)
    assert found.longest == pytest.approx(longest, rel=0.25)
    assert found.mean == pytest.approx((least + longest) / 2, rel=0.15)


@given(
    finished=st.integers(0, 200),
    mean=st.floats(1, 60_000),
    spread=st.floats(1, 4),
    not_enough=st.floats(0, 70_000),
    age=st.floats(0, 70_000),
    running=st.integers(0, 1000),
    told=st.none() | st.floats(1, 100_000),
    cut=st.integers(0, 100),
)
def test_there_is_always_a_belief_that_a_request_can_hold(
    finished: int,
    mean: float,
    spread: float,
    not_enough: float,
    age: float,
    running: int,
    told: float | None,
    cut: int,
) -> None:
    times = known_runtimes(
        finished=finished,
        mean=mean if finished else 0.0,
        longest=min(POSSIBLE, mean * spread) if finished else 0.0,
        not_enough=not_enough,
        cut=cut,
        cut_after=not_enough / 2,
        mean_start=-age if running else None,
        first_start=-age if running else None,
        told=told,
    )
    found = beliefs(times, 0.0, running)
    assert found
    for each in found:
        assert 0 < each.mean <= each.longest * 1.0001 <= POSSIBLE * 1.0001
        assert each.weight > 0


@pytest.mark.parametrize(
    ("times", "running", "may"),
    [
        (known_runtimes(), 100, True),
        (known_runtimes(finished=1, mean=600.0, longest=600.0), 99, False),
        (known_runtimes(finished=10, mean=300.0, longest=400.0), 90, True),
        (known_runtimes(finished=60, mean=300.0, longest=400.0), 40, False),
        (known_runtimes(finished=60, mean=1500.0, longest=4500.0), 40, True),
    ],
    ids=["nothing is known", "alike", "few of many", "most of them", "longer than what is left"],
)
def test_whether_tasks_may_outlast_what_is_left_of_their_pilot(
    times: KnownRuntimes, running: int, may: bool
) -> None:
    """All have run for 500 s, of a pilot of which an hour is left."""
    started = msgspec.structs.replace(times, running=1, starts=0.0, first_start=0.0)
    assert started.may_outlast(3600.0, 500.0, running, POSSIBLE, 1.0) is may


def earlier(mean: float, factor: float = 2.0) -> KnownRuntimes:
    kind = EarlierTasks(kind="fit.py", tasks=12, mean=mean, factor=factor, low=mean / 2, high=mean * 2)
    return known_runtimes(earlier=kind)


def test_earlier_bags_of_the_kind_weigh_the_runtimes() -> None:
    found = beliefs(earlier(1800.0), 0.0, 0)
    total = sum(each.weight for each in found)
    near = sum(each.weight for each in found if 890.0 <= each.mean <= 3610.0)
    assert 0.6 < near / total < 0.9
    assert max(found, key=lambda each: each.weight).mean == pytest.approx(1800.0)
    assert min(each.weight for each in found) >= 0.07 / len(found)  # they may be others today
    wide = beliefs(earlier(1800.0, factor=8.0), 0.0, 0)
    assert sum(each.weight for each in wide if 890.0 <= each.mean <= 3610.0) < near


def test_shorter_tasks_than_usual_are_thought_of_where_earlier_ones_were() -> None:
    assert min(each.mean for each in beliefs(earlier(10.0), 0.0, 0)) < 5.0


def test_tasks_that_outlast_the_earlier_ones_by_far_may_be_anything() -> None:
    times = msgspec.structs.replace(earlier(10.0), not_enough=3600.0)
    weights = [each.weight for each in beliefs(times, 0.0, 0)]
    assert max(weights) == min(weights)


def test_what_the_user_says_counts_more_than_earlier_bags() -> None:
    found = beliefs(msgspec.structs.replace(earlier(1800.0), told=60.0), 0.0, 0)
    assert max(found, key=lambda each: each.weight).mean == 60.0


def test_where_requests_are_short_shorter_tasks_are_thought_of() -> None:
    assert beliefs(known_runtimes(), 0.0, 0, 1 / 6)[0].mean == 10.0
