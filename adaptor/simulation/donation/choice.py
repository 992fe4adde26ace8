"""The step of the donation (`adaptor.donation.deciding`) in numbers, for processors in a table.

It decides what `decide` decides where every node has one processor and all tasks are of one kind,
without max_nodes, reserve_nodes and hours: a step in Python for each event would take most of the time.
The tests hold both against each other.
"""

from __future__ import annotations

import math

import numpy as np

from adaptor.donation.idleness import EDGES, Hazard
from adaptor.simulation.donation import kernels as k
from adaptor.simulation.donation.kernels import Floats
from adaptor.simulation.kernels import Array


def numbers(hazard: Hazard) -> Floats:
    """(3, pieces): the hazard as the kernels take it."""
    return np.array([EDGES, hazard.cumulative, hazard.rates])


def to_lend(
    lot: Array, now: int, hazard: Floats, probability: float, useful: float, waiting: int, needs: float
) -> Array:
    """The processors to lend now.

    Args:
        waiting: tasks that may run on lent processors and have none.
        needs: estimated seconds of the shortest of them.
    """
    free = np.flatnonzero((lot[k.OWNER] < 0) & (lot[k.LENT] < 0))
    until_planned = lot[k.PLANNED, free] - now
    free, until_planned = free[until_planned > useful], until_planned[until_planned > useful]
    longest = np.minimum(until_planned, _longest(hazard, now - lot[k.SINCE, free], probability))
    fitting: Array = free[(longest > 0) & (longest >= needs)]
    if len(fitting) <= waiting:
        return fitting
    order = np.lexsort((-fitting, lot[k.SINCE, fitting], -lot[k.PLANNED, fitting]))
    chosen: Array = fitting[order[:waiting]]
    return chosen


def _longest(hazard: Floats, age: Array, probability: float) -> Floats:
    """As `Hazard.longest`, for many ages."""
    edges, cumulative, rates = hazard
    piece = np.searchsorted(edges, age, side="right") - 1
    level = cumulative[piece] + rates[piece] * (age - edges[piece]) - math.log(probability)
    piece = np.searchsorted(cumulative, level, side="right") - 1
    longest: Floats = edges[piece] + (level - cumulative[piece]) / rates[piece] - age
    return longest
