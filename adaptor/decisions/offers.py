"""What the sites offer for a bag now, as input of the allocation (Ricciardi & Hwang 2011)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.statements import Statements
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.steering import Aim, Preference, Progress
from adaptor.crafting.coverage import joint_coverage
from adaptor.crafting.fits import width
from adaptor.crafting.multisite.site_status import NO_ANSWER, SiteStatus
from adaptor.crafting.situation import Demand, TaskGroup
from adaptor.decisions.memory import Question, donated_nodes
from adaptor.decisions.requests import known_shortest, shape_of, slots_there, smallest, tariff_for
from adaptor.decisions.snapshot import DonationFacts, SiteFacts, Snapshot
from adaptor.donation.deciding import decide
from adaptor.donation.fitting import slots_on
from adaptor.donation.situation import DonationDemand, LeaveNodes, NodeView, UseNodes
from adaptor.resources import TaskSize
from adaptor.runtimes.sums import RuntimeSums
from adaptor.runtimes.task_time import TaskTime, learned_time
from adaptor.scheduling.facts import BagFacts


def donated_offer(
    ledger: Statements, site: SiteFacts, bag: BagFacts, demand: Demand, task: TaskTime, now: float
) -> SiteOffer | None:
    """None: donated time is not cheaper there, or the bag may not run on donated nodes, or gets none now.

    A task that is aborted because a local job takes its node starts again from scratch. So it takes its
    mean over the probability that the node stays idle for so long, at most.
    """
    donation = site.donation
    tariff = tariff_for(ledger, site, demand.task)
    cheaper = tariff.price("donated") < tariff.price("explicit")
    if donation is None or not cheaper or bag.spec.allocation != "mixed" or bag.spec.slots:
        return None
    wanted = _wanted(bag, site, demand)
    nodes = _nodes(site, donation, bag, wanted, now)
    slots = sum(slots_on(node, node.processors, wanted.task) for node in nodes)
    if not slots:
        return None
    finishes = max(donation.rules.last_fit, _mean_survival(nodes, donation, task.mean, now))
    return SiteOffer(
        name=donated_nodes(site.name),
        price=in_credits(tariff.price("donated")) * bag.spec.cpus,
        processors=slots,
        task=TaskTime(task.mean / finishes, task.deviation / finishes),
        charging_unit=float(tariff.charging_unit),
    )


def _wanted(bag: BagFacts, site: SiteFacts, demand: Demand) -> DonationDemand:
    return DonationDemand(
        waiting=demand.waiting,
        task=demand.task,
        needs=known_shortest(site, bag, demand),
    )


def _nodes(
    site: SiteFacts, donation: DonationFacts, bag: BagFacts, wanted: DonationDemand, now: float
) -> list[NodeView]:
    """Those that the bag keeps, and those that it would be given if it were alone."""
    by_name = {node.name: node for node in donation.nodes or ()}
    names = {pilot.node for pilot in site.donated if pilot.bag == bag.id and not pilot.leaving}
    for decision in decide(donation.state(now, [wanted]), donation.hazard):
        match decision:
            case UseNodes(nodes=nodes):
                names.update(nodes)
            case LeaveNodes(nodes=nodes):
                names.difference_update(nodes)
            case _:
                pass
    return [by_name[name] for name in sorted(names) if name in by_name]


def _mean_survival(nodes: list[NodeView], donation: DonationFacts, seconds: float, now: float) -> float:
    return sum(donation.hazard.survival(now - node.since, seconds) for node in nodes) / len(nodes)


_OPENINGS = 3
"""Distinct instants at which processors of a site become free, at most."""
_SPREAD = 0.5
"""Deviation of runtimes in parts of their mean, before enough have finished to tell."""
_SHORTEST = 1e-3
"""Least mean runtime in seconds, should a clock have been set back."""
_RUNNING = 200
"""Running tasks of a site that count, at most; evenly spaced among all."""


def questions_of(snapshot: Snapshot, statuses: Mapping[str, SiteStatus]) -> list[Question]:
    """For each bag that has pilots of its own, a choice of places, and uncovered tasks.

    The places are sites, and their donated nodes beside their formal requests.
    """
    bags = [_own_bag(snapshot, group) for group in snapshot.groups]
    if not any(bags):
        return []
    expected = {name: _as_if_it_answered(status) for name, status in statuses.items()}
    covered = joint_coverage({name: each.counted_view for name, each in expected.items()}, snapshot.groups)
    found = [
        _question(snapshot, expected, bag, group, uncovered)
        for bag, group, uncovered in zip(bags, snapshot.groups, covered.uncovered, strict=True)
        if bag is not None and uncovered
    ]
    return [question for question in found if question is not None]


def task_time(bag: BagFacts, site: str, now: float) -> TaskTime:
    """By the tasks that finished at a site and those that run there.

    Before any: as sampled for a quote or expected by the user, else as at the other sites, else as in
    earlier bags of its kind, else as the site's initial_tr says.
    """
    here = bag.learned[site]
    earlier = bag.earlier[site].mean if site in bag.earlier else None
    guess = here.mean or bag.spec.expected_at(site) or _elsewhere(bag) or earlier or here.estimate
    known, elapsed = here.learned, bag.elapsed(site, now)
    total = max(known.total, _SHORTEST * known.finished)
    seen = RuntimeSums(finished=known.finished, total=total, squares=max(known.squares, _SHORTEST * total))
    running = elapsed[:: max(1, -(-len(elapsed) // _RUNNING))]
    return learned_time(TaskTime(guess, _SPREAD * guess), 0, seen, running)


def _elsewhere(bag: BagFacts) -> float | None:
    """The mean runtime of the tasks that have finished, wherever they ran."""
    known = [there.learned for there in bag.learned.values()]
    finished = sum(learned.finished for learned in known)
    return sum(learned.total for learned in known) / finished if finished else None


def _own_bag(snapshot: Snapshot, group: TaskGroup) -> BagFacts | None:
    sites = [snapshot.sites[name] for name in group.at if name in snapshot.sites]
    if len(group.at) < 2 and all(site.donation is None for site in sites):
        return None
    bag = next(iter(group.at.values())).bag
    return None if bag is None else snapshot.bags.get(bag)


def _as_if_it_answered(status: SiteStatus) -> SiteStatus:
    """Count on a scheduler that is silent for a moment, rather than pay another site in its place."""
    if status.closed == NO_ANSWER and not status.lost:
        return msgspec.structs.replace(status, closed="")
    return status


def _question(
    snapshot: Snapshot, statuses: Mapping[str, SiteStatus], bag: BagFacts, group: TaskGroup, uncovered: int
) -> Question | None:
    """None: there is no choice of places, or none that can take a task of it."""
    at = {name: demand for name, demand in group.at.items() if name in snapshot.sites}
    times = {name: task_time(bag, name, snapshot.now) for name in at}
    donated = [
        donated_offer(snapshot.ledger, snapshot.sites[name], bag, demand, times[name], snapshot.now)
        for name, demand in at.items()
    ]
    offers = {
        name: found
        for name, demand in at.items()
        if (found := _offers(snapshot, statuses[name], bag, snapshot.sites[name], demand, times[name]))
    }
    offers |= {offer.name: (offer,) for offer in donated if offer is not None}
    if not offers or (len(group.at) < 2 and not any(donated)):
        return None
    return Question(
        bag=bag.id,
        aim=aim_of(snapshot.ledger, bag),
        progress=_progress(snapshot, bag, uncovered),
        offers=offers,
    )


def aim_of(ledger: Statements, bag: BagFacts) -> Aim:
    """What its user wants. A budget alone is there to be used; a deadline alone is to be cheap."""
    balance = ledger.budget_of(bag.id)
    return Aim(
        deadline=bag.spec.deadline,
        budget=None if balance is None else in_credits(balance.budget.amount),
        prefer=_preference(bag),
    )


def _preference(bag: BagFacts) -> Preference:
    match bag.spec.prefer:
        case "cheap" | "balanced" | "fast" as preferred:
            return preferred
        case _:
            return "fast" if bag.spec.deadline is None or bag.spec.slots else "cheap"


def _progress(snapshot: Snapshot, bag: BagFacts, uncovered: int) -> Progress:
    """Formal requests in the system count with their whole tr, donated nodes with what they have run: their
    time to come is offered."""
    ledger = snapshot.ledger
    committed = 0
    for pilot in ledger.open_pilots_of(bag.id):
        seconds = pilot.tr if pilot.kind == "explicit" else min(pilot.tr, max(0.0, snapshot.now - pilot.at))
        committed += pilot.tariff.charge(pilot.kind, pilot.p, seconds)
    return Progress(
        now=snapshot.now,
        waiting=uncovered,
        spent=in_credits(ledger.of_bag(bag.id).used),
        committed=in_credits(committed),
    )


def _offers(
    snapshot: Snapshot, status: SiteStatus, bag: BagFacts, site: SiteFacts, demand: Demand, task: TaskTime
) -> tuple[SiteOffer, ...]:
    """What new requests could buy at a site, within its limits and beside its queue."""
    now = snapshot.now
    if not _holds_a_request(snapshot.ledger, site, bag, demand, now):
        return ()
    most = _most(snapshot, site, bag)
    openings = _within(status.capacity(demand, status.allowed, now).openings, most)
    whole = explicit_offer(snapshot.ledger, site, demand.task, task)
    return tuple(
        msgspec.structs.replace(
            whole, name=f"{site.name} {number}", processors=slots, wait=max(0.0, start - now)
        )
        for number, (start, slots) in enumerate(_merged(openings), 1)
    )


def explicit_offer(ledger: Statements, site: SiteFacts, size: TaskSize, task: TaskTime) -> SiteOffer:
    """What slots for such tasks cost in formal requests of a site; none of them yet."""
    tariff = tariff_for(ledger, site, size)
    return SiteOffer(
        name=site.name,
        price=in_credits(tariff.price("explicit")) * width(site.queue, size),
        processors=0,
        task=task,
        charging_unit=float(tariff.charging_unit),
        startup=site.rules.pad,
    )


def _holds_a_request(ledger: Statements, site: SiteFacts, bag: BagFacts, demand: Demand, now: float) -> bool:
    """Whether the budgets hold a request: the site's, and the bag's unless a pilot may give credits back."""
    rooms = [budgeted.left for budgeted in ledger.budgets_at(site.name, now)]
    balance = ledger.budget_of(bag.id)
    if balance is not None and not balance.reserved:
        rooms.append(balance.left)
    least = smallest(shape_of(site, demand), demand)
    needed = tariff_for(ledger, site, demand.task).reservation("explicit", least.p, least.tr)
    return all(needed <= room for room in rooms)


def _most(snapshot: Snapshot, site: SiteFacts, bag: BagFacts) -> int | None:
    """Slots that may still be bought there by the bag's quote; None: it has none."""
    if not bag.spec.slots:
        return None
    return max(0, snapshot.memory.slots_by_quote(bag).get(site.name, 0) - slots_there(site, bag))


def _within(openings: Sequence[tuple[float, int]], most: int | None) -> list[tuple[float, int]]:
    """The first so many slots."""
    if most is None:
        return list(openings)
    found = []
    for start, slots in openings:
        found.append((start, min(slots, most)))
        most -= found[-1][1]
    return [(start, slots) for start, slots in found if slots]


def _merged(openings: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Openings of the same instant merged; all late ones count at the last instant."""
    slots: dict[float, int] = {}
    for start, more in openings:
        slots[start] = slots.get(start, 0) + more
    starts = sorted(slots)
    first, late = starts[: _OPENINGS - 1], starts[_OPENINGS - 1 :]
    found = [(start, slots[start]) for start in first]
    return [*found, (late[-1], sum(slots[start] for start in late))] if late else found
