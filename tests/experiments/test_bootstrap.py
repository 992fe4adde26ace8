"""Intervals by drawing the samples again, and of shares that were counted in samples of several trials."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_experiments.bootstrap import Drawn, Interval, drawn_means, share_interval, weights

values = st.lists(st.floats(0.0, 1e6, allow_subnormal=False), min_size=2, max_size=30)


@given(values, st.integers(0, 9))
def test_an_interval_lies_within_the_samples(drawn: list[float], seed: int) -> None:
    samples = np.array(drawn)
    found = drawn_means(samples, weights(len(samples), seed)).interval
    slack = 1e-9 * samples.max()
    assert samples.min() - slack <= found.low <= found.high <= samples.max() + slack


@given(st.integers(1, 30), st.integers(0, 9))
def test_weights_are_shares_and_the_seed_says_which(samples: int, seed: int) -> None:
    drawn = weights(samples, seed)
    assert len(drawn) == samples
    assert np.allclose(drawn.sum(axis=0), 1)
    assert (drawn == weights(samples, seed)).all()


def test_an_interval_that_is_known() -> None:
    assert Drawn(np.array(50), np.arange(0.0, 101.0), 9).interval == Interval(50.0, 2.5, 97.5)
    assert Interval(50.0, 2.5, 97.5).bars == (47.5, 47.5)
    assert Interval(50.0, 2.5, 97.5).over(10) == Interval(5.0, 0.25, 9.75)
    assert [Interval(50.0, 2.5, 97.5).holds(value) for value in (2.4, 2.5, 97.6)] == [False, True, False]
    assert str(Interval(1.234, 0.5, 20.0)) == "1.23 [0.50, 20.00]"


def test_one_sample_says_nothing_of_chance() -> None:
    alone = Drawn(np.array(1.5), np.full(9, 1.5), 1).interval
    assert (alone.low, alone.high, alone.known) == (0.0, np.inf, False)
    assert alone.bars == (0.0, 0.0)
    assert str(alone) == "1.50"


def test_figures_of_cells_are_drawn_together() -> None:
    again = weights(3, 1)
    slow, fast = (
        drawn_means(np.array(cells), again) for cells in ([[2.0, 4, 6], [9, 9, 9]], [[1.0, 2, 3], [1, 1, 1]])
    )
    ratios = slow / fast
    assert ratios.value.tolist() == [2, 9]
    assert ratios[0].interval == Interval(2.0, 2.0, 2.0), "what varies with the samples in both cancels out"
    assert ratios[ratios.value > 5].sum().interval.value == 9
    assert ratios.geometric().interval.value == pytest.approx(np.sqrt(18))
    assert (slow - fast).mean().value == 5


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
