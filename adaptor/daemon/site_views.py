"""The sites as a user is shown them by the running daemon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.daemon.site_state import SiteState
from adaptor.daemon.slots_view import slots_view, unread
from adaptor.daemon.viewing import rules_of
from adaptor.errors import UsageError
from adaptor.journal.database import guarded
from adaptor.journal.donation_views import NOTHING_DONATED, donation_of_site
from adaptor.model import PilotState
from adaptor.views import DonationView, SiteView, SlotsView


def site_view(site: SiteState) -> SiteView:
    running = [pilot for pilot in site.requests if pilot.state is PilotState.RUNNING]
    return SiteView(
        name=site.name,
        backend=site.config.backend,
        heuristic=site.config.heuristic,
        max_pending_requests=site.limits.max_pending_requests if site.limits_known else None,
        max_proc=site.limits.max_proc if site.limits_known else None,
        max_tr=float(site.limits.max_tr) if site.limits_known else None,
        queued=len(site.requests) - len(running),
        running=len(running),
        processors=site.seen.processors if site.seen else None,
        observed=_observed(site),
        problem=site.problem,
        since=site.problem_since,
        held=sum(pilot.request.p for pilot in running),
        late=site.waits.worst(time.time()),
        donation=_donation(site),
    )


def _observed(site: SiteState) -> float | None:
    """When its queue, or its nodes, were last read."""
    read = [site.seen.now] if site.seen else []
    if site.lender is not None and site.lender.observed is not None:
        read.append(site.lender.observed)
    return max(read, default=None)


def _donation(site: SiteState) -> DonationView | None:
    journal = site.core.journal
    with guarded(journal.path):
        told = donation_of_site(journal.connection, site.name, time.time())
    if site.lender is None:
        return told
    told = told or NOTHING_DONATED
    return msgspec.structs.replace(told, idle=site.lender.idle, reason=site.lender.reason)


async def read_slots(sites: Mapping[str, SiteState], names: Sequence[str]) -> list[SlotsView]:
    """The free slots of these sites (empty: of all), read now, all at the same time.

    Raises:
        UsageError: there is no such site.
    """
    for name in names:
        if name not in sites:
            raise UsageError(f"there is no site {name!r}; the configuration has: {', '.join(sites)}")
    return list(await asyncio.gather(*(_read(sites[name]) for name in names or sites)))


async def _read(site: SiteState) -> SlotsView:
    queue = await site.ask(site.backend.queue_state)
    if queue is None:
        return unread(site.name, site.problem)
    site.seen = queue
    return slots_view(site.name, queue, rules_of(site))
