"""Observing the nodes of a site that donates idle ones."""

from __future__ import annotations

from adaptor.daemon.clock import midnight
from adaptor.daemon.site import Site
from adaptor.decisions.pilots import Pilot
from adaptor.scheduling.workers import Worker
from backends.agents.reports import is_agent

_OUTDATED = "`donation` of its site has changed in the configuration, and no longer allows this pilot"


async def look_at_nodes(site: Site) -> None:
    """Ask for the nodes where any is used, or wanted. Raises JournalError."""
    memory, donation, core = site.memory, site.memory.donation, site.core
    if donation is None:
        return
    donated = memory.donated
    if not donated and not core.broker.donation_demands(site.name):
        donation.look_away()
        return
    donation.before_looking(donated, core.now())
    jobs = [pilot.job for pilot in donated if pilot.job is not None]
    reports = await site.ask(lambda: site.backend.nodes(jobs))
    now = core.now()
    donated = memory.donated
    donation.observe(reports, donated, _workers(site), now)
    if reports is None:
        return
    core.broker.learn_hazard(site.name, donation.learner.hazard)
    for pilot, node in donation.donated_nodes(donated, now, midnight(now)).items():
        core.broker.use_node(pilot, node)
    if donation.is_to_be_kept(now):
        core.journal.keep_idleness(site.name, donation.learner.idleness)


def _workers(site: Site) -> dict[int, list[Worker]]:
    """The workers of a site by pilot, so that a step with many pilots goes through them once."""
    found: dict[int, list[Worker]] = {}
    for worker in site.core.broker.of_site(site.name):
        found.setdefault(worker.pilot, []).append(worker)
    return found


async def end_outdated(site: Site) -> None:
    """End what runs by another configuration, before the scheduler is asked about it. Raises JournalError."""
    donated = site.memory.donated
    for pilot in donated:
        if not pilot.cancel_reason and _is_outdated(site, pilot):
            pilot.cancel_reason = _OUTDATED
            site.explain("withdrawn", _OUTDATED, pilot)
    leaving = [pilot for pilot in donated if pilot.cancel_reason == _OUTDATED]
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
        pilot.job = None
    for worker in site.core.broker.of_pilot(pilot.id):
        site.core.broker.tell_to_leave(worker.id, _OUTDATED)


def _is_agents(pilot: Pilot) -> bool:
    return pilot.job is not None and is_agent(pilot.job)
