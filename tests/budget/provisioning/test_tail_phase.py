"""Which tasks get a second attempt at the end, and where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.estimation.experience import Experience
from adaptor.budget.provisioning.tail_phase import IdleProcessor, RunningTask, migration, replicas

SITES = ("slow", "fast")


def running(task, left, slow, fast):
    return RunningTask(task=task, left=left, whole={"slow": slow, "fast": fast})


@st.composite
def ends(draw):
    seconds = st.floats(1, 100)
    tasks = [
        running(number, draw(seconds), draw(seconds), draw(seconds))
        for number in range(draw(st.integers(0, 8)))
    ]
    idle = [
        IdleProcessor(number, draw(st.sampled_from(SITES)), draw(seconds))
        for number in range(draw(st.integers(0, 8)))
    ]
    return tasks, idle


@given(ends(), st.booleans())
def test_a_replica_is_expected_to_end_sooner_and_nothing_is_used_twice(end, exact):
    tasks, idle = end
    found = replicas(tasks, idle, exact)
    assert len({each.task for each in found}) == len({each.processor for each in found}) == len(found)
    for each in found:
        task, place = tasks[each.task], idle[each.processor]
        assert task.whole[place.site] < task.left
        assert not exact or task.whole[place.site] <= place.paid


@given(ends())
def test_no_useful_processor_stays_idle(end):
    tasks, idle = end
    found = replicas(tasks, idle)
    left = [task for task in tasks if task.task not in {each.task for each in found}]
    free = [place for place in idle if place.processor not in {each.processor for each in found}]
    assert not any(task.whole[place.site] < task.left for task in left for place in free)


def test_the_task_that_ends_last_comes_first_and_goes_where_it_ends_soonest():
    tasks = [running(1, 50.0, 40.0, 20.0), running(2, 90.0, 80.0, 45.0)]
    idle = [IdleProcessor(7, "slow", 100.0), IdleProcessor(8, "fast", 100.0)]
    assert [(each.task, each.processor) for each in replicas(tasks, idle)] == [(2, 8), (1, 7)]


def test_those_that_end_in_paid_time_come_before_those_that_may_be_lucky():
    tasks = [running(1, 90.0, 80.0, 45.0), running(2, 60.0, 50.0, 25.0)]
    idle = [IdleProcessor(7, "fast", 30.0)]
    assert [each.task for each in replicas(tasks, idle)] == [2]
    assert [each.task for each in replicas(tasks[:1], idle)] == [1]
    assert replicas(tasks[:1], idle, exact=True) == []


def test_a_task_is_moved_only_to_where_it_ends_sooner():
    place = IdleProcessor(0, "fast", 100.0)
    assert migration([running(1, 50.0, 60.0, 20.0), running(2, 90.0, 95.0, 60.0)], place) == 2
    assert migration([running(1, 10.0, 40.0, 20.0)], place) is None


@given(st.lists(st.floats(0.1, 1000), min_size=1, max_size=50), st.floats(0, 2000))
def test_experience_is_the_mean_of_those_that_took_longer(runtimes, elapsed):
    known = Experience()
    for runtime in runtimes:
        known.add(runtime)
    longer = [runtime for runtime in runtimes if runtime > elapsed]
    expected = sum(longer) / len(longer) if longer else 2 * elapsed
    assert known.whole(elapsed) == pytest.approx(expected)
    assert known.whole(elapsed) >= elapsed * (1 - 1e-9)
    assert len(known) == len(runtimes)


@given(st.lists(st.floats(0.1, 1000), min_size=1, max_size=50), st.floats(0, 2000))
def test_a_bad_case_is_one_of_the_longest(runtimes, elapsed):
    known = Experience()
    for runtime in runtimes:
        known.add(runtime)
    longer = sorted(runtime for runtime in runtimes if runtime > elapsed)
    late = known.late(elapsed)
    assert late == (longer[int(0.9 * len(longer))] if longer else 2 * elapsed)
    assert late >= known.late(elapsed, 0.5)
