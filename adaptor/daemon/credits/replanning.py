"""Bags that run on slots chosen from a quote: other slots, where those chosen miss budget or deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.estimation.forecast import worth_telling
from adaptor.budget.estimation.task_time import TaskTime
from adaptor.budget.provisioning.replanning import Left, Replan, replan
from adaptor.budget.provisioning.site_offers import Held, SiteOffer
from adaptor.daemon.credits.chosen import ChosenSlots
from adaptor.daemon.credits.foresight import charged, pilots_of, sites_of, staying, tasks_of
from adaptor.daemon.credits.offering import running_for, task_time
from adaptor.daemon.credits.treasury import EXPLICIT
from adaptor.daemon.site_state import SiteState
from adaptor.errors import AdaptorError
from adaptor.model import TaskState
from adaptor.scheduling.bag import Bag


class _Course(msgspec.Struct, frozen=True):
    left: Left
    offers: list[SiteOffer]
    slots: dict[str, int]


async def keep_to_quotes(site: SiteState, now: float) -> None:
    """Look at each bag with chosen slots that may run here, now and then. Raises JournalError."""
    chosen = site.core.chosen
    for bag in list(site.core.broker.books.bags.values()):
        if not (bag.spec.slots and bag.spec.allows(site.name) and chosen.is_due(bag.id, now)):
            continue
        course = _course(site, bag, chosen, now)
        found = await asyncio.to_thread(_replan, course) if course is not None else None
        if found is not None:
            chosen.replace(bag.id, found.slots)
            site.explain("divided", f"bag {bag.id} is planned anew: {found.reason}")


def _replan(course: _Course) -> Replan | None:
    try:
        found = replan(course.left, course.offers, course.slots)
    except AdaptorError:  # for instance no processor in service, or no scipy: the next look is soon
        return None
    return found if isinstance(found, Replan) else None


def _course(site: SiteState, bag: Bag, chosen: ChosenSlots, now: float) -> _Course | None:
    """None where too little is known yet, or nothing limits the bag."""
    balance = site.core.treasury.ledger.budget_of(bag.id)
    if bag.spec.deadline is None or balance is None:
        return None
    if not worth_telling(bag.count(TaskState.DONE), tasks_of(bag)):
        return None
    elapsed = running_for(site.core, bag.id, now)
    sites = sites_of(site, bag)
    times = {each.name: task_time(each.core, bag, each.name, elapsed.get(each.name, ())) for each in sites}
    left = Left(
        tasks=bag.count(TaskState.WAITING) + _begun(elapsed, times),
        seconds=bag.spec.deadline - now,
        budget=in_credits(balance.budget.amount) - charged(site, bag, pilots_of(sites, bag), now),
    )
    offers = [_offer(each, bag, times[each.name], now) for each in sites]
    return _Course(left, offers, dict(chosen.of(bag)))


def _begun(elapsed: Mapping[str, Sequence[float]], times: Mapping[str, TaskTime]) -> float:
    """What is left of the running tasks, in whole ones."""
    return sum(
        times[site].remaining(seconds) / times[site].mean
        for site, of_site in elapsed.items()
        if site in times
        for seconds in of_site
    )


def _offer(site: SiteState, bag: Bag, task: TaskTime, now: float) -> SiteOffer:
    """All that may be held at a site, and what is held or asked for already."""
    tariff = site.core.treasury.ledger.tariff(site.name)
    held = tuple(
        Held(slots, _paid(tariff, now - pilot.started) if pilot.started is not None else 0.0)
        for pilot, slots in staying(site, bag)
        if slots
    )
    limits = site.limits
    allowed = limits.max_pending_requests * limits.max_proc
    most = min(allowed, site.seen.processors if site.seen else allowed) // bag.spec.cpus
    return SiteOffer(
        name=site.name,
        price=in_credits(tariff.price(EXPLICIT)) * bag.spec.cpus,
        processors=max(most, sum(each.processors for each in held)),
        task=task,
        charging_unit=float(tariff.charging_unit),
        startup=site.pad,
        held=held,
    )


def _paid(tariff: Tariff, ran: float) -> float:
    """Seconds from now that are charged already, of a pilot that has run for so long."""
    return max(0.0, tariff.charged_seconds(max(0.0, ran)) - max(0.0, ran))
