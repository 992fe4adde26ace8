"""Intervals by drawing the samples again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_experiments.bootstrap import Drawn, Interval, drawn_means, weights

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
