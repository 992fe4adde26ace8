"""Generalised Pareto tails: moments are those of the excesses, and data make their own shape likely."""

from __future__ import annotations

import math
from statistics import fmean, pvariance

import pytest

from adaptor.runtimes.tail import SHAPES, Tail, likely_tails, survival


def excesses(tail: Tail, least: float, count: int) -> list[float]:
    """Evenly spread over the shares from `least` to 1."""
    return [tail.excess(least + (1 - least) * (each + 0.5) / count) for each in range(count)]


@pytest.mark.parametrize("shape", [*SHAPES, 1.0])
@pytest.mark.parametrize("least", [0.1, 0.01])
def test_moments_are_those_of_the_excesses_up_to_the_longest(shape: float, least: float) -> None:
    tail = Tail(shape, 40.0)
    found = excesses(tail, least, 20_000)
    assert tail.excess(least) > max(found) > min(found) > 0
    assert tail.moments(least) == pytest.approx((fmean(found), pvariance(found)), rel=0.01)
    assert tail.moments(1.0) == (0.0, 0.0)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.6])
def test_a_task_that_has_run_on_exceeds_as_the_tail_beyond_says(shape: float) -> None:
    """P(excess > x + y) = P(excess > x) · P(excess of those > y)."""
    tail = Tail(shape, 40.0)
    beyond = tail.excess(0.5)
    assert beyond + tail.further(beyond) * tail.excess(0.2) == pytest.approx(tail.excess(0.1))


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.6])
def test_the_shape_of_many_excesses_is_the_likely_one(shape: float) -> None:
    tails, weights = likely_tails(excesses(Tail(shape, 40.0), 0.0, 400), [], 0.0, 40.0)
    best = tails[weights.index(max(weights))]
    assert abs(best.shape - shape) <= 0.15
    assert 25 < best.scale < 60


def test_tasks_that_run_far_beyond_make_long_tails_likely() -> None:
    def mean(running: list[float]) -> float:
        tails, weights = likely_tails([10.0, 20.0, 30.0], running, 1.0, 100.0)
        return sum(tail.moments(0.01)[0] * weight for tail, weight in zip(tails, weights, strict=True)) / sum(
            weights
        )

    assert mean([]) < mean([100.0]) < mean([100.0] * 3)
    assert likely_tails([], [100.0], 1.0, 100.0) == ([Tail(0.0, 0.0)], [1.0])


def test_half_of_log_normal_tasks_run_longer_than_the_middle() -> None:
    assert survival(100.0, math.log(100.0), 0.7) == pytest.approx(0.5)
    shares = [survival(100.0 * math.exp(z), math.log(100.0), 1.0) for z in (1.0, 2.0, 5.99, 6.01, 7.0)]
    assert shares[:2] == pytest.approx([0.1587, 0.0228], rel=0.01)
    assert shares[2] == pytest.approx(shares[3], rel=0.2)
    assert shares == sorted(shares, reverse=True)
