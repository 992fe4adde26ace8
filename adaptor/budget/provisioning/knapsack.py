"""The bounded knapsack: of each site some processors, the most speed for the price (BaTS).

Solved for every budget at once: the frontier of configurations of which none both costs more and is no
faster than another, built from parts of each site's processors (dynamic programming over undominated
states).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from adaptor.budget.errors import BudgetError
from adaptor.extras import require_extra

if TYPE_CHECKING:  # the daemon runs without numpy
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Counts = npt.NDArray[np.int64]

MOST_STATES = 2000  # of the frontier; beyond it some are left out, evenly


class Item(msgspec.Struct, frozen=True):
    """A kind of processor."""

    cost: float
    """Of one, in any unit."""
    value: float
    """Of one: its speed."""
    most: int
    least: int = 0
    """That are taken in any case."""

    def __post_init__(self) -> None:
        """Raises BudgetError: no such item."""
        if not (self.cost >= 0 and self.value >= 0 and 0 <= self.least <= self.most):
            raise BudgetError(f"no such kind of processor: {self}")


class Frontier(msgspec.Struct, frozen=True):
    """Undominated configurations, dearer and more valuable from row to row."""

    costs: Floats
    values: Floats
    counts: Counts
    """Rows are configurations, columns are items."""

    def best(self, budget: float) -> int | None:
        """The row of the most value within the budget; None: not even the cheapest is."""
        row = int(self.costs.searchsorted(budget * (1 + 1e-12), side="right")) - 1
        return row if row >= 0 else None


def frontier(items: Sequence[Item]) -> Frontier:
    """All that a budget can choose between.

    Exact as long as no more than `MOST_STATES` configurations are undominated. Beyond that, what is left
    is still real, so a budget is kept; the value falls short by what lies between adjacent states.

    Raises AdaptorError: numpy is not installed.
    """
    require_extra("quotes", "numpy")
    import numpy as np

    costs = np.array([sum(item.least * item.cost for item in items)])
    values = np.array([sum(item.least * item.value for item in items)])
    counts = np.array([[item.least for item in items]], dtype=np.int64)
    for place, item in enumerate(items):
        for part in _parts(item.most - item.least):
            all_costs = np.concatenate((costs, costs + part * item.cost))
            all_values = np.concatenate((values, values + part * item.value))
            kept = _thinned(_undominated(all_costs, all_values))
            rows = kept % len(costs)
            counts = counts[rows]
            counts[kept >= len(costs), place] += part
            costs, values = all_costs[kept], all_values[kept]
    return Frontier(costs, values, counts)


def relaxed_value(items: Sequence[Item], budget: float) -> float:
    """No configuration within the budget is worth more: parts of processors are allowed here."""
    total = sum(item.least * item.value for item in items)
    left = max(0.0, budget * (1 + 1e-12) - sum(item.least * item.cost for item in items))
    worth = [item for item in items if item.value]
    for item in sorted(worth, key=lambda item: item.cost / item.value):
        most = item.most - item.least
        count = min(most, left / item.cost) if item.cost else most
        total += count * item.value
        left -= count * item.cost
    return total


def _parts(number: int) -> list[int]:
    """Parts of a number so that each smaller one is the sum of some: 1, 2, 4, … and what is left."""
    parts, power = [], 1
    while number > 0:
        parts.append(min(power, number))
        number -= parts[-1]
        power *= 2
    return parts


def _undominated(costs: Floats, values: Floats) -> Counts:
    """Rows, cheapest first, each more valuable than all before it."""
    import numpy as np

    order = np.lexsort((-values, costs))
    best = np.maximum.accumulate(values[order])
    return np.asarray(order[np.concatenate(([True], best[1:] > best[:-1]))])


def _thinned(kept: Counts) -> Counts:
    """Evenly spaced rows, the first and the last among them."""
    if len(kept) <= MOST_STATES:
        return kept
    import numpy as np

    places = np.linspace(0, len(kept) - 1, MOST_STATES).round().astype(np.int64)
    return np.asarray(kept[places])
