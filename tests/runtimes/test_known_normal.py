"""Mean and deviation of normal runtimes, from what has finished and what runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.runtimes.known import KnownRuntimes
from adaptor.runtimes.normal import excess


@given(st.floats(10, 2000), st.sampled_from([0.0, 0.1, 0.4, 1.0]), st.floats(0, 1e6))
def test_what_is_left_of_a_task_is_positive_and_shrinks(mean: float, spread: float, elapsed: float) -> None:
    less, more = (excess(mean, spread * mean, ran)[0] for ran in (elapsed + mean, elapsed))
    assert 0 <= less <= more + 1e-6 * mean


def test_what_is_left_is_that_of_normal_runtimes() -> None:
    values = np.random.default_rng(3).normal(100.0, 30.0, 200_000)
    for elapsed in (0.0, 90.0, 150.0):
        left = values[values > elapsed] - elapsed
        assert excess(100.0, 30.0, elapsed) == pytest.approx((left.mean(), left.var()), rel=0.03)


def test_short_tasks_that_finish_first_do_not_mislead() -> None:
    seen = KnownRuntimes()
    runtimes = np.random.default_rng(4).normal(100.0, 30.0, 400)
    for runtime in runtimes[runtimes <= 90]:
        seen.add(float(runtime))
    running = seen.running_since([0.0] * int((runtimes > 90).sum()))
    assert seen.normal(90.0, 100.0, 30.0, 1)[0] < 80
    assert running.normal(90.0, 100.0, 30.0, 1)[0] == pytest.approx(100, rel=0.05)


def test_a_site_whose_tasks_never_finish_looks_worse_and_worse() -> None:
    seen = KnownRuntimes().running_since([0.0] * 20)
    means = [seen.normal(elapsed, 100.0, 10.0, 5)[0] for elapsed in (50.0, 500.0, 5000.0, 50_000.0)]
    assert means == sorted(means)
    assert means[-1] > 30_000


def test_few_tasks_keep_what_is_assumed_and_many_replace_it() -> None:
    seen = KnownRuntimes()
    assert seen.normal(0.0, 100.0, 20.0) == (100.0, 20.0)
    assert seen.normal(0.0, 100.0, 20.0, 10)[1] == pytest.approx(20.0)
    for _ in range(1000):
        seen.add(50.0)
    assert seen.normal(0.0, 100.0, 20.0, 10)[0] == pytest.approx(50, rel=0.02)


def test_no_mean_is_zero() -> None:
    seen = KnownRuntimes()
    for _ in range(12):
        seen.add(0.0)
    assert seen.normal(0.0, 60.0, 30.0)[0] == pytest.approx(1e-3)
