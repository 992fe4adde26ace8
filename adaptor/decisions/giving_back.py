"""Gives back the slots that a new plan of a quoted bag does without. Pure.

Oprescu, Kielmann, Leahu, "Task Farming in Contrail", slide "Re-evaluate": machines that the new configuration
drops are used until their paid time is over. Where time is charged by the second, a pilot ends with the
tasks that run in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from adaptor.budget.accounting.statements import Statements
from adaptor.crafting.fits import unit_of
from adaptor.crafting.situation import Withdraw
from adaptor.decisions.actions import End, GiveBack
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.requests import charges_whole_units, host_terms, pilot_start, staying, unit_end
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.model import PilotState
from adaptor.scheduling.facts import BagFacts
from adaptor.units import counted, format_duration

_Slots = tuple[Pilot, int]  # a pilot and the tasks that it can run at the same time


def give_back_surplus(snapshot: Snapshot, memory: Memory) -> Iterator[Withdraw | End | GiveBack]:
    """The actions at this site for all bags that were planned again."""
    for bag in snapshot.bags.values():
        if bag.id in memory.slots and bag.spec.allows(snapshot.site):
            slots = memory.slots[bag.id].get(snapshot.site, 0)
            yield from give_back(snapshot.ledger, snapshot.here, bag, slots, snapshot.now)


def give_back(
    ledger: Statements, site: SiteFacts, bag: BagFacts, slots: int, now: float
) -> Iterator[Withdraw | End | GiveBack]:
    """Withdraw the surplus queued requests of a bag, then part with its surplus running pilots.

    A running pilot takes tasks for as long as they end in its paid time. One whose request ends with that
    time needs no action.

    Args:
        slots: that the plan keeps at the site.
    """
    pilots = staying(site, bag)
    there = sum(held for _, held in pilots)
    for pilot, held in _surplus(ledger, site, bag, pilots, slots, now):
        why = (
            f"bag {bag.id} is planned again: {held} of {counted(there, 'slot')} at {site.name} are given back"
        )
        if pilot.state is PilotState.QUEUED:
            yield Withdraw(pilot.id, why)
            continue
        until = unit_end(ledger, site, pilot, now) if charges_whole_units(ledger, site) else now
        if until is None:
            continue
        if _is_over(ledger, site, bag, pilot, until, now):
            yield End(pilot.id, why)
        elif charges_whole_units(ledger, site):
            left = format_duration(until - now)
            yield GiveBack(pilot.id, f"{why} when their charging unit ends, in {left}", until)
        else:
            yield GiveBack(pilot.id, f"{why} when the tasks that run there have ended", until)


def why_given_back(snapshot: Snapshot, site: SiteFacts, pilot: Pilot) -> str:
    """Why a pilot that is given back ends now; empty: it was not given back, or goes on for a while."""
    bag = snapshot.bags.get(pilot.bag) if pilot.bag is not None else None
    if bag is None or pilot.given_back is None or pilot.leaving:
        return ""
    if not _is_over(snapshot.ledger, site, bag, pilot, pilot.given_back, snapshot.now):
        return ""
    over = "its charging unit ends" if charges_whole_units(snapshot.ledger, site) else "no task runs in it"
    return f"the new plan of bag {bag.id} does without it, and {over}"


def _surplus(
    ledger: Statements, site: SiteFacts, bag: BagFacts, pilots: Iterable[_Slots], slots: int, now: float
) -> list[_Slots]:
    """The pilots to part with: those without which the plan has its slots, then those that it needs less than
    half of. For the latter a smaller request follows.

    A pilot is charged as a whole. Requests for whole nodes may have had to be larger than the plan.
    """
    unit = unit_of(site.rules, site.queue, bag.spec.task).tasks
    slots = math.ceil(slots / unit) * unit
    kept = {pilot.id: held for pilot, held in pilots}
    gone = []
    for share in (0.0, 0.5):
        for pilot, held in sorted(pilots, key=lambda each: _order(ledger, site, each[0], now)):
            surplus = sum(kept.values()) - slots
            needed = max(0, held - surplus)
            movable = pilot.state in (PilotState.QUEUED, PilotState.RUNNING) and pilot.id in kept
            if movable and surplus > 0 and (not needed or needed < share * held):
                del kept[pilot.id]
                gone.append((pilot, held))
    return gone


def _order(ledger: Statements, site: SiteFacts, pilot: Pilot, now: float) -> tuple[float, float]:
    """Queued ones first, the latest to start before the others; then those with the least paid time."""
    start = pilot_start(pilot, now)
    if pilot.state is not PilotState.RUNNING:
        return 0.0, -start
    return 1.0, host_terms(ledger, site).paid_until(start, pilot.granted, now)


def _is_over(
    ledger: Statements, site: SiteFacts, bag: BagFacts, pilot: Pilot, until: float, now: float
) -> bool:
    """Whether a pilot that takes tasks until then has nothing more to do."""
    if charges_whole_units(ledger, site):
        return now >= until
    # After a restart its workers have yet to say what they run.
    heard = pilot.processors is not None or pilot.known_since <= pilot_start(pilot, now)
    return heard and not bag.by_pilot.get(pilot.id)
