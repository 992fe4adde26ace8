"""What the forecast of a bag's end is made from, as the sites and the broker were last seen. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from adaptor.crafting.coverage import slots_in
from adaptor.crafting.fits import unit_of
from adaptor.crafting.situation import Demand
from adaptor.decisions.held_off import why_held_off
from adaptor.decisions.outlook.knowledge import KnownBag, KnownPilot, KnownSite
from adaptor.decisions.snapshot import PilotFacts, SiteFacts
from adaptor.model import PilotState
from adaptor.runtimes.possible import RuntimeKnowledge
from adaptor.scheduling.facts import BagFacts

_SAID, _UNKNOWN = 0.5, 1.5
"""Deviations of the logarithm of what users say that a task takes, and of what is assumed of it."""
_USUAL = 0.25
"""What a task takes, as a share of what the site assumes so that most tasks fit."""
_LONGEST = 1e9
"""Seconds of a pilot that has no end."""


def known_bag(
    bag: BagFacts, sites: Sequence[SiteFacts], now: float, *, alone: bool, beside: Sequence[int] = ()
) -> KnownBag:
    """What is known of a bag.

    Args:
        sites: those at which it may run.
        alone: whether the bag has pilots of its own.
        beside: the waiting tasks of each other bag that takes turns with it.
    """
    owner = bag.id if alone else None
    known = [_known_site(bag, site, now, owner) for site in sites if site.name in bag.learned]
    said = any(bag.spec.expected_at(site.name) is not None for site in sites)
    guess, surety = _guess(bag, known, said=said)
    began = [
        max(now - start, bound, 0.0)
        for pilot, starts in bag.by_pilot.items()
        for start, bound in zip(starts, bag.bounds.get(pilot, (0.0,) * len(starts)), strict=True)
    ]
    return KnownBag(
        now=now,
        waiting=max(0, bag.tasks - bag.finished - len(bag.starts)),
        running=len(bag.starts),
        again=bag.again,
        runtimes=RuntimeKnowledge(
            finished=bag.runtimes,
            places=bag.places if bag.spec.order != "random" else (),
            every=bag.every,
            running=[*began, *bag.again],
            guess=guess,
            surety=surety,
            tasks=bag.tasks,
        ),
        longest=max((each.learned.longest for each in bag.learned.values()), default=0.0),
        sites=known,
        beside=beside,
        at_once=bag.spec.max_running,
    )


def _guess(bag: BagFacts, sites: Sequence[KnownSite], *, said: bool) -> tuple[float, float]:
    """What a task takes before any has finished (seconds), and the deviation of its logarithm."""
    assumed = min((bag.learned[each.name].estimate for each in sites), default=1.0)
    if said:
        return assumed, _SAID
    earlier = [bag.earlier[each.name] for each in sites if each.name in bag.earlier]
    if earlier:
        quickest = min(earlier, key=lambda each: each.mean)
        return quickest.mean, math.log(quickest.factor)
    return _USUAL * assumed, _UNKNOWN


def _known_site(bag: BagFacts, site: SiteFacts, now: float, owner: int | None) -> KnownSite:
    estimate = bag.learned[site.name].estimate
    demand = Demand(task=bag.spec.task, waiting=bag.waiting, runtime=estimate, bag=owner)
    return KnownSite(
        name=site.name,
        rules=site.rules,
        heuristic=site.heuristic,
        poll=site.poll,
        queue=site.queue,
        task=bag.spec.task,
        needed=estimate,
        pilots=tuple(
            pilot
            for each in site.pilots
            if each.bag == owner
            and not each.leaving
            and (pilot := _known_pilot(bag, site, each, demand, now)).slots
        ),
        open=bag.spec.allocation != "transparent" and not why_held_off(site, now),
        late=site.waits.lateness(site.rules.limits.max_proc, now),
        wait_shares=site.waits.shares,
        run_shares=site.jobs.known,
        run_shares_by_job=site.jobs.by_job(site.queue) if site.queue is not None else {},
        seen_since=site.jobs.seen_since(),
    )


def _known_pilot(bag: BagFacts, site: SiteFacts, pilot: PilotFacts, demand: Demand, now: float) -> KnownPilot:
    running = pilot.state is PilotState.RUNNING and pilot.started is not None
    there = pilot.processors if running and pilot.processors is not None else pilot.request.p
    slots = int(slots_in(pilot, there, demand, unit_of(site.rules, site.queue, bag.spec.task)))
    begun = bag.by_pilot.get(pilot.id, ())
    granted = pilot.granted if math.isfinite(pilot.granted) else float(pilot.request.tr or _LONGEST)
    return KnownPilot(
        job=pilot.job or "",
        p=pilot.request.p,
        tr=granted,
        slots=max(slots, len(begun)),
        started=pilot.started if running else None,
        predicted=pilot.predicted_start,
        elapsed=tuple(max(0.0, now - start) for start in begun),
        bounds=bag.bounds.get(pilot.id, ()),
    )
