"""Division of the waiting tasks among several sites at an instant.

Each site decides by itself. The division is made again for all sites, from the last look at each, and the
site takes its own part; so a scheduler that hangs never holds another site up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.crafting.multisite.division import SitePart, by_demand, divide
from adaptor.crafting.places import Place, places_of
from adaptor.crafting.situation import Demand, PilotView, ShapeAt, SiteState
from adaptor.decisions.actions import Wake
from adaptor.decisions.donation import beside_held_nodes
from adaptor.decisions.held_off import avoided_partitions, why_held_off, why_not_for
from adaptor.decisions.memory import Memory, MemoryDraft
from adaptor.decisions.requests import least_cost, left_at
from adaptor.decisions.shares import parts_money, targets
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.forecast.bag_facts import BagFacts
from adaptor.model import PilotState

PATIENCE = 10.0  # seconds that a site waits for the queue of another site before it decides without it
_LEAST_SILENCE = 20.0  # seconds of silence at least after which what was planned at a site is divided again
_SUBMITTING = 1 << 40  # the first id of requests that have none yet: they come after all pilots


def awaited(snapshot: Snapshot, draft: MemoryDraft) -> tuple[list[str], list[Wake]]:
    """The sites whose queues this one still waits for; they are woken, and their answers wake this one."""
    now, here = snapshot.now, snapshot.site
    rivals = {site for group in snapshot.groups if group.waiting and here in group.at for site in group.at}
    unknown = [
        name
        for name, site in snapshot.sites.items()
        if name in rivals
        and name != here
        and not (_fresh(site, now) or why_held_off(site, now) or site.silent(now))
    ]
    missed = {**dict.fromkeys(unknown, now), **draft.memory.missed}
    draft.keep(missed=missed)
    return [name for name in unknown if now - missed[name] < PATIENCE], [Wake(name) for name in unknown]


def answers_missed(snapshot: Snapshot, draft: MemoryDraft) -> list[Wake]:
    """Wake the sites that waited for the queue of this one, which was just read."""
    missed = draft.memory.missed
    if snapshot.site not in missed:
        return []
    draft.keep(missed={name: since for name, since in missed.items() if name != snapshot.site})
    return [Wake(name) for name in snapshot.sites if name != snapshot.site]


def places_of_sites(snapshot: Snapshot, draft: MemoryDraft) -> dict[str, Sequence[Place]]:
    """The places of every site, as the division sees them."""
    spent = _spent(snapshot)
    places: dict[str, Sequence[Place]] = {
        name: places_of(_seen(site, snapshot, spent.get(name, {})), draft.memory.places.get(name, ()))
        for name, site in snapshot.sites.items()
    }
    draft.keep(places=places)
    return places


def part_of(
    snapshot: Snapshot,
    memory: Memory,
    places: Mapping[str, Sequence[Place]],
    bags: Sequence[BagFacts | None],
    demands: Sequence[Demand],
) -> SitePart:
    """The part of the tasks that the division leaves to this site, by its demands.

    Args:
        bags: of each group, the one whose tasks are divided by cost and time; None: there is none.
    """
    by_cost = (bag.id for bag in bags if bag is not None and not parts_money(snapshot, bag))
    parts = divide(places, snapshot.groups, targets(memory, by_cost))
    return by_demand(parts[snapshot.site], snapshot.site, snapshot.groups, demands)


def _fresh(site: SiteFacts, now: float) -> bool:
    return site.queue is not None and now - site.queue.now < 2 * site.poll + PATIENCE


def _spent(snapshot: Snapshot) -> dict[str, dict[ShapeAt, str]]:
    """By site the tasks for which its budgets hold no request while those of another site do."""
    ledger = snapshot.ledger
    credits = {name: left_at(ledger, name, snapshot.now) for name in snapshot.sites}
    found: dict[str, dict[ShapeAt, str]] = {}
    for group in snapshot.groups:
        at = {name: demand for name, demand in group.at.items() if name in snapshot.sites}
        none = {
            name
            for name, demand in at.items()
            if credits[name] < math.inf and least_cost(ledger, snapshot.sites[name], demand) > credits[name]
        }
        for name in none if len(none) < len(at) else ():
            found.setdefault(name, {})[at[name].shape, ""] = "its budget holds no request"
    return found


def _seen(site: SiteFacts, snapshot: Snapshot, spent: Mapping[ShapeAt, str]) -> SiteState:
    """The site with the requests that it is about to submit, and why it must not get others now."""
    submitting = [
        PilotView(
            id=_SUBMITTING + number,
            state=PilotState.SUBMITTING,
            request=submit.crafted.request,
            submitted=site.now,
            predicted_start=submit.crafted.predicted_start,
            bag=submit.demand.bag,
            shape=submit.demand.shape,
            partition=submit.crafted.partition,
        )
        for number, submit in enumerate(site.submitting)
        if not submit.node
    ]
    demands = [group.at[site.name] for group in snapshot.groups if site.name in group.at]
    nowhere = {(each.shape, ""): why for each in demands if (why := why_not_for(site, each, snapshot.now))}
    found = msgspec.structs.replace(
        site,
        queue=site.queue and beside_held_nodes(site, site.queue),
        requests=(*site.requests, *submitting),
        closed=_closed(site, snapshot.now),
        avoided={**avoided_partitions(site, demands, snapshot.now), **spent, **nowhere},
    )
    return found.heard_of() if lost(site, snapshot.now) else found


def lost(site: SiteFacts, now: float) -> bool:
    """Whether a site is silent for too long: only workers that still send messages count, no other pilots."""
    return site.silent(now) and site.silence(now) > max(_LEAST_SILENCE, 4 * site.poll, site.command_timeout)


def _closed(site: SiteFacts, now: float) -> str:
    if site.silent(now):
        return "its scheduler does not answer"
    if not _fresh(site, now):
        return "its queue could not be read yet"
    return why_held_off(site, now)
