"""Nodes that are expected to become idle, against sums over their idle periods."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.donation.fitting import nodes_to_come
from adaptor.donation.idleness import IdleLearner
from tests.donation.survival import survival

horizons = st.floats(60.0, 1e6)
lengths = st.floats(1.0, 1e5)


def watched(periods: list[float], pause: float) -> IdleLearner:
    """One idle period after the other, with a pause between their beginnings."""
    learner = IdleLearner()
    for length in periods:
        learner.saw(0.0, length, taken=True)
        learner.watched(pause, 1)
    return learner


learners = st.builds(watched, st.lists(lengths, min_size=1, max_size=20), st.floats(10.0, 1e5))


@given(learners, horizons)
def test_they_are_those_of_the_periods_that_begin(learner, seconds):
    """A sum over many instants at which a period may begin, in place of the integral."""
    found = nodes_to_come(learner.hazard, learner.idleness, seconds, 0.0, 0.5)
    assert found is not None
    step, begins = seconds / 2000, learner.idleness.begins
    ages = [step * (number + 0.5) for number in range(2000)]
    stays = [survival(learner.hazard, 0.0, age) for age in ages]
    nodes = begins * step * sum(stays)
    assert found.nodes == pytest.approx(min(nodes, learner.idleness.usual(0.0)), rel=0.05)
    node_seconds = begins * step * sum(stay * (seconds - age) for age, stay in zip(ages, stays, strict=True))
    assert seconds - found.wait == pytest.approx(node_seconds / nodes, rel=0.05)


@given(learners, horizons, st.floats(1.0, 1e4), st.floats(0.1, 0.9))
def test_tasks_are_started_as_soon_as_they_are_likely_to_finish(learner, seconds, needs, probability):
    found = nodes_to_come(learner.hazard, learner.idleness, seconds, needs, probability)
    if found is None:
        return
    assert survival(learner.hazard, found.age, needs) >= probability * (1 - 1e-9)
    assert found.age <= found.wait <= seconds
    assert 0 < found.lasting <= seconds - found.age + 1e-6
    assert found.nodes <= learner.idleness.usual(found.age)


@given(st.lists(lengths, max_size=20), horizons)
def test_none_comes_where_none_was_seen_to_come(periods, seconds):
    learner = IdleLearner()
    for length in periods:
        learner.saw(0.0, length, taken=True)
    learner.watched(1e6, 0)
    assert nodes_to_come(learner.hazard, learner.idleness, seconds, 60.0, 0.5) is None


def test_none_is_of_use_to_tasks_that_would_not_finish():
    learner = watched([300.0] * 1000, 600.0)
    assert nodes_to_come(learner.hazard, learner.idleness, 3600.0, 60.0, 0.5) is not None
    assert nodes_to_come(learner.hazard, learner.idleness, 1e7, 1e6, 0.5) is None, (
        "none was ever as old as that"
    )
    assert nodes_to_come(learner.hazard, learner.idleness, 3600.0, 1e6, 0.0) is not None, "choose: all"


def test_as_many_are_idle_as_come_in_the_mean_of_a_period():
    """Little's law: once a minute for ten minutes makes ten at a time."""
    learner = watched([-600.0 * math.log(number / 20_000) for number in range(1, 20_000)], 60.0)
    found = nodes_to_come(learner.hazard, learner.idleness, 86_400.0, 0.0, 0.5)
    assert found is not None
    assert found.nodes == pytest.approx(10, rel=0.05)
    assert found.lasting == pytest.approx(600, rel=0.05)
