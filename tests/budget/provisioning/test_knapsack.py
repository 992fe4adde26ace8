"""The bounded knapsack against trying everything."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning import knapsack
from adaptor.budget.provisioning.knapsack import Item, frontier, relaxed_value
from tests.examples import examples


@st.composite
def items(draw):
    least = draw(st.integers(0, 2))
    return Item(
        cost=draw(st.integers(0, 20)) / 2,
        value=draw(st.integers(0, 20)) / 4,
        most=least + draw(st.integers(0, 6)),
        least=least,
    )


def all_of(kinds):
    for counts in itertools.product(*(range(kind.least, kind.most + 1) for kind in kinds)):
        yield (
            counts,
            *(
                sum(count * getattr(kind, what) for count, kind in zip(counts, kinds, strict=True))
                for what in ("cost", "value")
            ),
        )


@examples(200)
@given(st.lists(items(), min_size=1, max_size=3), st.floats(0, 150))
def test_the_best_of_a_budget_is_that_of_trying_all(kinds, budget):
    affordable = [value for _, cost, value in all_of(kinds) if cost <= budget]
    found = frontier(kinds)
    row = found.best(budget)
    if not affordable:
        assert row is None
        return
    assert found.values[row] == pytest.approx(max(affordable))
    assert found.costs[row] <= budget * (1 + 1e-12)
    assert relaxed_value(kinds, budget) >= max(affordable) - 1e-9
    for kind, count in zip(kinds, found.counts[row], strict=True):
        assert kind.least <= count <= kind.most


@examples(100)
@given(st.lists(items(), min_size=1, max_size=3))
def test_rows_are_real_and_undominated(kinds):
    found = frontier(kinds)
    assert (np.diff(found.costs) >= 0).all()
    assert (np.diff(found.values) > 0).all()
    for cost, value, counts in zip(found.costs, found.values, found.counts, strict=True):
        assert cost == pytest.approx(sum(n * kind.cost for n, kind in zip(counts, kinds, strict=True)))
        assert value == pytest.approx(sum(n * kind.value for n, kind in zip(counts, kinds, strict=True)))


def test_many_sites_are_thinned_and_still_keep_the_budget(monkeypatch):
    draw = np.random.default_rng(1)
    kinds = [Item(*map(float, draw.uniform(1, 3, 2)), most=50) for _ in range(6)]
    monkeypatch.setattr(knapsack, "MOST_STATES", 300)
    found = frontier(kinds)
    assert len(found.costs) <= 300
    row = found.best(200.0)
    assert found.costs[row] <= 200.0
    assert found.values[row] > 0.97 * relaxed_value(kinds, 200.0)


def test_kinds_that_cannot_be():
    for wrong in (
        {"cost": -1.0, "value": 1.0, "most": 1},
        {"cost": 1.0, "value": 1.0, "most": 1, "least": 2},
    ):
        with pytest.raises(BudgetError, match="no such kind"):
            Item(**wrong)
