"""Intervals of shares that were counted in samples of several trials."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_experiments.bootstrap import share_interval

trials = st.integers(1, 6).flatmap(
    lambda each: st.lists(st.lists(st.booleans(), min_size=each, max_size=each), min_size=1, max_size=20)
)


@given(trials)
def test_an_interval_holds_its_share_and_lies_between_none_and_all(samples: list[list[bool]]) -> None:
    found = share_interval(samples)
    assert found.value == pytest.approx(np.mean(samples))
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high, "no finite number of trials is certain"


def test_known_intervals() -> None:
    """Wilson's for 8 of 10 and 10 of 10 (Brown, Cai and DasGupta 2001)."""
    found = share_interval([[True]] * 8 + [[False]] * 2)
    assert (found.low, found.high) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))
    assert share_interval([[True]] * 10).low == pytest.approx(0.722, abs=1e-3)


def test_trials_that_go_together_count_once_and_others_by_themselves() -> None:
    together = share_interval([[True] * 12] * 15 + [[False] * 12] * 5)
    apart = share_interval(
        [[True] * 9 + [False] * 3] * 10 + [[True] * 8 + [False] * 4, [True] * 10 + [False] * 2]
    )
    once = share_interval([[True]] * 15 + [[False]] * 5)
    assert (together.low, together.high) == pytest.approx((once.low, once.high), abs=0.02)
    assert apart.high - apart.low < 0.6 * (together.high - together.low)


@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_the_interval_misses_the_true_share_as_seldom_as_it_says(spread: float) -> None:
    draw = np.random.default_rng(1)
    missed = 0
    for _ in range(400):
        shares = draw.beta(0.85 / spread, 0.15 / spread, size=12)
        found = share_interval((draw.random((12, 12)) < shares[:, None]).tolist())
        missed += not found.low <= 0.85 <= found.high
    assert missed <= 0.1 * 400
