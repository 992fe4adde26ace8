"""Nodes that are expected to become idle, against sums over their idle periods."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.donation.coming import nodes_to_come
from adaptor.donation.idleness import IdleLearner
from tests.donation.survival import survival

horizons = st.floats(60.0, 1e6)
rates = st.floats(1e-6, 0.1)


def learner_of(periods: list[float]) -> IdleLearner:
    learner = IdleLearner()
    for length in periods:
        learner.saw(0.0, length, taken=True)
    return learner


hazards = st.lists(st.floats(1.0, 1e5), max_size=20).map(lambda periods: learner_of(periods).hazard)


@given(hazards, rates, horizons)
def test_they_are_those_of_the_periods_that_begin(hazard, begins, seconds):
    """A sum over many instants at which a period may begin, in place of the integral."""
    found = nodes_to_come(hazard, begins, seconds, 0.0, 0.5)
    assert found is not None
    step = seconds / 2000
    ages = [step * (number + 0.5) for number in range(2000)]
    stays = [survival(hazard, 0.0, age) for age in ages]
    nodes = begins * step * sum(stays)
    assert found.nodes == pytest.approx(nodes, rel=0.05)
    node_seconds = begins * step * sum(stay * (seconds - age) for age, stay in zip(ages, stays, strict=True))
    assert found.nodes * (seconds - found.wait) == pytest.approx(node_seconds, rel=0.05)


@given(hazards, rates, horizons, st.floats(1.0, 1e4), st.floats(0.1, 0.9))
def test_tasks_are_started_as_soon_as_they_are_likely_to_finish(hazard, begins, seconds, needs, probability):
    found = nodes_to_come(hazard, begins, seconds, needs, probability)
    if found is None:
        return
    assert survival(hazard, found.age, needs) >= probability * (1 - 1e-9)
    assert found.age <= found.wait <= seconds
    assert 0 < found.lasting <= seconds - found.age


@given(hazards, horizons)
def test_none_comes_where_none_has_come(hazard, seconds):
    assert nodes_to_come(hazard, 0.0, seconds, 60.0, 0.5) is None


def test_none_is_of_use_to_tasks_that_would_not_finish():
    learner = learner_of([300.0] * 1000)
    assert nodes_to_come(learner.hazard, 0.01, 3600.0, 60.0, 0.5) is not None
    assert nodes_to_come(learner.hazard, 0.01, 200_000.0, 1e6, 0.5) is None
    assert nodes_to_come(learner.hazard, 0.01, 3600.0, 1e6, 0.0) is not None, "choose: all"


def test_as_many_are_idle_as_come_in_the_mean_of_a_period():
    """Little's law: once a minute for ten minutes makes ten at a time."""
    learner = IdleLearner()
    for number in range(1, 20_000):
        learner.saw(0.0, -600.0 * math.log(number / 20_000), taken=True)
    found = nodes_to_come(learner.hazard, 1 / 60, 86_400.0, 0.0, 0.5)
    assert found is not None
    assert found.nodes == pytest.approx(10, rel=0.05)
    assert found.lasting == pytest.approx(600, rel=0.05)
