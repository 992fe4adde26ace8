"""Changing queued requests in their place: what they may cost is written down first, then the scheduler is
asked; what it has of a request in the end is read from its answers (`adaptor.daemon.observing`)."""

from __future__ import annotations

import asyncio

from adaptor.budget.errors import OverBudgetError
from adaptor.crafting.situation import Reshape
from adaptor.daemon.site import Site
from adaptor.daemon.submitting import order_of
from adaptor.decisions.pilots import Pilot, request_told
from adaptor.decisions.requests import billed
from adaptor.errors import AdaptorError, JournalError
from adaptor.model import Request
from adaptor.reports import JobReport
from adaptor.units import format_duration
from backends.base import ChangeRefused


async def reshape(site: Site, action: Reshape) -> None:
    """Change a queued request, unless it has started meanwhile. Raises JournalError."""
    pilot, request = site.memory.reshapable(action), action.crafted.request
    if pilot is None or pilot.job is None:
        return
    job = pilot.job
    try:
        site.core.treasury.hold_for(pilot.id, billed(site.memory.rules, request))
    except OverBudgetError as error:  # another site has spent it since this was decided
        site.withhold(str(error))
        return
    try:
        await asyncio.to_thread(
            lambda: site.backend.reshape(job, order_of(site, pilot, request, action.demand))
        )
    except JournalError:
        raise
    except AdaptorError as error:
        pilot.fixed = isinstance(error, ChangeRefused)
        site.explain("problem", f"its request is not changed as far as known: {error}", pilot)
        site.wake.set()
        return
    pilot.predicted_start = action.crafted.predicted_start
    _take_in(site, pilot, request, action.crafted.reason)
    site.explain("reshaped", action.crafted.reason, pilot)


def take_in_request(site: Site, pilot: Pilot, report: JobReport) -> None:
    """Take in what the scheduler says that a pilot asks for. Raises JournalError."""
    reserved = site.core.treasury.ledger.open_pilots.get(pilot.id)
    if pilot.node or reserved is None:
        return
    known, held = billed(site.memory.rules, pilot.request), Request(reserved.p, reserved.tr)
    told = request_told(pilot, report, known, held)
    if told != known:
        before = f"{known.p} × {format_duration(known.tr)}"
        _take_in(site, pilot, told, None)
        site.explain(
            "reshaped", f"the scheduler has {told.p} × {format_duration(told.tr)} of it, not {before}", pilot
        )
    elif told != held:
        with site.core.journal.transaction() as db:
            site.core.treasury.change(db, pilot.id, told)


def _take_in(site: Site, pilot: Pilot, request: Request, reason: str | None) -> None:
    """The request of a pilot is another one now; its reservation changes with it. Raises JournalError."""
    treasury, asked = site.core.treasury, billed(site.memory.rules, request)
    pilot.reshape(request, site.core.now())
    site.core.journal.change_request(
        pilot.id, request, pilot.predicted_start, reason, lambda db, id: treasury.change(db, id, asked)
    )
