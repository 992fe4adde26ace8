"""Forecasts of the start of a request or of a waiting job, by the running daemon."""

from __future__ import annotations

import asyncio
import getpass

from adaptor import api
from adaptor.api import StartView
from adaptor.daemon import start_view
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.site import Site
from adaptor.decisions.new_bags import check_sites
from adaptor.decisions.pilots import limited
from adaptor.journal.pilot_rows import pilot_waits


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
    seen = start_view.SiteSeen(
        name=site.name,
        queue=site.with_ends_of_pilots(queue),
        shares=memory.jobs.copy(),
        look=start_view.look_of(backend),
        slot_margin=float(backend.slot_margin),
        node=start_view.whole_node(config),
        own=memory.own_jobs,
        user=getpass.getuser(),
        waits=site.core.journal.read(pilot_waits, site.name),
        wait_shares=memory.waits.shares,
        starts=site.starts,
        limits=limited(memory.requests),
        ceilings=await site.ask(lambda: start_view.ceilings_of(backend, config), patient=False) or {},
        report=await site.ask(asks_scheduler, patient=False) if asks_scheduler else None,
    )
    return await asyncio.to_thread(start_view.start_views, seen, asked)
