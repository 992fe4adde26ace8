"""The allocation as a mixed-integer linear program over ways to hold a processor, solved by HiGHS (scipy)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.budget.provisioning.site_offers import HeldSlots, SiteOffer
from adaptor.extras import require_extra

MOST_LENGTHS = 8
"""Lengths of whole units that are considered for a processor besides the time until the deadline."""


CONFIDENCE = 0.6
"""With which all tasks that run at the last start have ended by the deadline: a little better than even."""


class Column(msgspec.Struct, frozen=True):
    """One processor of a site, held from now on for some time."""

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
    for site, offer in enumerate(offers):
        tail = offer.task.last_end(offer.processors, confidence ** (1 / len(offers)))
        for group, held in [(-1, HeldSlots(offer.fresh, offer.wait)), *enumerate(offer.held)]:
            if held.processors:
                found.extend(_of_group(offer, site, group, held, deadline, tail))
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


GAP = 1e-4  # relative, between the solution and the best that is possible
MARGIN = 2e-6
"""The solver keeps its rows, scaled to 1, within a millionth; a budget is to be kept for certain."""
NODES = 300  # of the search tree; the best solution by then counts
SECONDS = 2.0
"""Never reached by allocations of ten sites; answers that depend on the machine are the last resort."""
EQUAL = 1e-9  # relative: what differs by less is equal


def least_cost(columns: Sequence[Column], offers: Sequence[SiteOffer], tasks: float) -> list[float] | None:
    """How many processors to hold in each way so that the tasks are done at the least cost; None: no way.

    Ricciardi & Hwang, §3, choice 1: the least C_prod, in credits. Of equal costs that with fewer processors
    still to be bought.

    Processors are paid for as long as the columns say: those that are charged by the second do no more than
    the tasks, as a part of one is held for a part of the time; whole charging units are charged, whether
    there is work for them or not.
    """
    if capacity(columns, offers) < tasks:
        return None
    dearest = max((column.cost for column in columns), default=0.0) or 1.0
    costs = [column.cost / dearest + (1e-9 if column.group < 0 else 0.0) for column in columns]
    done = [column.tasks / tasks for column in columns]
    whole = [not offers[column.site].divisible for column in columns]
    return _hold(costs, columns, offers, [(done, 1.0, math.inf)], whole)


def most_tasks(
    columns: Sequence[Column], offers: Sequence[SiteOffer], budget: float, tasks: float
) -> list[float] | None:
    """How many processors to hold in each way so that at least the tasks are done within the budget.

    Ricciardi & Hwang, §3, choice 2: of all such ways the one with the greatest throughput.
    """
    if capacity(columns, offers) < tasks:
        return None
    scale = budget if budget > 0 else 1.0
    paid: Row = ([column.cost / scale for column in columns], -math.inf, budget / scale * (1 - MARGIN))
    done = [column.tasks / tasks for column in columns]
    whole = [not offers[column.site].divisible for column in columns]
    return _hold([-part for part in done], columns, offers, [paid, (done, 1.0, math.inf)], whole)


def capacity(columns: Sequence[Column], offers: Sequence[SiteOffer]) -> float:
    """Tasks that are done if every processor is held in the way that does the most."""
    best: dict[tuple[int, int], float] = defaultdict(float)
    for column in columns:
        best[column.site, column.group] = max(best[column.site, column.group], column.tasks)
    return sum(tasks * size(offers, site, group) for (site, group), tasks in best.items())


def relaxed_cost(columns: Sequence[Column], offers: Sequence[SiteOffer], tasks: float) -> float:
    """A lower bound of the cost of the tasks; infinite where they cannot be done.

    Whole numbers are dropped, and so is the rule that a processor is held in one way only: each group of
    processors then works at its least cost per task, as far as its most tasks go.
    """
    rates: dict[tuple[int, int], tuple[float, float]] = {}
    for column in columns:
        rate, most = rates.get((column.site, column.group), (math.inf, 0.0))
        rates[column.site, column.group] = min(rate, column.cost / column.tasks), max(most, column.tasks)
    total, left = 0.0, tasks
    for (site, group), (rate, most) in sorted(rates.items(), key=lambda item: item[1]):
        part = min(left, most * size(offers, site, group))
        total += part * rate
        left -= part
    return total if left <= EQUAL * tasks else math.inf


def size(offers: Sequence[SiteOffer], site: int, group: int) -> int:
    """Processors of a group of columns."""
    return offers[site].fresh if group < 0 else offers[site].held[group].processors


def _hold(
    objective: Sequence[float],
    columns: Sequence[Column],
    offers: Sequence[SiteOffer],
    rows: Sequence[Row],
    whole: Sequence[bool],
) -> list[float] | None:
    """Minimise, with each processor of a group held in one way at most, and whole ones where it says so.

    Where time is as good as charged by the second, a processor may be held for a part of the time; parts
    are no whole numbers.
    """
    groups = list(dict.fromkeys((column.site, column.group) for column in columns))
    sizes = [size(offers, site, group) for site, group in groups]
    of = [groups.index((column.site, column.group)) for column in columns]
    once: list[Row] = [
        ([float(at == group) for at in of], 0.0, float(most)) for group, most in enumerate(sizes)
    ]
    return minimise(objective, [*rows, *once], [sizes[group] for group in of], whole)


Row = tuple[list[float], float, float]  # a constraint: coefficients, lower and upper bound


def minimise(
    objective: Sequence[float], rows: Sequence[Row], most: Sequence[float], whole: Sequence[bool]
) -> list[float] | None:
    """Variables from 0 to `most`, whole numbers where it says so; None where no values keep all rows.

    Raises AdaptorError: scipy is not installed.
    """
    if not objective:
        return None
    require_extra("quotes", "scipy")
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp

    matrix, low, high = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    found = milp(
        np.array(objective, dtype=float),
        constraints=LinearConstraint(matrix, low, high),
        integrality=np.array(whole, dtype=int),
        bounds=Bounds(0.0, np.array(most, dtype=float)),
        options={"mip_rel_gap": GAP, "node_limit": NODES, "time_limit": SECONDS},
    )
    if found.x is None:
        return None
    return [
        float(round(x)) if integer else max(0.0, float(x)) for x, integer in zip(found.x, whole, strict=True)
    ]
