"""Which idle processors to use, in numbers: a step in Python for each event would take most of the time.

`to_use` decides what `adaptor.donation.deciding.decide` decides for nodes of one processor and tasks of one
kind and one processor, under the rules of which `in_numbers` is true; for all others the simulation asks
`decide` itself. The tests hold both against each other.
"""

from __future__ import annotations

import numpy as np

from adaptor.donation.idleness import EDGES, Hazard
from adaptor.donation.situation import DonationRules
from adaptor.simulation.donation import kernels as k
from adaptor.simulation.donation.kernels import Floats
from adaptor.simulation.kernels import Array


def in_numbers(rules: DonationRules) -> bool:
    """Whether `to_use` knows the rules: max_nodes, reserve_nodes and hours are all off."""
    return rules.max_nodes is None and rules.reserve_nodes == 0 and not rules.hours


def numbers(hazard: Hazard) -> Floats:
    """(3, pieces): the hazard as the kernels take it."""
    return np.array([EDGES, hazard.cumulative, hazard.rates])


def to_use(
    lot: Array, now: int, hazard: Floats, level: float, useful: float, waiting: int, needs: float
) -> Array:
    """The processors to take into use now.

    Args:
        level: minus the logarithm of the probability with which a task must finish (`math.inf`: the rules
            say `choose: all`).
        useful: seconds for which no job must be planned on a processor.
        waiting: tasks that may run on donated processors and have none.
        needs: estimated seconds of the shortest of them.
    """
    free = np.flatnonzero((lot[k.OWNER] < 0) & (lot[k.USED] < 0))
    fitting = free if level == np.inf else _likely(lot, free, now, hazard, level, useful, needs)
    if len(fitting) <= waiting:
        return fitting
    order = np.lexsort((-fitting, lot[k.SINCE, fitting], -lot[k.PLANNED, fitting]))
    chosen: Array = fitting[order[:waiting]]
    return chosen


def _likely(
    lot: Array, free: Array, now: int, hazard: Floats, level: float, useful: float, needs: float
) -> Array:
    """Those on which the shortest task is likely to finish."""
    until_planned = lot[k.PLANNED, free] - now
    free, until_planned = free[until_planned > useful], until_planned[until_planned > useful]
    longest = np.minimum(until_planned, _longest(hazard, now - lot[k.SINCE, free], level))
    fitting: Array = free[(longest > 0) & (longest >= needs)]
    return fitting


def _longest(hazard: Floats, age: Array, level: float) -> Floats:
    """As `Hazard.longest`, for many ages."""
    edges, cumulative, rates = hazard
    piece = np.searchsorted(edges, age, side="right") - 1
    reached = cumulative[piece] + rates[piece] * (age - edges[piece]) + level
    piece = np.searchsorted(cumulative, reached, side="right") - 1
    longest: Floats = edges[piece] + (reached - cumulative[piece]) / rates[piece] - age
    return longest
