"""Pilots by the demand that they serve, the part of each, and pilots that serve none. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain

from adaptor.crafting.coverage import has_slot, holds, time_left
from adaptor.crafting.situation import Demand, Member, PilotView, SiteState
from adaptor.model import PilotState

SOONER = 0.7  # expected wait of a queued request relative to the planned one, as jobs end before their limits


def nobodys(view: SiteState, needless: Collection[int], replanned: Collection[int]) -> set[int]:
    """Queued pilots that no waiting task needs (`coverage`) and that no demand keeps.

    A replanned demand keeps its pilots while tasks wait, and while tasks run that may be cut when their own
    pilots end. A demand whose hosts are counted keeps its pilots while tasks wait.
    """
    if not needless:
        return set()
    keeping = [
        index
        for index, demand in enumerate(view.demands)
        if (demand.waiting and (index in replanned or demand.hosts_counted))
        or (index in replanned and _may_be_cut(view, demand))
    ]
    kept = pilots_by_demand(view, keeping)
    return set(needless) - {
        pilot.id
        for index, pilots in kept.items()
        for pilot in pilots
        if index in replanned or holds(pilot, view.demands[index])
    }


def _may_be_cut(view: SiteState, demand: Demand) -> bool:
    """Whether a task that runs may outlast the pilot that ends first."""
    ends = [
        time_left(pilot, view.now)
        for pilot in view.requests
        if pilot.state is PilotState.RUNNING and pilot.bag == demand.bag and not pilot.leaving
    ]
    if not demand.running or not ends or demand.hosts_counted:
        return False
    possible, share = view.rules.longest_task, view.rules.usual_share
    return demand.times.may_outlast(min(ends), view.now, demand.running, possible, share)


def pilots_by_demand(view: SiteState, served: Collection[int]) -> dict[int, list[PilotView]]:
    """The pilots in the system that stay, each with the demand that it serves.

    That is the one it was made for if that is among those served, else the first whose tasks it can run. One
    that can run none goes to a demand of the same bag, because tasks may run there; without such a demand it
    serves none, nor does a queued one without room for a single task.

    Args:
        served: numbers of the demands that pilots are wanted for.
    """
    found: dict[int, list[PilotView]] = {index: [] for index in sorted(served)}
    for pilot in view.requests:
        same = [index for index in found if view.demands[index].bag == pilot.bag]
        if pilot.state.in_system and not pilot.leaving and same:
            made_for = (index for index in same if view.demands[index].shape == pilot.shape)
            serves = next(chain(made_for, _others(view, pilot, same)), None)
            if serves is not None:
                found[serves].append(pilot)
    return found


def _others(view: SiteState, pilot: PilotView, same: Collection[int]) -> Iterator[int]:
    """Demands of its bag that a pilot serves which it was not made for, the best first."""
    roomy = [index for index in same if has_slot(view, pilot, view.demands[index])]
    yield from (index for index in roomy if holds(pilot, view.demands[index]))
    yield from same if pilot.state is PilotState.RUNNING else roomy


def member_of(pilot: PilotView, demand: Demand, slots: float, wait: float, now: float) -> Member:
    """A pilot that serves a demand.

    Args:
        slots: tasks of the demand that it runs at the same time.
        wait: seconds until its planned start, if it is queued.
    """
    if pilot.state is PilotState.RUNNING:
        age = max(1.0, demand.times.age(now))
        return Member(0.0, max(0.0, (pilot.ends or now) - now), slots, age)
    slots = min(1, slots) if demand.alone else slots
    return Member(SOONER * wait, float(pilot.request.tr), slots)
