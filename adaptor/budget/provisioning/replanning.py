"""Whether the slots chosen from a quote will do, by what was learned since, and which do instead. Pure.

Oprescu, Kielmann, Leahu, "Task Farming in Contrail", slides "Progress Monitoring" and "Re-evaluate the
machine configuration".
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from adaptor.budget.errors import BudgetError, InfeasibleError
from adaptor.budget.provisioning.knapsack import Item, frontier, relaxed_value
from adaptor.budget.provisioning.site_offers import Configuration, SiteOffer
from adaptor.units import format_duration

MOST_ENDS = 400  # ends of charging units that are tried


class _Group(msgspec.Struct, frozen=True):
    """Processors of one site: held until the configuration's end, or left when their paid time is over."""

    offer: SiteOffer
    size: int
    paid: float
    """Seconds that cost nothing more."""
    lost: float
    """Seconds of no work, at the start-up and at the end of the bag."""

    def cost(self, horizon: float) -> float:
        """To hold one processor until then."""
        return self.offer.cost(horizon - self.paid)

    def free(self, horizon: float) -> float:
        """Tasks that one processor does before then in the time that is paid already."""
        return max(0.0, min(self.paid, horizon) - self.lost) / self.offer.task.mean

    def more(self, horizon: float) -> float:
        """Tasks that one processor does besides those, if it is held until then."""
        return max(0.0, horizon - self.lost) / self.offer.task.mean - self.free(horizon)


def reevaluate(tasks: float, offers: Sequence[SiteOffer], budget: float) -> Configuration:
    """The least time for what remains, within what is left of the budget.

    `tasks` may count running ones by what is left of them. Paid time is used for nothing; the bounded
    knapsack decides which slots to keep longer and which to request.

    Raises:
        InfeasibleError: the budget does not hold the rest; the user has to be asked.
        BudgetError: a number that cannot be.
    """
    if math.isnan(budget) or budget < 0:
        raise BudgetError(f"what is left of the budget must be 0 credits or more, not {budget:g}")
    groups = _groups(offers)
    if not groups:
        raise BudgetError("no site has a processor for us")
    if tasks <= 0:
        return Configuration(processors={}, seconds=0.0, cost=0.0)
    if _least_cost(tasks, groups) > budget * (1 + 1e-9):
        raise _too_dear(tasks, groups, budget)
    for horizon in _ends(tasks, groups):
        plan = _by(horizon, tasks, groups, budget)
        if plan is not None:
            return plan
    raise _too_dear(tasks, groups, budget)


def _groups(offers: Sequence[SiteOffer]) -> list[_Group]:
    groups = [_Group(offer, offer.fresh, offer.wait, offer.lost) for offer in offers]
    groups += [
        _Group(offer, held.processors, held.paid, offer.lost - offer.startup - offer.wait)
        for offer in offers
        for held in offer.held
    ]
    return [group for group in groups if group.size]


def _by(horizon: float, tasks: float, groups: Sequence[_Group], budget: float) -> Configuration | None:
    items = [Item(cost=group.cost(horizon), value=group.more(horizon), most=group.size) for group in groups]
    needed = (tasks - sum(group.free(horizon) * group.size for group in groups)) * (1 - 1e-9)
    if relaxed_value(items, budget) < needed:
        return None
    found = frontier(items)
    row = found.best(budget)
    if row is None or found.values[row] < needed:
        return None
    # Of all that do it, the cheapest would be slower; the budget is there to be used.
    counts = [int(count) for count in found.counts[row]]
    processors: dict[str, int] = defaultdict(int)
    for group, count in zip(groups, counts, strict=True):
        if count:
            processors[group.offer.name] += count
    seconds = _time(tasks, groups, counts, horizon)
    cost = sum(count * group.cost(seconds) for group, count in zip(groups, counts, strict=True))
    return Configuration(processors=dict(processors), seconds=seconds, cost=cost)


def _time(tasks: float, groups: Sequence[_Group], counts: Sequence[int], horizon: float) -> float:
    """When these processors have done the tasks, by bisection."""
    low, high = 0.0, horizon
    while high - low > 1e-4 * horizon:
        middle = (low + high) / 2
        done = sum(
            group.size * group.free(middle) + count * group.more(middle)
            for group, count in zip(groups, counts, strict=True)
        )
        if done < tasks:
            low = middle
        else:
            high = middle
    return high


def _ends(tasks: float, groups: Sequence[_Group]) -> Iterator[float]:
    """The instants at which some processor would begin another unit, from the first possible end on."""
    speed = sum(group.size / group.offer.task.mean for group in groups)
    first = tasks / speed
    steps = sorted({(group.paid, group.offer.charging_unit) for group in groups})
    last = tasks * max(group.offer.task.mean for group in groups) + sum(max(step) for step in steps)
    last += max(group.lost for group in groups)
    horizon, tried = first, 0
    while horizon < last:
        horizon = min(_next_end(horizon, paid, unit) for paid, unit in steps)
        # Units that are short compared with the bag need not all be tried, nor those long after the first
        # end.
        horizon = max(horizon, first * (1 + 0.002 * tried))
        yield horizon
        tried += 1
        if tried > MOST_ENDS:
            first *= 1.1


def _next_end(after: float, paid: float, unit: float) -> float:
    end = paid + (math.floor((after - paid) / unit + 1e-6) + 1) * unit
    return end if after >= paid else min(end, paid)


def _least_cost(tasks: float, groups: Sequence[_Group]) -> float:
    """What is not done in paid time costs at least as much as on the cheapest site."""
    free = sum(group.size * group.free(math.inf) for group in groups)
    return max(0.0, tasks - free) * min(group.offer.cost_per_task for group in groups)


def _too_dear(tasks: float, groups: Sequence[_Group], budget: float) -> InfeasibleError:
    needed = max(_least_cost(tasks, groups), min(group.offer.smallest for group in groups))
    return InfeasibleError(
        f"{tasks:,.0f} tasks need {needed:,.6g} credits at the least, and {budget:,.6g} are left",
        needed_seconds=None,
        needed_credits=needed,
    )


def expected_seconds(tasks: float, offers: Sequence[SiteOffer], processors: dict[str, int]) -> float:
    """From now until the tasks are done, if these processors of each site go on working."""
    at_work = [(processors.get(offer.name, 0), offer) for offer in offers]
    speed = sum(count / each.task.mean for count, each in at_work)
    lost = sum(count * (each.lost - each.startup - each.wait) / each.task.mean for count, each in at_work)
    return (tasks + lost) / speed if speed else math.inf


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    """By how much the chosen slots may miss what was chosen, relative, before others are looked for."""

    name: str
    time: float
    budget: float
    gain: float
    """Other slots are taken for the sake of time only if they are sooner by this share."""


DAEMON = Tolerance(name="daemon", time=0.05, budget=0.05, gain=0.05)
"""What every bag that was chosen from a quote meets."""


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What is left to be done, and to do it with."""

    tasks: float
    """Running ones count by what is left of them."""
    seconds: float
    """Until the deadline."""
    budget: float
    """Credits."""


class Replan(msgspec.Struct, frozen=True):
    """Other slots than those that were chosen."""

    slots: dict[str, int]
    """By site."""
    seconds: float
    """From now until the rest is expected to be done on them."""
    reason: str


class NoSlots(msgspec.Struct, frozen=True):
    """Budget or deadline will be missed, and no slots do the rest for what is left of the budget."""

    needed: float | None
    """Credits that would do."""


def replan(
    left: Left, offers: Sequence[SiteOffer], slots: Mapping[str, int], tolerance: Tolerance = DAEMON
) -> Replan | NoSlots | None:
    """The slots that do the rest soonest for what is left; None: the chosen ones are kept.

    `offers` say what is held, and for how long it is paid already: that counts for nothing.

    Raises:
        BudgetError: a number that cannot be.
    """
    seconds = expected_seconds(left.tasks, offers, dict(slots))
    cost = _cost(offers, slots, seconds)
    late = seconds > max(0.0, left.seconds) * (1 + tolerance.time)
    too_dear = cost > max(0.0, left.budget) * (1 + tolerance.budget)
    if left.tasks <= 0 or not (late or too_dear):
        return None
    try:
        plan = reevaluate(left.tasks, offers, max(0.0, left.budget))
    except InfeasibleError as error:
        return NoSlots(error.needed_credits)
    found = plan.processors
    better = too_dear or plan.seconds < seconds * (1 - tolerance.gain)
    if not better or found == {site: count for site, count in slots.items() if count}:
        return None
    return Replan(found, plan.seconds, _reason(left, seconds, cost, plan))


def _cost(offers: Sequence[SiteOffer], slots: Mapping[str, int], seconds: float) -> float:
    """Credits still to be charged for these slots; those that are held come first, the longest paid one."""
    if math.isinf(seconds):
        return math.inf
    total = 0.0
    for offer in offers:
        wanted = slots.get(offer.name, 0)
        for held in sorted(offer.held, key=lambda held: -held.paid):
            kept = min(wanted, held.processors)
            total += kept * offer.cost(seconds - held.paid)
            wanted -= kept
        total += wanted * offer.cost(seconds)
    return total


def _reason(left: Left, seconds: float, cost: float, plan: Configuration) -> str:
    places = ", ".join(f"{count} at {site}" for site, count in plan.processors.items())
    chosen = f"take {format_duration(seconds)} and {cost:,.4g} credits more"
    return (
        f"the chosen slots would {chosen if math.isfinite(seconds) else 'never do it'}, and "
        f"{format_duration(max(0.0, left.seconds))} and {max(0.0, left.budget):,.4g} credits are left: "
        f"{places} take {format_duration(plan.seconds)} and {plan.cost:,.4g}"
    )
