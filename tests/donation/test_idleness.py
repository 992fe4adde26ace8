"""How long nodes stay idle, learned from whole and unfinished periods."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.donation.idleness import EDGES, PRIOR_AGE, IdleLearner, Idleness
from tests.donation.survival import survival

ages = st.floats(0, 1e7)
periods = st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6), st.booleans()), max_size=30)


def learner_of(seen) -> IdleLearner:
    learner = IdleLearner()
    for before, length, taken in seen:
        learner.saw(before, before + length, taken=taken)
    return learner


@given(st.floats(0, 1e6))
def test_before_there_is_data_a_node_stays_idle_as_long_as_it_has_been_and_an_hour(age):
    assert IdleLearner().hazard.longest(age, 0.5) == pytest.approx(age + PRIOR_AGE, rel=0.6)


@given(periods, ages, ages, ages)
def test_survival_falls_with_time_and_parts_multiply(seen, age, first, second):
    hazard = learner_of(seen).hazard
    assert 1 >= survival(hazard, age, first) >= survival(hazard, age, first + second)
    parts = survival(hazard, age, first) * survival(hazard, age + first, second)
    assert survival(hazard, age, first + second) == pytest.approx(parts, abs=1e-9)


@given(periods, ages, ages)
def test_survival_is_that_of_the_definition(seen, age, seconds):
    hazard = learner_of(seen).hazard
    assert hazard.survival(age, seconds) == pytest.approx(survival(hazard, age, seconds), abs=1e-9)
    assert hazard.survival(-age, seconds) == hazard.survival(0.0, seconds)


@given(periods, ages, st.floats(0.01, 1))
def test_the_longest_is_where_the_probability_is_reached(seen, age, probability):
    hazard = learner_of(seen).hazard
    longest = hazard.longest(age, probability)
    assert longest >= -1e-6
    assert survival(hazard, age, longest) == pytest.approx(probability, rel=1e-6)


@given(periods)
def test_a_period_told_in_parts_is_the_same_period(seen):
    whole, parts = learner_of(seen), IdleLearner()
    for before, length, taken in seen:
        parts.saw(before, before + length / 3, taken=False)
        parts.saw(before + length / 3, before + length, taken=taken)
    one, two = whole.idleness, parts.idleness
    assert one.ends == two.ends
    assert one.seconds == pytest.approx(two.seconds)


@given(periods, st.integers(0, 100), st.floats(0, 1e6))
def test_it_goes_on_from_what_it_knew(seen, begun, seconds):
    learner = learner_of(seen)
    learner.watched(seconds, begun)
    assert IdleLearner(learner.idleness).hazard == learner_of(seen).hazard
    assert IdleLearner(learner.idleness).idleness == learner.idleness


def test_the_rate_of_idle_periods_tends_to_that_which_is_seen():
    learner = IdleLearner()
    assert learner.idleness.begins == 0
    learner.watched(60.0, 1)
    assert learner.idleness.begins < 1 / PRIOR_AGE, "one of a minute is no rate yet"
    for _ in range(10_000):
        learner.watched(60.0, 1)
    assert learner.idleness.begins == pytest.approx(1 / 60, rel=0.01)


def test_how_many_nodes_were_idle_in_the_mean():
    learner = IdleLearner()
    for _ in range(1000):
        learner.saw(0.0, 1200.0, taken=True, nodes=3)
        learner.watched(3600.0, 3)
    assert learner.idleness.usual(0.0) == pytest.approx(1.0, rel=0.01)
    assert learner.idleness.usual(EDGES[11]) == pytest.approx(0.6, rel=0.01)
    assert learner.idleness.usual(EDGES[-1]) == 0


@given(st.integers(1, 5), ages, ages, st.booleans())
def test_many_nodes_at_once_are_many_nodes(nodes, before, length, taken):
    together, one_by_one = IdleLearner(), IdleLearner()
    together.saw(before, before + length, taken=taken, nodes=nodes)
    for _ in range(nodes):
        one_by_one.saw(before, before + length, taken=taken)
    assert together.idleness.ends == one_by_one.idleness.ends
    assert together.idleness.seconds == pytest.approx(one_by_one.idleness.seconds)


def test_an_exponential_law_is_found_again_through_censoring():
    draw, learner = random.Random(1), IdleLearner()
    for _ in range(20_000):
        length, seen = draw.expovariate(1 / 1800), draw.uniform(0, 5000)
        learner.saw(0.0, min(length, seen), taken=length <= seen)
    for age in (0, 600, 1800):
        assert learner.hazard.longest(age, 0.5) == pytest.approx(1800 * 0.693, rel=0.1)


def test_unfinished_periods_alone_make_nodes_look_steady():
    learner = IdleLearner(Idleness())
    for _ in range(100):
        learner.saw(0.0, 86400.0, taken=False)
    assert survival(learner.hazard, 0.0, 43200.0) > 0.7
    assert survival(learner.hazard, 0.0, 43200.0) > survival(IdleLearner().hazard, 0.0, 43200.0)


def test_the_hazard_follows_new_data():
    learner = IdleLearner()
    first = learner.hazard
    for _ in range(10):
        learner.saw(0.0, 60.0, taken=True)
    assert learner.hazard.longest(0.0, 0.5) < first.longest(0.0, 0.5)


def test_a_clock_that_was_set_back_makes_no_node_look_steady():
    learner = IdleLearner()
    learner.saw(-60.0, -30.0, taken=True)
    assert learner.idleness.ends[0] == 1
    for hazard in (IdleLearner().hazard, learner.hazard):
        assert hazard.longest(-3600.0, 0.5) == hazard.longest(0.0, 0.5)
        assert survival(hazard, -3600.0, 60.0) == survival(hazard, 0.0, 60.0)
