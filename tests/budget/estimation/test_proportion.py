"""Confidence intervals of shares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.estimation.proportion import wilson


def test_known_intervals() -> None:
    """Wilson's for 8 of 10 and 10 of 10 (Brown, Cai and DasGupta 2001)."""
    assert wilson(0.8, 10) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))
    assert wilson(1.0, 10) == (pytest.approx(0.722, abs=1e-3), 1.0)


@given(st.integers(1, 1000).flatmap(lambda all: st.tuples(st.integers(0, all), st.just(all))))
def test_it_lies_between_none_and_all_around_the_share_and_mirrors(counts: tuple[int, int]) -> None:
    some, trials = counts
    low, high = wilson(some / trials, trials)
    assert 0 <= low <= some / trials <= high <= 1
    assert low < high
    mirrored = wilson(1 - some / trials, trials)
    assert (1 - mirrored[1], 1 - mirrored[0]) == (pytest.approx(low), pytest.approx(high))
