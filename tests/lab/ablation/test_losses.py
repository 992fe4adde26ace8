"""What a variant loses, by its rows and those of the tree as it is."""

from __future__ import annotations

import math

import pytest

from lab.ablation.losses import loss
from lab.ablation.measures import Row


def _bag(cell: str, time: float, cost: float, *, kept: bool = True, exceeded: bool = False) -> Row:
    return Row(measure="budget", cell=cell, goal=time, time=time, cost=cost, kept=kept, exceeded=exceeded)


def test_means_are_over_bags_that_both_complete() -> None:
    base = [_bag("a", 100, 10), _bag("b", 100, 10), _bag("c", 100, 10)]
    other = [_bag("a", 110, 10), _bag("b", 110, 20, exceeded=True), _bag("c", 500, 10, kept=False)]
    found = loss(base, other)
    assert found.goal == pytest.approx(0.1)
    assert found.both == pytest.approx(1.1 * math.sqrt(2) - 1)
    assert (found.kept, found.exceeded, found.differing) == (1, 1, 3)


def test_forecasts_lose_by_the_mean_of_their_scores() -> None:
    base = [Row(measure="paid forecasts", cell=cell, goal=1.0) for cell in "ab"]
    other = [
        Row(measure="paid forecasts", cell="a", goal=1.0),
        Row(measure="paid forecasts", cell="b", goal=2.0, kept=False),
    ]
    found = loss(base, other)
    assert found.goal == pytest.approx(0.5)
    assert found.kept == 1
    assert found.worst == pytest.approx(0.5)


def test_a_variant_that_fails_loses_all() -> None:
    assert loss([_bag("a", 1, 1)], []).goal == math.inf
    assert loss([_bag("a", 1, 1)], [_bag("a", 1, 1)]).differing == 0
