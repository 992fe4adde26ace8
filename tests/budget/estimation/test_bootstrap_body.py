"""The runtimes up to a threshold."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.estimation.bootstrap_body import body_of

TEN = [float(runtime) for runtime in range(10, 110, 10)]


def test_beyond_each_runtime_lies_a_share_for_each_longer_one_and_the_unseen() -> None:
    assert body_of(TEN, [], 6).beyond == pytest.approx(5 / 11)


def test_running_tasks_count_among_the_longer_for_as_long_as_they_have_run() -> None:
    assert body_of(TEN, [65.0] * 4, 6).beyond == pytest.approx(9 / 15)
    assert body_of(TEN, [5.0] * 4, 6).beyond == pytest.approx(5 / 11)
    assert body_of(TEN, [35.0] * 4, 6).beyond > 5 / 11


def test_draws_are_around_the_mean_and_as_uncertain_as_so_few_runtimes_leave_it() -> None:
    body, chance = body_of(TEN, [], 6), random.Random(3)
    shares, means, variances = zip(*(body.draw(chance) for _ in range(3000)), strict=True)
    assert statistics.fmean(shares) == pytest.approx(5 / 11, rel=0.03)
    # A share of 5 in 11 has a beta distribution.
    assert statistics.stdev(shares) == pytest.approx((5 * 6 / 11**2 / 12) ** 0.5, rel=0.05)
    assert statistics.fmean(means) == pytest.approx(30.0, rel=0.03)
    assert 0 < statistics.fmean(variances) < 400


def test_many_runtimes_are_looked_at_in_groups_with_the_same_spread() -> None:
    draw, chance = random.Random(7), random.Random(3)
    many = sorted(draw.expovariate(0.01) for _ in range(1000))
    body = body_of(many, [], 936)
    assert len(body.steps) <= 24
    shares = [body.draw(chance)[0] for _ in range(2000)]
    assert statistics.fmean(shares) == pytest.approx(65 / 1001, rel=0.03)
    assert statistics.stdev(shares) == pytest.approx((65 * 936 / 1001**2 / 1002) ** 0.5, rel=0.1)


def test_what_runs_below_the_threshold() -> None:
    crossing = body_of([100.0] * 30, [60.0, 90.0], 19).crossing
    assert crossing.count == 2
    assert crossing.until == pytest.approx(25.0)
    assert crossing.rest == pytest.approx(25.0)
    assert crossing.variance == pytest.approx(0.0, abs=1e-6)
    assert body_of(TEN, [65.0], 6).crossing.count == 0


@given(
    st.lists(st.floats(0, 1e6), min_size=2, max_size=60),
    st.lists(st.floats(0, 1e6), max_size=40),
    st.integers(1, 59),
)
def test_shares_are_shares(finished: list[float], running: list[float], size: int) -> None:
    done = sorted(finished)
    size = min(size, len(done) - 1)
    body = body_of(done, sorted(running), size)
    share, mean, variance = body.draw(random.Random(1))
    assert 0 < body.beyond < 1
    assert 0 <= share <= 1
    assert 0 <= mean <= done[size - 1] * (1 + 1e-6)
    assert variance >= 0
    assert 0 <= body.crossing.chance <= 1
    assert 0 <= body.crossing.rest <= 1e6
