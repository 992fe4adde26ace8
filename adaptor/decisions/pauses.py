"""Bags that get no request because of their budget or deadline, or no more because of max-running. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.crafting.coverage import time_left
from adaptor.crafting.fits import unit_of
from adaptor.crafting.situation import Demand
from adaptor.decisions.memory import Memory
from adaptor.decisions.shares import shares_of
from adaptor.decisions.snapshot import Snapshot
from adaptor.model import PilotState
from adaptor.units import counted


def why_paused(memory: Memory, bag: int, sites: Sequence[str]) -> str:
    """Why nothing is bought for a bag at any of these sites; empty: something may be.

    Sites that are to have nothing of what waits, by cost and time, do not count.
    """
    shares = shares_of(memory, bag)
    wanted = [name for name in sites if shares is None or shares.tasks(name)] or sites
    reasons = [memory.paused.get(name, {}).get(bag, "") for name in wanted]
    return reasons[0] if reasons and all(reasons) else ""


def within_together(snapshot: Snapshot, demand: Demand) -> Demand:
    """The demand, without more slots than its tasks may use beside those in the system at all sites."""
    if demand.together is None:
        return demand
    there = _slots(snapshot, demand)
    left = max(0, demand.together - there)
    unit = unit_of(snapshot.here.rules, snapshot.queue, demand.task)
    most = math.ceil(left / unit.tasks) * unit.processors
    if demand.most is not None and demand.most <= most:
        return demand
    why = (
        f"max-running: {counted(demand.together, 'task')} may run at the same time, and requests in the "
        f"system have {counted(there, 'slot')}"
    )
    return msgspec.structs.replace(demand, most=most, why_most=why)


def _slots(snapshot: Snapshot, demand: Demand) -> int:
    """Tasks that the pilots in the system for such tasks can run at the same time.

    Of those that end too soon for any waiting task, only what runs counts.
    """
    found = ending = 0
    for site in snapshot.sites.values():
        unit = unit_of(site.rules, site.queue, demand.task)
        for pilot in site.pilots:
            same = pilot.bag == demand.bag and pilot.shape in (None, demand.shape)
            if same and pilot.state.in_system and not pilot.leaving:
                slots = unit.slots(pilot.request.p)
                if pilot.state is PilotState.RUNNING and time_left(pilot, snapshot.now) < demand.shortest:
                    ending += slots
                else:
                    found += slots
    return max(found, min(found + ending, demand.running))
