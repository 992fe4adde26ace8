"""Splitting the tasks of a bag among sites by cost and time: what each site is to have, and why. Pure.

Ricciardi & Hwang (2011), §3, as `adaptor.budget.provisioning.steering` solves it for what remains.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.accounting.cost_shares import split
from adaptor.budget.errors import BudgetError, InfeasibleError
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.steering import Aim, Progress, Step, steer
from adaptor.units import format_duration

INTERVAL = 3.0  # δt: seconds after which what was learned meanwhile is worth another answer (§3)


class Caution(msgspec.Struct, frozen=True, kw_only=True):
    """Reserves of a division of tasks, in time and credits."""

    name: str
    certainty: float
    """The probability with which the tasks are to be done by the deadline."""
    reserve: float
    """Share of the rest of a budget: requests waste some of their cost, at their ends and in idle slots."""


DAEMON = Caution(name="daemon", certainty=0.9, reserve=0.1)  # the caution for every bag of a user


class SiteShare(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a bag for one site."""

    tasks: int
    slots: int
    """Processor-slots to be bought there."""
    cost: float
    """Cost in credits."""


class CostSplit(msgspec.Struct, frozen=True, kw_only=True):
    """Division of the waiting tasks of a bag among sites."""

    by_site: dict[str, SiteShare]
    """Shares by site; sites that are left out get none. Their tasks sum up to all that are to be parted."""
    seconds: float
    """Seconds from now until all of them are expected to be done; may be `math.inf`."""
    urgent: bool
    """Whether no share keeps the deadline: then all of each is requested at once."""
    reason: str

    def tasks(self, site: str) -> int:
        share = self.by_site.get(site)
        return 0 if share is None else share.tasks

    def slots(self, site: str) -> int:
        share = self.by_site.get(site)
        return 0 if share is None else share.slots

    def slots_at_less(self, site: str) -> int:
        """Slots to be bought at sites where a task costs less."""
        here = self.by_site.get(site)
        if here is None:
            return 0
        others = self.by_site.values()
        return sum(share.slots for share in others if share.cost * here.tasks < here.cost * share.tasks)

    def part(self, site: str) -> float:
        """The part of all credits that its share costs; 1 where no share costs anything."""
        total = sum(share.cost for share in self.by_site.values())
        share = self.by_site.get(site)
        if not total:
            return 1.0
        return 0.0 if share is None else share.cost / total


def split_tasks(
    aim: Aim,
    progress: Progress,
    offers: Mapping[str, Sequence[SiteOffer]],
    caution: Caution = DAEMON,
) -> CostSplit:
    """Part the waiting tasks of a bag; at least one is waiting, and some site offers a processor.

    `offers` are by site: one for each instant at which processors become free there. Where what is left
    of the budget does not hold the tasks, all of them go where they cost least, so that it goes as far
    as it can.

    Raises:
        BudgetError: a number that cannot be.
    """
    if not any(offer.processors for of_site in offers.values() for offer in of_site):
        raise BudgetError("no site has a processor for us")
    places = {offer.name: site for site, of_site in offers.items() for offer in of_site}
    try:
        every = [offer for of_site in offers.values() for offer in of_site]
        step = _with_a_reserve(aim, progress, every, caution)
    except InfeasibleError as error:
        return _where_they_cost_least(progress.waiting, offers, progress.left_of(aim.budget), str(error))
    by_site = _by_site(progress.waiting, step, places)
    return CostSplit(
        by_site=by_site,
        seconds=step.allocation.seconds,
        urgent=aim.deadline is not None and not step.kept,
        reason=f"{_goal(aim, progress, step)}: {_listed(by_site)}",
    )


def _with_a_reserve(aim: Aim, progress: Progress, offers: Sequence[SiteOffer], caution: Caution) -> Step:
    """The step of `steer` with a part of the budget kept back, unless the tasks or the deadline need all."""
    if aim.budget is not None:
        kept_back = progress.committed + caution.reserve * max(0.0, progress.left_of(aim.budget))
        with contextlib.suppress(InfeasibleError):
            careful = msgspec.structs.replace(progress, committed=kept_back)
            if (step := steer(aim, careful, offers, caution.certainty)).kept:
                return step
    return steer(aim, progress, offers, caution.certainty)


def _by_site(tasks: int, step: Step, places: Mapping[str, str]) -> dict[str, SiteShare]:
    weights: dict[str, float] = {}
    slots: dict[str, int] = {}
    costs: dict[str, float] = {}
    for holding in step.allocation.holdings:
        site = places[holding.site]
        weights[site] = weights.get(site, 0.0) + holding.tasks
        slots[site] = slots.get(site, 0) + holding.processors
        costs[site] = costs.get(site, 0.0) + holding.cost
    parts = split(tasks, list(weights.values()))
    return {
        site: SiteShare(tasks=part, slots=slots[site], cost=costs[site])
        for site, part in zip(weights, parts, strict=True)
        if part
    }


def _where_they_cost_least(
    tasks: int, offers: Mapping[str, Sequence[SiteOffer]], left: float, why: str
) -> CostSplit:
    known = [(site, offer) for site, of_site in offers.items() for offer in of_site if offer.processors]
    within = [(site, each) for site, each in known if each.smallest <= left] or known
    least = min(each.cost_per_task for _, each in within)
    best = [(site, each) for site, each in within if each.cost_per_task <= least * (1 + 1e-9)]
    speeds = [each.processors / each.task.mean for _, each in best]
    by_site: dict[str, SiteShare] = {}
    for (site, each), part in zip(best, split(tasks, speeds), strict=True):
        before = by_site.get(site, SiteShare(tasks=0, slots=0, cost=0.0))
        by_site[site] = SiteShare(
            tasks=before.tasks + part,
            slots=before.slots + each.processors,
            cost=before.cost + part * each.cost_per_task,
        )
    by_site = {site: share for site, share in by_site.items() if share.tasks}
    reason = f"{why}, so what is left goes where a task costs least: {_listed(by_site)}"
    return CostSplit(by_site=by_site, seconds=math.inf, urgent=False, reason=reason)


def _goal(aim: Aim, progress: Progress, step: Step) -> str:
    span = format_duration(step.allocation.seconds)
    if not step.kept:
        late = format_duration(progress.now + step.allocation.seconds - (aim.deadline or progress.now))
        return f"as soon as can be, in {span}, which is {late} late"
    if aim.prefer == "fast":
        return f"as soon as can be{' for the budget' if aim.budget is not None else ''}, in {span}"
    return f"cheapest within {span}"


def _listed(by_site: Mapping[str, SiteShare]) -> str:
    """`120 tasks at a (0.5 credits each), 30 at b (0.9 each)`."""
    places = list[str]()
    for site, share in by_site.items():
        noun, unit = ("", "") if places else (" task" if share.tasks == 1 else " tasks", " credits")
        places.append(f"{share.tasks}{noun} at {site} ({share.cost / share.tasks:,.3g}{unit} each)")
    return ", ".join(places)
