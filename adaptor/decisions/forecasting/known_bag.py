"""The input of the forecast of a bag, as the sites and the broker were last seen. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.statements import Statements
from adaptor.crafting.coverage import slots_in
from adaptor.crafting.fits import unit_of
from adaptor.crafting.places import bounded_rules
from adaptor.crafting.situation import Demand, Largest, SiteRules
from adaptor.decisions.forecasting.needed import ends_of_pilots
from adaptor.decisions.held_off import why_held_off, why_not_for
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.requests import (
    charges_whole_units,
    end_takes,
    ends_with_units,
    host_terms,
    largest_by_trial,
    staying,
    tariff_for,
)
from adaptor.decisions.shares import shares_of
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.known import KnownBag, KnownPilot, KnownSite
from adaptor.model import PilotState
from adaptor.reports import Hold
from adaptor.runtimes.learner import RuntimeLearner
from adaptor.runtimes.possible import RuntimeKnowledge

_UNKNOWN = 1.5  # deviation of the logarithm of what is assumed that a task takes
_USUAL = 0.25
"""Prior mean runtime as a fraction of the first estimate, which is chosen so that most tasks fit."""
_LONGEST = 1e9  # seconds of a pilot that has no end


def known_bag(snapshot: Snapshot, bag: BagFacts) -> KnownBag:
    """Facts about a bag, and about the sites at which it may run, for its forecast."""
    now, ledger = snapshot.now, snapshot.ledger
    sites = [
        site for site in snapshot.sites.values() if bag.spec.allows(site.name) and site.name in bag.learned
    ]
    shares = _shares(snapshot, bag, sites)
    known = [
        msgspec.structs.replace(_known_site(snapshot, bag, site), share=shares.get(site.name))
        for site in sites
    ]
    guess, surety = _guess(bag, known)
    began = [
        max(now - start, bound, 0.0)
        for pilot, starts in bag.by_pilot.items()
        for start, bound in zip(starts, bag.bounds.get(pilot, (0.0,) * len(starts)), strict=True)
    ]
    shown = {pilot.job for site in known for pilot in site.pilots}
    others = [pilot for pilot in _own(sites, bag) if (pilot.job or "") not in shown]
    return KnownBag(
        now=now,
        bag=bag,
        runtimes=RuntimeKnowledge(
            finished=bag.runtimes,
            places=bag.places if bag.spec.order != "random" else (),
            every=bag.every,
            running=[*began, *bag.again],
            guess=guess,
            surety=surety,
            tasks=bag.tasks,
        ),
        sites=_with_others(snapshot, bag, known),
        used=ledger.of_bag(bag.id).used + _charges(others, ledger, now) if bag.alone else 0,
        pace=snapshot.memory.paces.get(bag.id),
        scores=snapshot.scores,
    )


def charged(bag: BagFacts, sites: Sequence[SiteFacts], ledger: Statements, now: float) -> float:
    """Credits of a bag for what has ended, and for what runs as if it ended now."""
    return in_credits(ledger.of_bag(bag.id).used + _charges(_own(sites, bag), ledger, now))


def _shares(snapshot: Snapshot, bag: BagFacts, sites: Sequence[SiteFacts]) -> dict[str, float]:
    """Part of each site in the tasks of a bag that is divided by cost and time: as it was last, else as the
    slots of its pilots show. Empty: all sites have the same."""
    if (split := shares_of(snapshot.memory, bag.id)) is not None:
        parts = {site.name: split.tasks(site.name) for site in sites}
    elif bag.spec.paced:
        parts = {site.name: sum(slots for _, slots in staying(site, bag)) for site in sites}
    else:
        return {}
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()} if total else {}


def _own(sites: Sequence[SiteFacts], bag: BagFacts) -> list[Pilot]:
    return [pilot for site in sites for pilot in site.pilots if pilot.bag == bag.id]


def _charges(pilots: Iterable[Pilot], ledger: Statements, now: float) -> int:
    """Millionths of a credit for pilots, as if they ended now; queued ones cost nothing."""
    total = 0
    for pilot in pilots:
        reserved = ledger.open_pilots.get(pilot.id)
        if reserved is not None and pilot.state is PilotState.RUNNING and pilot.started is not None:
            total += reserved.charge(now - pilot.started)
    return total


def _guess(bag: BagFacts, sites: Sequence[KnownSite]) -> tuple[float, float]:
    """Guessed runtime of a task before any has finished (seconds), and the deviation of its logarithm."""
    known = [bag.known_at(site.view.name) for site in sites]
    hints = [(each.hint, math.log(each.hint_within)) for each in known if each.hint is not None]
    assumed = min((bag.learned[site.view.name].estimate for site in sites), default=1.0)
    return min(hints, default=(_USUAL * assumed, _UNKNOWN))


def _learner(bag: BagFacts, site: str) -> RuntimeLearner:
    """The learner of a site, and what is known without it; the cuts of single tasks are known by pilot."""
    learner = bag.learned[site]
    seen = msgspec.structs.replace(
        learner.seen,
        told=bag.known.told,
        earlier=bag.earlier.get(site),
        ended_after=bag.spec.ended_after,
    )
    return msgspec.structs.replace(learner, seen=seen, cuts={})


def _known_site(snapshot: Snapshot, bag: BagFacts, site: SiteFacts) -> KnownSite:
    ledger, owner = snapshot.ledger, bag.id if bag.alone else None
    there = bag.learned[site.name]
    demand = Demand(task=bag.spec.task, waiting=bag.waiting, runtime=there.estimate, bag=owner)
    pilots = [
        pilot
        for facts in site.pilots
        if facts.bag == owner
        and not facts.leaving
        and not (facts.never or facts.wait.hold is not Hold.NONE)  # its start is unknown
        and (pilot := _known_pilot(bag, site, facts, demand, snapshot)).slots
    ]
    known = KnownSite(
        view=msgspec.structs.replace(site, rules=_rules(site, demand)),
        learner=_learner(bag, site.name),
        pilots=tuple(pilots),
        open=bag.spec.allocation != "transparent" and not _fails(site, demand) and not _all_held(site, owner),
        run_shares=site.jobs.known,
        run_shares_by_job=site.jobs.by_job(site.queue) if site.queue is not None else {},
        seen_since=site.jobs.seen_since(),
    )
    if not bag.alone:
        return known
    known = msgspec.structs.replace(known, tariff=tariff_for(ledger, site, bag.spec.task))
    if not bag.paced:
        return known
    return msgspec.structs.replace(
        known,
        terms=host_terms(ledger, site),
        whole_units=charges_whole_units(ledger, site),
        end_takes=end_takes(site) if ends_with_units(bag, ledger, site) else None,
    )


def _with_others(snapshot: Snapshot, bag: BagFacts, sites: Sequence[KnownSite]) -> list[KnownSite]:
    """The sites with the times until which bags need our other pilots in their queues."""
    used = {(site.view.name, pilot.job) for site in sites for pilot in site.pilots}
    pilots = {name: site.pilots for name, site in snapshot.sites.items()}
    bags, now, found = snapshot.at_work, snapshot.now, []
    for site in sites:
        queue, at = site.view.queue, site.view.name
        ends = ends_of_pilots(queue, at, pilots, bags, now, but=bag.id) if queue is not None else ()
        beside = {job: end for name, job, end in ends if (name, job) not in used}
        found.append(msgspec.structs.replace(site, beside=beside))
    return found


def _rules(site: SiteFacts, demand: Demand) -> SiteRules:
    """The rules of a site, with no larger requests than those that failed allow."""
    largest, partitions = largest_by_trial(site, demand), site.rules.limits.partitions
    if len(largest) < max(1, len(partitions)):
        return site.rules
    most = Largest(max(each.p for each in largest.values()), max(each.tr for each in largest.values()))
    return bounded_rules(site.rules, msgspec.structs.replace(demand, largest=(("", most),)), "")


def _fails(site: SiteFacts, demand: Demand) -> bool:
    """Whether the last request for such tasks failed: until one succeeds no end rests on the next."""
    at_any_time = 0.0
    return bool(why_held_off(site, at_any_time) or why_not_for(site, demand, at_any_time))


def _all_held(site: SiteFacts, owner: int | None) -> bool:
    """Whether each queued request for such a bag waits for a reason of its own: no other takes its place."""
    queued = [
        pilot
        for pilot in site.requests
        if pilot.bag == owner and pilot.state is PilotState.QUEUED and not pilot.leaving
    ]
    return bool(queued) and all(pilot.wait.hold is Hold.ITS_OWN for pilot in queued)


def _known_pilot(
    bag: BagFacts, site: SiteFacts, pilot: Pilot, demand: Demand, snapshot: Snapshot
) -> KnownPilot:
    now = snapshot.now
    running = pilot.state is PilotState.RUNNING and pilot.started is not None
    there = pilot.processors if running and pilot.processors is not None else pilot.request.p
    slots = int(slots_in(pilot, there, demand, unit_of(site.rules, site.queue, bag.spec.task)))
    begun = bag.by_pilot.get(pilot.id, ())
    granted = pilot.granted if math.isfinite(pilot.granted) else float(pilot.request.tr or _LONGEST)
    reserved = snapshot.ledger.open_pilots.get(pilot.id) if bag.alone else None
    return KnownPilot(
        job=pilot.job or "",
        p=pilot.holds,
        tr=granted,
        slots=max(slots, len(begun)),
        started=pilot.started if running else None,
        predicted=pilot.predicted_start,
        elapsed=tuple(max(0.0, now - start) for start in begun),
        bounds=bag.bounds.get(pilot.id, ()),
        tariff=None if reserved is None else reserved.tariff,
        kind="explicit" if reserved is None else reserved.kind,
    )
