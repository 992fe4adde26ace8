"""The sites as a user is shown them by the running daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from adaptor import api
from adaptor.api import DonationView, PartitionView, SiteView, SlotsView
from adaptor.config.policy import policy_of
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.site import Site
from adaptor.daemon.slots_view import gpu_counts, in_service, slots_views, unread
from adaptor.decisions.new_bags import check_sites
from adaptor.decisions.pilots import Pilot
from adaptor.journal.activity_views import NOTHING_DONATED, donation_of_site
from adaptor.model import PilotState, QueueState
from adaptor.resources import TaskSize


@answers(api.GetSites)
def _sites(running: RunningDaemon, _: api.GetSites) -> list[SiteView]:
    return [site_view(site) for site in running.sites.values()]


def site_view(site: Site) -> SiteView:
    memory = site.memory
    running = [pilot for pilot in memory.requests if pilot.state is PilotState.RUNNING]
    read = [memory.seen.now] if memory.seen else []
    if memory.donation is not None and memory.donation.observed is not None:
        read.append(memory.donation.observed)
    return SiteView(
        name=site.name,
        backend=site.config.backend,
        heuristic=site.config.heuristic,
        max_in_system=memory.limits.in_system if memory.limits_known else None,
        max_proc=memory.limits.max_proc if memory.limits_known else None,
        max_tr=float(memory.limits.max_tr) if memory.limits_known else None,
        pad=memory.rules.pad,
        queued=len(memory.requests) - len(running),
        running=len(running),
        processors=_processors(memory.seen, in_service(memory.seen), running) if memory.seen else None,
        gpus=gpu_counts(memory.seen) if memory.seen else [],
        observed=max(read, default=None),
        problem=memory.problem,
        since=memory.problem_since,
        held=sum(pilot.holds for pilot in running),
        late=memory.waits.worst(site.core.now()),
        partitions=[_partition(site, name) for name in site.config.partitions],
        donation=_donation(site),
        policy=policy_of(site.config).words(),
    )


def _partition(site: Site, name: str) -> PartitionView:
    memory = site.memory
    limits = memory.limits.partitions.get(name) if memory.limits_known else None
    own = [pilot for pilot in memory.requests if pilot.partition == name]
    running = [pilot for pilot in own if pilot.state is PilotState.RUNNING]
    queue = memory.seen.partitions.get(name) if memory.seen else None
    return PartitionView(
        name=name,
        max_in_system=limits.in_system if limits else None,
        max_proc=limits.max_proc if limits else None,
        max_tr=float(limits.max_tr) if limits else None,
        queued=len(own) - len(running),
        running=len(running),
        held=sum(pilot.holds for pilot in running),
        processors=_processors(queue, queue.processors, running) if queue else None,
        closed=memory.seen.closed.get(name, "") if memory.seen else "",
    )


def _processors(queue: QueueState, in_service: int, running: Iterable[Pilot]) -> int:
    """Processors in service, and those of pilots that still run on nodes that take no more jobs."""
    out = {node.name for node in queue.nodes if not node.in_service}
    shown = {job.id: job.processors for job in queue.running}
    leaving = (pilot for pilot in running if not out.isdisjoint(pilot.nodes))
    return in_service + sum(max(0, pilot.holds - shown.get(pilot.job or "", 0)) for pilot in leaving)


def _donation(site: Site) -> DonationView | None:
    told = site.core.journal.read(donation_of_site, site.name, site.core.now())
    donation = site.memory.donation
    if donation is None:
        return told
    told = told or NOTHING_DONATED
    return msgspec.structs.replace(told, idle=donation.idle, reason=donation.reason)


@answers(api.GetSlots)
async def read_slots(running: RunningDaemon, asked: api.GetSlots) -> list[SlotsView]:
    """The free slots of these sites (empty: of all) for such tasks, read now, all at the same time.

    Where an operator sets the least time between two looks, an earlier look serves until that has passed.

    Raises UsageError: there is no such site.
    """
    sites = running.sites
    check_sites(asked.sites, sites)
    found = await asyncio.gather(*(_read(sites[name], asked.task) for name in asked.sites or sites))
    return [each for of_site in found for each in of_site]


async def _read(site: Site, task: TaskSize | None) -> list[SlotsView]:
    floor, seen = policy_of(site.config).keys.poll_interval, site.memory.seen
    if floor is not None and seen is not None and site.core.now() - seen.now < floor:
        return slots_views(site.name, seen, site.memory.rules, task)
    queue = await site.look(patient=False)
    if queue is None:
        return [unread(site.name, site.memory.problem)]
    site.memory.seen = queue
    return slots_views(site.name, queue, site.memory.rules, task)
