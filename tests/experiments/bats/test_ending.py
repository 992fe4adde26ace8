"""The ways to end a bag, one step at a time."""

from __future__ import annotations

import random

import pytest

from adaptor_experiments.bats.ending import TailPhase
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
