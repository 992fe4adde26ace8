"""Pilots on donated nodes that the configuration no longer allows."""

from __future__ import annotations

from adaptor.daemon.site import Site
from adaptor.decisions.pilots import Pilot
from backends.donation import is_agent

_OUTDATED = "`donation` of its site has changed in the configuration, and no longer allows this pilot"


async def end_outdated(site: Site) -> None:
    """End what runs by another configuration, before the scheduler is asked about it. Raises JournalError."""
    for pilot in site.memory.donated:
        if not pilot.leaving and _is_outdated(site, pilot):
            site.memory.change(pilot, leaving=_OUTDATED)
            site.explain("withdrawn", _OUTDATED, pilot)
    leaving = [pilot for pilot in site.memory.donated if pilot.leaving == _OUTDATED]
    for pilot in leaving:
        _end_by_its_workers(site, pilot)
    if leaving:
        await site.core.commit()


def _is_outdated(site: Site, pilot: Pilot) -> bool:
    donation = site.memory.settings.donation
    return donation is None or (_is_agents(pilot) and donation.preemptible)


def _end_by_its_workers(site: Site, pilot: Pilot) -> None:
    """The scheduler never knew the id of an agent, and how to get to its node is not known any more."""
    if _is_agents(pilot):
        site.memory.change(pilot, job=None)
    for worker in site.core.broker.of_pilot(pilot.id):
        site.core.broker.tell_to_leave(worker.id, _OUTDATED)


def _is_agents(pilot: Pilot) -> bool:
    return pilot.job is not None and is_agent(pilot.job)
