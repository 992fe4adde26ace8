"""Which tasks get a second attempt at the end, and where."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.provisioning.tail_phase import (
    RARE,
    IdleProcessor,
    LateByItsNode,
    Rule,
    RunningTask,
    Threatened,
    must_stop,
    replicas,
    safe_copies,
    worthwhile_copies,
)
from adaptor.runtimes.sample import RuntimeSample
from adaptor.runtimes.survival import Survival

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


def known(*runtimes):
    found = RuntimeSample()
    for task, runtime in enumerate(runtimes):
        found.add(task, runtime)
    return Survival(found)


TENS = known(*range(10, 110, 10))
"""Runtimes of 10 to 100 s: 100 s in a bad case."""
BOTH = {"slow": TENS, "fast": known(*range(5, 55, 5))}
IDLE = [IdleProcessor(0, "fast", 1000.0)]
ANY = Rule(name="any", exact=False, copies=None)


def test_a_late_task_is_late_by_its_node_where_a_user_is_concerned():
    late = {1: [("slow", 60.0)]}
    (copy,) = worthwhile_copies({1: [("slow", 10.0)]}, IDLE, LateByItsNode(BOTH, BOTH))
    assert (copy.task, copy.processor) == (1, 0)
    assert worthwhile_copies(late, IDLE, LateByItsNode(BOTH, BOTH)) == [], "40 s left, 50 s there"
    assert LateByItsNode(BOTH, BOTH).of(1, late[1]) == running(1, 40.0, 100, 50)


def test_a_user_s_task_has_one_copy_and_that_in_paid_time():
    twice = {1: [("slow", 10.0), ("slow", 5.0)]}
    expected = LateByItsNode(BOTH, BOTH)
    assert worthwhile_copies(twice, IDLE, expected) == []
    assert worthwhile_copies(twice, IDLE, expected, ANY)
    short = [IdleProcessor(0, "fast", 20.0)]
    assert worthwhile_copies({1: [("slow", 10.0)]}, short, expected) == []
    assert worthwhile_copies({1: [("slow", 10.0)]}, short, expected, ANY)


@given(st.floats(0, 100), st.floats(0, 100), st.booleans(), st.booleans())
def test_a_copy_never_costs_a_unit_and_never_takes_a_task_with_it(until, now, last, shared):
    stops = must_stop(until, now, last_attempt=last, shared=lambda: shared)
    assert stops == (now >= until and not last and not shared)


def threatened(task, chance, enough=100.0, site="fast"):
    return Threatened(task=task, site=site, chance=chance, enough=enough)


def test_what_the_end_of_a_pilot_may_cut_is_copied_where_most_time_is_left_the_likeliest_first():
    idle = [IdleProcessor(7, "fast", 150.0), IdleProcessor(8, "fast", 300.0)]
    risks = [threatened(1, 0.1), threatened(2, 0.9, enough=200.0), threatened(3, 0.2)]
    assert [(each.task, each.processor) for each in safe_copies(risks, idle)] == [(2, 8), (3, 7)]


def test_a_copy_that_would_be_cut_too_or_that_is_hardly_needed_is_not_started():
    idle = [IdleProcessor(7, "fast", 150.0)]
    assert safe_copies([threatened(1, 0.9, enough=200.0)], idle) == []
    assert safe_copies([threatened(1, RARE / 2)], idle) == []
    assert safe_copies([threatened(1, 0.9, site="slow")], idle) == [], "how long it takes here is not known"
    assert safe_copies([threatened(1, 0.9)], idle, lambda _task, _place: False) == []
