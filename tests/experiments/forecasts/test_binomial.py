"""The binomial bound on waits holds with its confidence, and forgets waits from before a change."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_experiments.forecasts.binomial import FEWEST, BinomialBound, bound_place, kind_of


def test_59_waits_are_the_fewest_that_bound_the_095_quantile_with_95_percent() -> None:
    assert FEWEST == 59, "0.95 ** 59 < 0.05"
    assert bound_place(58) is None
    assert bound_place(59) == 58, "the longest of them"


@given(st.integers(FEWEST, 20_000))
def test_the_order_statistic_is_the_least_with_the_confidence(waits: int) -> None:
    from scipy.stats import binom  # takes seconds to import

    place = bound_place(waits)
    assert place is not None
    assert binom.cdf(place, waits, 0.95) >= 0.95 > binom.cdf(place - 1, waits, 0.95)


def test_of_alike_waits_at_least_95_percent_lie_below_the_bound() -> None:
    draw, learned, below = random.Random(1), BinomialBound(), list[bool]()
    for _ in range(4000):
        wait, bound = draw.lognormvariate(6.0, 1.5), learned.bound
        if bound is not None:
            below.append(wait <= bound)
        learned.started(wait, bound)
    assert 0.945 <= sum(below) / len(below) <= 0.99


def test_three_misses_in_a_row_forget_all_but_the_newest_waits() -> None:
    learned = BinomialBound()
    for _ in range(500):
        learned.started(10.0, learned.bound)
    assert learned.bound == learned.median == 10.0
    for _ in range(3):
        learned.started(1000.0, 10.0)
    assert learned.bound == 1000.0, "the 59 newest are left, and the longest of them is the bound"
    assert learned.median == 10.0


@pytest.mark.parametrize(("processors", "kind"), [(1, 0), (4, 0), (5, 1), (16, 1), (17, 2), (64, 2), (65, 3)])
def test_jobs_of_about_the_same_width_are_similar(processors: int, kind: int) -> None:
    assert kind_of(processors) == kind
