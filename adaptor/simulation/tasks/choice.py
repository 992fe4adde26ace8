"""Which idle processors to use, in numbers: a step in Python for each event would take most of the time.

`to_use` decides what `adaptor.donation.deciding.decide` decides for nodes of one processor and tasks of one
kind and one processor, under the rules of which `in_numbers` is true; for all others the simulation asks
`decide` itself. The tests hold both against each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from adaptor.donation.fitting import demanded_probability
from adaptor.donation.idleness import Hazard
from adaptor.donation.situation import DonationDemand, DonationRules
from adaptor.simulation.donation.processors import OWNER, PLANNED, SINCE, USED
from adaptor.simulation.kernels import Array
from adaptor.simulation.tasks.kernels import Floats, numbers


def in_numbers(rules: DonationRules) -> bool:
    """Whether `to_use` knows the rules: max_nodes, reserve_nodes and hours are all off."""
    return rules.max_nodes is None and rules.reserve_nodes == 0 and not rules.hours


def to_use(
    lot: Array, now: int, hazard: Hazard, rules: DonationRules, demands: Iterable[DonationDemand]
) -> Array:
    """The processors of a lot (`Processors.lot`) to take into use now, ascending."""
    free = np.flatnonzero((lot[OWNER] < 0) & (lot[USED] < 0))
    chosen: list[Array] = []
    for demand in demands:
        least = demanded_probability(demand, rules, float(now))
        if least > 1.0:
            continue
        fitting = (
            free if least <= 0 else _likely(lot, free, now, hazard, least, rules.useful_time, demand.needs)
        )
        if len(fitting) > demand.waiting:
            order = np.lexsort((-fitting, lot[SINCE, fitting], -lot[PLANNED, fitting]))
            fitting = fitting[order[: demand.waiting]]
        chosen.append(fitting)
        free = np.setdiff1d(free, fitting)
    return np.sort(np.concatenate(chosen)) if chosen else free[:0]


def _likely(
    lot: Array, free: Array, now: int, hazard: Hazard, least: float, useful: float, needs: float
) -> Array:
    """Those on which a task of so many seconds is likely to finish."""
    until_planned = lot[PLANNED, free] - now
    free, until_planned = free[until_planned > useful], until_planned[until_planned > useful]
    longest = np.minimum(until_planned, _longest(hazard, now - lot[SINCE, free], least))
    fitting: Array = free[(longest > 0) & (longest >= needs)]
    return fitting


def _longest(hazard: Hazard, age: Array, probability: float) -> Floats:
    """As `Hazard.longest`, for many ages."""
    edges, cumulative, rates = numbers(hazard)
    piece = np.searchsorted(edges, age, side="right") - 1
    reached = cumulative[piece] + rates[piece] * (age - edges[piece]) - math.log(probability)
    piece = np.searchsorted(cumulative, reached, side="right") - 1
    longest: Floats = edges[piece] + (reached - cumulative[piece]) / rates[piece] - age
    return longest
