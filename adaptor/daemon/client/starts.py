"""Forecasts of the start of a request or of a waiting job, by the running daemon."""

from __future__ import annotations

import asyncio
import getpass
import math
from collections.abc import Collection

import msgspec

from adaptor import api
from adaptor.api import StartView
from adaptor.daemon import start_view
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.site import Site
from adaptor.decisions.new_bags import check_sites
from adaptor.decisions.pilots import limited
from adaptor.journal.pilot_rows import pilot_waits
from adaptor.model import QueueState


@answers(api.GetStart)
async def read_starts(running: RunningDaemon, asked: api.GetStart) -> list[StartView]:
    """The forecast at each place whose queue is read now, the earliest first.

    Raises UsageError: there is no such site, partition or job, or no place can ever hold the request.
    """
    sites = running.sites
    check_sites(filter(None, [asked.site]), sites)
    start_view.check_question(asked)
    names = [asked.site] if asked.site else list(sites)
    found = await asyncio.gather(*(_at(sites[name], asked) for name in names))
    return start_view.told(asked, [view for of_site in found for view in of_site])


async def _at(site: Site, asked: api.GetStart) -> list[StartView]:
    memory, backend, config = site.memory, site.backend, site.config
    queue = await site.look(patient=False)
    if queue is None:
        return [start_view.unread(site.name, memory.problem)]
    memory.read(queue)
    asks_scheduler = (lambda: start_view.report_of(backend, asked.job)) if asked.job else None
    own = memory.own_jobs
    seen = start_view.SiteSeen(
        name=site.name,
        queue=_with_ends(queue, own, _last_work(site, queue.now) + float(config.idle_timeout)),
        shares=memory.jobs.copy(),
        look=start_view.look_of(backend),
        slot_margin=float(backend.slot_margin),
        node=start_view.whole_node(config),
        own=own,
        user=getpass.getuser(),
        waits=site.core.journal.read(pilot_waits, site.name),
        wait_shares=memory.waits.shares,
        starts=site.starts,
        limits=limited(memory.requests),
        ceilings=await site.ask(lambda: start_view.ceilings_of(backend, config), patient=False) or {},
        report=await site.ask(asks_scheduler, patient=False) if asks_scheduler else None,
    )
    return await asyncio.to_thread(start_view.start_views, seen, asked)


def _last_work(site: Site, now: float) -> float:
    """Epoch seconds until which bags may need our pilots there; `math.inf`: as long as the pilots may run."""
    core = site.core
    bags = [bag.id for bag in core.broker.state.bags.values() if not bag.ended and bag.spec.allows(site.name)]
    ends = [core.decided.forecasts[bag].forecast.end for bag in bags if bag in core.decided.forecasts]
    known = [end.high for end in ends if end is not None]
    return max([now, *known]) if len(known) == len(bags) else math.inf


def _with_ends(queue: QueueState, own: Collection[str], until: float) -> QueueState:
    """The queue in which these jobs end by then, whatever their limits: a pilot without work ends."""
    running = tuple(
        msgspec.structs.replace(job, end=min(job.end, until)) if job.id in own else job
        for job in queue.running
    )
    partitions = {name: _with_ends(each, own, until) for name, each in queue.partitions.items()}
    return msgspec.structs.replace(queue, running=running, partitions=partitions)
