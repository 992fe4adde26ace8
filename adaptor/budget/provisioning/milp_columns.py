"""The ways in which one processor of a site can be held until a deadline: the columns of the allocation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.budget.provisioning.site_offers import HeldSlots, SiteOffer

MOST_LENGTHS = 8
"""Lengths of whole units that are considered for a processor besides the time until the deadline."""


CONFIDENCE = 0.6
"""With which all tasks that run at the last start have ended by the deadline: a little better than even."""


class Column(msgspec.Struct, frozen=True):
    """One processor of a site, held for so long from now."""

    site: int
    """Place among the offers."""
    group: int
    """Place among `held` of the offer; -1: it is still to be bought."""
    seconds: float
    tasks: float
    """Expected to be started, and ended before the deadline and before `seconds`."""
    cost: float
    """Credits still to be charged."""


def columns(offers: Sequence[SiteOffer], deadline: float, confidence: float = CONFIDENCE) -> list[Column]:
    """All that are of any use until the deadline, in seconds from now."""
    found: list[Column] = []
    for site, each in enumerate(offers):
        tail = each.task.last_end(each.processors, confidence ** (1 / len(offers)))
        for group, held in [(-1, HeldSlots(each.fresh, each.wait)), *enumerate(each.held)]:
            if held.processors:
                found.extend(_of_group(each, site, group, held, deadline, tail))
    return [column for column in found if column.tasks > 0]


def _of_group(
    offer: SiteOffer, site: int, group: int, held: HeldSlots, deadline: float, tail: float
) -> Iterator[Column]:
    task, fresh = offer.task, group < 0
    startup = offer.wait + offer.startup if fresh else 0.0
    for end in _unit_ends(offer, held, deadline):
        tasks = task.completed(end - startup, fresh)
        yield Column(site, group, end, tasks, offer.cost(end - held.paid))
    # Until the deadline. A pilot leaves when no task is left for it, and its last one runs to its end.
    tasks = task.started(deadline - tail - startup, fresh)
    seconds = min(deadline, startup + tasks * task.mean)
    yield Column(site, group, seconds, tasks, offer.cost(seconds - held.paid))


def _unit_ends(offer: SiteOffer, held: HeldSlots, deadline: float) -> list[float]:
    """The last instants before the deadline at which another unit would begin, where that matters."""
    unit = offer.charging_unit
    if offer.divisible:
        return []
    most = math.ceil((deadline - held.paid) / unit)
    ends = [held.paid + units * unit for units in range(max(0, most - MOST_LENGTHS), most)]
    return [end for end in ends if 0 < end < deadline]
