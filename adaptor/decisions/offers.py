"""Offers of the sites to a bag now, as input of the allocation (Ricciardi & Hwang 2011)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.statements import Statements
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.steering import Aim, Progress, can_wait
from adaptor.budget.provisioning.task_shares import DAEMON
from adaptor.budget.provisioning.task_time import TaskTime
from adaptor.crafting.coverage import joint_coverage
from adaptor.crafting.fits import width
from adaptor.crafting.multisite.capacity import capacity_of
from adaptor.crafting.places import Place
from adaptor.crafting.situation import Demand, TaskGroup
from adaptor.decisions.donated_offers import donated_places
from adaptor.decisions.memory import ShareQuestion
from adaptor.decisions.other_sites import lost
from adaptor.decisions.requests import least_cost, left_at, most_slots, tariff_for
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.forecast.bag_facts import BagFacts
from adaptor.resources import TaskSize

_OPENINGS = 3  # distinct instants at which processors of a site become free, at most
_SPREAD = 0.5  # deviation of runtimes in parts of their mean, before enough have finished to tell
CERTAIN = 0.8
"""The part of what is left of a budget up to which the expected cost of a bag may be taken for certain."""


def compared(snapshot: Snapshot) -> list[BagFacts | None]:
    """The bag of each group whose tasks are divided among places by cost and time; None: they are not."""
    return [_own_bag(snapshot, group) for group in snapshot.groups]


def questions_of(
    snapshot: Snapshot, places: Mapping[str, Sequence[Place]], bags: Sequence[BagFacts | None]
) -> list[ShareQuestion]:
    """Questions for each bag that has pilots of its own, a choice of places, and uncovered tasks.

    The places are sites, and their donated nodes, in addition to their formal requests.

    Args:
        bags: those that are `compared`.
    """
    if not any(bags):
        return []
    expected = {
        name: _as_if_it_answered(there, snapshot.sites[name], snapshot.now) for name, there in places.items()
    }
    covered = joint_coverage({name: there[0].site for name, there in expected.items()}, snapshot.groups)
    found = [
        _question(snapshot, expected, bag, group, uncovered)
        for bag, group, uncovered in zip(bags, snapshot.groups, covered.uncovered, strict=True)
        if bag is not None and uncovered
    ]
    return [question for question in found if question is not None]


def task_time(bag: BagFacts, site: str, now: float) -> TaskTime:
    """Runtime of a task by those that finished at a site and those that run there.

    Before any has finished: as expected by the user, else by the tasks at all sites,
    else as in earlier bags of its kind, else as the site's initial_tr says.
    """
    there, said = bag.known_there(site), bag.known_at(site).hint
    guess = there.mean or said or bag.learned[site].estimate
    # The first tasks to finish are short ones: without those that run, a site not used yet would look fast.
    known = there if there.finished or bag.known.told else bag.known
    return TaskTime(guess, _SPREAD * guess).learned(known, now)


def _own_bag(snapshot: Snapshot, group: TaskGroup) -> BagFacts | None:
    sites = [snapshot.sites[name] for name in group.at if name in snapshot.sites]
    if len(group.at) < 2 and all(site.donation is None for site in sites):
        return None
    bag = snapshot.payer(next(iter(group.at.values())).bag)
    if bag is None or bag.spec.paced or not _pays_anywhere(snapshot, bag, sites):
        return bag
    return None  # it wants to be fast, and nothing else: it gets what one without a wish gets


def _pays_anywhere(snapshot: Snapshot, bag: BagFacts, sites: Sequence[SiteFacts]) -> bool:
    """Whether the budget of a bag holds its unfinished tasks wherever they run, so that it binds nothing.

    What is reserved counts as left: it is for such tasks.
    """
    balance = snapshot.ledger.budget_of(bag.id)
    if balance is None:
        return True
    offers = [
        explicit_offer(snapshot.ledger, site, bag.spec.task, task_time(bag, site.name, snapshot.now))
        for site in sites
    ]
    tasks = bag.not_started + bag.known.running
    slots = min(tasks, sum(most_slots(site, bag.spec.task) for site in sites))
    starts = (slots * offer.cost(max(offer.startup, offer.charging_unit)) for offer in offers)
    work = (tasks * offer.cost_per_task for offer in offers)
    dearest = max(map(sum, zip(starts, work, strict=True)), default=0.0)
    return dearest <= CERTAIN * in_credits(max(0, balance.left + balance.reserved))


def _as_if_it_answered(places: Sequence[Place], site: SiteFacts, now: float) -> Sequence[Place]:
    """Count on a scheduler that is silent for a moment, rather than pay another site in its place."""
    if site.silent(now) and not lost(site, now):
        seen = msgspec.structs.replace(places[0].site, closed="")
        return [msgspec.structs.replace(place, site=seen) for place in places]
    return places


def _question(
    snapshot: Snapshot,
    places: Mapping[str, Sequence[Place]],
    bag: BagFacts,
    group: TaskGroup,
    uncovered: int,
) -> ShareQuestion | None:
    """The question of a bag; None: it has no choice of places, or none can take a task of it."""
    at = {name: demand for name, demand in group.at.items() if name in snapshot.sites}
    times = {name: task_time(bag, name, snapshot.now) for name in at}
    formal = {
        name: found
        for name, demand in at.items()
        if (found := _offers(snapshot, places[name], bag, snapshot.sites[name], demand, times[name]))
    }
    aim, progress = aim_of(snapshot.ledger, bag), _progress(snapshot, bag, uncovered)
    promised = [offer for of_site in formal.values() for offer in of_site]
    later = can_wait(aim, progress, promised, DAEMON.certainty)
    donated = donated_places(snapshot, bag, at, times, later=later)
    if not (formal or donated) or (len(group.at) < 2 and not donated):
        return None
    return ShareQuestion(bag=bag.id, aim=aim, progress=progress, offers=formal | donated)


def aim_of(ledger: Statements, bag: BagFacts) -> Aim:
    """The aim of a bag's user. A budget alone is there to be used; a deadline alone is to be cheap."""
    balance = ledger.budget_of(bag.id)
    return Aim(
        deadline=bag.spec.deadline,
        budget=None if balance is None else in_credits(balance.budget.amount),
        prefer=bag.spec.prefer or ("fast" if bag.spec.deadline is None else "cheap"),
    )


def _progress(snapshot: Snapshot, bag: BagFacts, uncovered: int) -> Progress:
    """Formal requests in the system count with all that is paid for, donated nodes with what they have run:
    their time to come is offered."""
    ledger = snapshot.ledger
    committed = 0
    for pilot in ledger.open_pilots_of(bag.id):
        seconds: float = min(pilot.tr, pilot.lasts)
        if pilot.kind == "donated":
            seconds = min(seconds, max(0.0, snapshot.now - pilot.at))
        committed += pilot.charge(seconds)
    return Progress(
        now=snapshot.now,
        waiting=uncovered,
        spent=in_credits(ledger.of_bag(bag.id).used),
        committed=in_credits(committed),
    )


def _offers(
    snapshot: Snapshot,
    places: Sequence[Place],
    bag: BagFacts,
    site: SiteFacts,
    demand: Demand,
    task: TaskTime,
) -> tuple[SiteOffer, ...]:
    """Slots that new requests could buy at a site, within its limits and next to its queue."""
    now = snapshot.now
    # Whether the budgets hold a request: the site's, and the bag's unless a pilot may give credits back.
    credits = left_at(snapshot.ledger, site.name, now)
    balance = snapshot.ledger.budget_of(bag.id)
    if balance is not None and not balance.reserved:
        credits = min(credits, balance.left)
    if least_cost(snapshot.ledger, site, demand) > credits:
        return ()
    left = places[0].site.requests_left
    openings = capacity_of(places, demand, demand.waiting, left, now).openings
    whole = explicit_offer(snapshot.ledger, site, demand.task, task)
    return tuple(
        msgspec.structs.replace(
            whole, name=f"{site.name} {number}", processors=slots, wait=max(0.0, start - now)
        )
        for number, (start, slots) in enumerate(_merged(openings), 1)
    )


def explicit_offer(ledger: Statements, site: SiteFacts, size: TaskSize, task: TaskTime) -> SiteOffer:
    """Cost of slots for such tasks in formal requests of a site; the number of processors is still 0."""
    tariff = tariff_for(ledger, site, size)
    return SiteOffer(
        name=site.name,
        price=in_credits(tariff.price("explicit")) * width(site.queue, size),
        processors=0,
        task=task,
        charging_unit=float(tariff.charging_unit),
        startup=site.rules.pad,
        spare=site.rules.pad + tariff.grace,
    )


def _merged(openings: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Openings of the same instant merged; all late ones count at the last instant."""
    slots: dict[float, int] = {}
    for start, more in openings:
        slots[start] = slots.get(start, 0) + more
    starts = sorted(slots)
    first, late = starts[: _OPENINGS - 1], starts[_OPENINGS - 1 :]
    found = [(start, slots[start]) for start in first]
    return [*found, (late[-1], sum(slots[start] for start in late))] if late else found
