"""Deciding again, every so often, what to hold: with what was learned, and with what is left.

Ricciardi & Hwang (2011), §3, the dynamic case: every Δt the allocation is solved again for the tasks,
the time and the credits that remain (eq. 11 and 12).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.budget.errors import InfeasibleError
from adaptor.budget.provisioning.allocation import (
    Allocation,
    cheapest,
    fastest,
    time_of_least_cost,
)
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.ways import CONFIDENCE, all_ways, capacity
from adaptor.model import Preference as Preference


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """Aim of the user for a bag."""

    deadline: float | None = None
    """The instant by which all tasks are to be done."""
    budget: float | None = None
    """Credits for the whole bag."""
    prefer: Preference = "balanced"
    """Choice among the allocations that keep both: the least cost, the least time, or the middle of the
    times."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a bag: its waiting tasks and its cost."""

    now: float
    waiting: int
    """Tasks that have not been started."""
    spent: float = 0.0
    """Credits charged so far."""
    committed: float = 0.0
    """Credits that the tasks which run now are still expected to cost."""

    def left_of(self, budget: float | None) -> float:
        """Credits of the bag's budget for the waiting tasks; None: it has none, so nothing limits them."""
        return math.inf if budget is None else budget - self.spent - self.committed


class Step(msgspec.Struct, frozen=True):
    """Processors to hold until the next step."""

    allocation: Allocation
    kept: bool
    """Whether the deadline is expected to be kept; a budget always is."""


def steer(aim: Aim, progress: Progress, offers: Sequence[SiteOffer], confidence: float = CONFIDENCE) -> Step:
    """The allocation for what remains of a bag.

    A deadline that cannot be kept is missed by as little as the budget allows.

    Raises:
        InfeasibleError: what is left of the budget does not hold the tasks; the bag has to pause.
        BudgetError: a number that cannot be.
    """
    left = progress.left_of(aim.budget)
    soonest = fastest(progress.waiting, offers, left, confidence)
    time_left = math.inf if aim.deadline is None else aim.deadline - progress.now
    if soonest.seconds > time_left:
        return Step(soonest, kept=False)
    if aim.prefer == "fast":
        return Step(soonest, kept=True)
    latest = min(time_left, time_of_least_cost(progress.waiting, offers, soonest.seconds, confidence))
    wanted = latest if aim.prefer == "cheap" else (soonest.seconds + latest) / 2
    try:
        found = cheapest(progress.waiting, offers, max(wanted, soonest.seconds), left, confidence)
    except InfeasibleError:  # by the precision of the times alone
        found = soonest
    return Step(found, kept=True)


def can_wait(
    aim: Aim, progress: Progress, offers: Sequence[SiteOffer], confidence: float = CONFIDENCE
) -> bool:
    """Whether a bag may count on cheaper processors that are not there yet (De Rose et al. 2008, §5).

    It may if it is to be cheap by a deadline, and these offers alone could do its waiting tasks in half of
    the time left. So what does not come in the first half can still be requested in the second.
    """
    if aim.deadline is None or aim.prefer != "cheap":
        return False
    ways = all_ways(offers, (aim.deadline - progress.now) / 2, 0, confidence)
    return capacity(ways, offers) >= progress.waiting
