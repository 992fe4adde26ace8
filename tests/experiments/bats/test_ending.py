"""The ways to end a bag, one step at a time, and what the slides expect of tasks that run."""

from __future__ import annotations

import random

import pytest

from adaptor.budget.provisioning.tail_phase import IdleProcessor, RunningTask
from adaptor.runtimes.sample import RuntimeSample
from adaptor.runtimes.survival import Survival
from adaptor_experiments.bats.ending import LongEverywhere, TailPhase, migration
from adaptor_experiments.bats.sampling import IDLE
from tests.experiments.bats.endings import ending


def moved(way):
    """A task that has run for a quarter of its time is moved to a machine of the fast site."""
    state, times = ending("multi-modal")
    phase = TailPhase(state, times, way, random.Random(2))
    origin = next(each for each in phase._fleet.machines if each.site == 0 and each.task != IDLE)
    place = next(each for each in phase._fleet.machines if each.site == 1)
    origin.started = phase._now - times[0][origin.task] / 4
    origin.end = origin.started + times[0][origin.task]
    phase._move(origin, place)
    assert place.task == origin.task
    return place.end - phase._now, times[1][place.task]


def test_a_task_that_is_moved_starts_from_scratch():
    seconds, whole = moved("migration")
    assert seconds == pytest.approx(whole)


def test_what_migration_loses_is_what_the_task_has_done():
    seconds, whole = moved("nothing lost")
    assert seconds == pytest.approx(3 / 4 * whole)


def test_replicas_that_win_are_counted_once_for_each_task():
    state, times = ending("multi-modal")
    found = {way: TailPhase(state, times, way, random.Random(2)).run() for way in ("random", "perfect")}
    assert 0 < found["perfect"].won == found["perfect"].replicas, "it copies what will win"
    assert found["random"].won < found["random"].replicas / 2


def running(task, left, slow, fast):
    return RunningTask(task=task, left=left, whole={"slow": slow, "fast": fast})


def test_a_late_task_is_long_everywhere_by_the_slides():
    known = RuntimeSample()
    for task, runtime in enumerate(range(10, 110, 10)):
        known.add(task, runtime)
    slides = LongEverywhere(Survival(known), {"slow": 1.0, "fast": 0.5})
    assert slides.of(1, [("slow", 60.0)]) == running(1, 40.0, 100.0, 50.0)
    assert slides.on_average(1, [("slow", 60.0)]).left == pytest.approx(85 - 60)


def test_a_task_is_moved_only_to_where_it_ends_sooner():
    place = IdleProcessor(0, "fast", 100.0)
    assert migration([running(1, 50.0, 60.0, 20.0), running(2, 90.0, 95.0, 60.0)], place) == 2
    assert migration([running(1, 10.0, 40.0, 20.0)], place) is None
