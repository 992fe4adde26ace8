"""What lies beyond a threshold."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.estimation.pareto_tail import SHAPES, Censored, Tail, evidence_ratio, likely_tails

tails = st.builds(Tail, st.sampled_from(SHAPES), st.floats(0.01, 1e4))


def sumprod(values: list[float], weights: list[float]) -> float:
    return math.fsum(value * weight for value, weight in zip(values, weights, strict=True))


def mean_shape(excesses: list[float], threshold: float = 10.0) -> float:
    found, weights = likely_tails(excesses, Censored([], 0), threshold)
    return sumprod([tail.shape for tail in found], weights) / sum(weights)


def mean_excess(excesses: list[float], censored: list[float]) -> float:
    found, weights = likely_tails(excesses, Censored(censored, len(censored)), 10.0)
    means = [tail.scale / (1 - tail.shape) for tail in found]
    return sumprod(means, weights) / sum(weights)


@given(tails, st.floats(1e-6, 1.0))
def test_the_share_that_takes_longer_and_how_long_that_is(tail: Tail, share: float) -> None:
    assert tail.survival(tail.excess(share)) == pytest.approx(share, rel=1e-6)


@given(tails, st.floats(1e-4, 0.9))
def test_the_moments_are_those_of_what_is_drawn(tail: Tail, survival: float) -> None:
    shares = [survival ** ((place + 0.5) / 1000) for place in range(1000)]
    values = [tail.excess(share) for share in shares]
    mean = sumprod(values, shares) / sum(shares)
    variance = sumprod([(value - mean) ** 2 for value in values], shares) / sum(shares)
    assert tail.moments(survival) == (pytest.approx(mean, rel=1e-3), pytest.approx(variance, rel=1e-3))


@given(tails, st.floats(0.0, 1e4), st.floats(1e-3, 1.0))
def test_what_is_left_after_running_on(tail: Tail, beyond: float, share: float) -> None:
    """Of those that have run so far, `share` runs longer than the multiplied excess says."""
    if reached := tail.survival(beyond):
        longer = tail.survival(beyond + tail.further(beyond) * tail.excess(share))
        assert longer / reached == pytest.approx(share, rel=1e-3)


def test_long_tails_are_told_from_short_ones() -> None:
    draw = random.Random(5)
    short = [draw.uniform(0, 100) for _ in range(40)]
    power_law = [10 * (draw.paretovariate(1.5) - 1) for _ in range(40)]
    assert mean_shape(short) < 0 < 0.4 < mean_shape(power_law)


def test_tasks_that_still_run_make_the_tail_longer() -> None:
    assert mean_excess([1.0, 3.0, 5.0], [9.0, 9.0]) > 2 * mean_excess([1.0, 3.0, 5.0], [])


def test_some_running_tasks_may_stand_for_many() -> None:
    few = likely_tails([1.0, 3.0, 5.0], Censored([4.0, 9.0], 6), 10.0)
    many = likely_tails([1.0, 3.0, 5.0], Censored([4.0, 9.0] * 3, 6), 10.0)
    assert few[0] == many[0]
    assert few[1] == pytest.approx(many[1])


@given(st.lists(st.floats(0.0, 1e5), min_size=1, max_size=15), st.lists(st.floats(0.0, 1e5), max_size=5))
def test_no_giants_where_the_long_are_hardly_longer(excesses: list[float], censored: list[float]) -> None:
    found, weights = likely_tails(excesses, Censored(censored, len(censored)), 1000.0)
    assert all(tail.shape * 1000.0 <= tail.scale for tail in found if tail.scale)
    assert max(weights) == 1.0
    assert all(weight >= 0 for weight in weights)


def test_nothing_beyond() -> None:
    assert likely_tails([0.0, 0.0], Censored([], 0), 100.0) == ([Tail(0.0, 0.0)], [1.0])
    assert likely_tails([], Censored([50.0], 1), 100.0) == ([Tail(0.0, 0.0)], [1.0])
    assert Tail(0.0, 0.0).excess(0.01) == 0
    assert Tail(0.0, 0.0).survival(0.0) == 0


def test_having_run_on_speaks_the_more_against_tails_that_end() -> None:
    excesses = [1.0, 2.0, 3.0, 4.0]
    tails, _ = likely_tails(excesses, Censored([20.0] * 3, 3), 10.0)
    before = Censored([4.0] * 3, 3)
    far, near = (evidence_ratio(tails, excesses, Censored([ran] * 3, 3), before) for ran in (20.0, 5.0))
    assert 0 < far < near < 1
    assert evidence_ratio(tails, excesses, before, before) == pytest.approx(1)
    assert Censored([20.0, 2.0], 2).until(4.0) == Censored([4.0, 2.0], 2)
