"""Checks the slots of a bag's quote against budget and deadline (BaTS, slide "Re-evaluate")."""

from __future__ import annotations

import math

import msgspec

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.provisioning.replanning import Left, Replan, replan
from adaptor.budget.provisioning.site_offers import HeldSlots, SiteOffer
from adaptor.decisions.actions import Explain, Wake
from adaptor.decisions.forecasting.known_bag import charged
from adaptor.decisions.memory import Memory, MemoryDraft
from adaptor.decisions.offers import explicit_offer, task_time
from adaptor.decisions.requests import most_slots, sites_of, staying, tariff_for
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.errors import AdaptorError
from adaptor.forecast.forecast import worth_telling
from adaptor.runtimes.task_time import TaskTime
from adaptor.scheduling.facts import BagFacts

INTERVAL = 10.0  # seconds between two checks of the slots of a bag


def keep_to_quotes(snapshot: Snapshot, draft: MemoryDraft) -> list[Explain | Wake]:
    """Check each bag with chosen slots that may run here, if a check is due; a new plan wakes its sites."""
    told: list[Explain | Wake] = []
    for bag in snapshot.bags.values():
        memory = draft.memory
        if not (bag.spec.slots and bag.spec.allows(snapshot.site) and is_due(memory, bag.id, snapshot.now)):
            continue
        draft.keep(looked={**memory.looked, bag.id: snapshot.now})
        question = _question(snapshot, bag)
        if question is None:
            continue
        try:
            found = replan(*question, memory.slots_by_quote(bag))
        except AdaptorError:  # no processor in service, or no numpy: the next look is soon
            continue
        if isinstance(found, Replan):
            draft.keep(slots={**memory.slots, bag.id: found.slots})
            told.append(Explain("divided", f"planned again: {found.reason}", bags=(bag.id,)))
            told += [Wake(site.name) for site in sites_of(bag, snapshot.sites) if site.name != snapshot.site]
    return told


def is_due(memory: Memory, bag: int, now: float) -> bool:
    """Whether it is time for another look at the slots of a bag."""
    return not 0 <= now - memory.looked.get(bag, -math.inf) < INTERVAL


def _question(snapshot: Snapshot, bag: BagFacts) -> tuple[Left, list[SiteOffer]] | None:
    """The remaining work and the offers; None: too little is known, or the bag has no limits."""
    now, balance = snapshot.now, snapshot.ledger.budget_of(bag.id)
    if bag.spec.deadline is None or balance is None or not worth_telling(bag.finished, bag.tasks):
        return None
    sites = sites_of(bag, snapshot.sites)
    times = {site.name: task_time(bag, site.name, now) for site in sites}
    left = Left(
        tasks=bag.waiting
        + sum(  # of the running ones what is left, in whole tasks
            time.remaining(seconds) / time.mean
            for site, time in times.items()
            for seconds in bag.elapsed(site, now)
        ),
        seconds=bag.spec.deadline - now,
        budget=in_credits(balance.budget.amount) - charged(bag, sites, snapshot.ledger, now),
    )
    return left, [_offer(snapshot, site, bag, times[site.name]) for site in sites]


def _offer(snapshot: Snapshot, site: SiteFacts, bag: BagFacts, task: TaskTime) -> SiteOffer:
    """All that may be held at a site, and what is held or asked for already."""
    tariff = tariff_for(snapshot.ledger, site, bag.spec.task)
    held = []
    for pilot, slots in staying(site, bag):
        ran = 0.0 if pilot.started is None else max(0.0, snapshot.now - pilot.started)
        paid = max(0.0, tariff.charged_seconds(ran) - ran) if pilot.started is not None else 0.0
        held += [HeldSlots(slots, paid)] if slots else []
    most = max(most_slots(site, bag.spec.task), sum(part.processors for part in held))
    offer = explicit_offer(snapshot.ledger, site, bag.spec.task, task)
    return msgspec.structs.replace(offer, processors=most, held=tuple(held))
