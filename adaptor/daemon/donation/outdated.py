"""Leases that were made under another configuration, by which the site's nodes are not lent any more."""

from __future__ import annotations

from adaptor.daemon.pilots import Pilot
from adaptor.daemon.site_state import SiteState
from backends.agents.reports import is_agent

_WHY = "its site does not lend nodes in this way any more: `donation` of the configuration has changed"


async def end_outdated(site: SiteState) -> None:
    """Have them end, before the scheduler is asked about them. Raises JournalError."""
    for pilot in site.leases:
        if not pilot.cancel_reason and _is_outdated(site, pilot):
            pilot.cancel_reason = _WHY
            site.explain("withdrawn", _WHY, pilot)
    leaving = [pilot for pilot in site.leases if pilot.cancel_reason == _WHY]
    for pilot in leaving:
        _end_by_its_workers(site, pilot)
    if leaving:
        await site.core.commit()


def _is_outdated(site: SiteState, pilot: Pilot) -> bool:
    return site.lender is None or (_is_agents(pilot) and site.lender.config.mode != "agent")


def _end_by_its_workers(site: SiteState, pilot: Pilot) -> None:
    """The scheduler never knew the id of an agent, and how to get to its node is not known any more."""
    if _is_agents(pilot):
        pilot.job = None
    for worker in site.core.broker.of_pilot(pilot.id):
        site.core.broker.tell_to_leave(worker.id, _WHY)


def _is_agents(pilot: Pilot) -> bool:
    return pilot.job is not None and is_agent(pilot.job)
