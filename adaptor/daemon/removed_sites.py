"""Pilots of sites that left the configuration: reported, and settled once they have certainly ended.

Their scheduler is no longer asked. Pilots of a local site are processes of this machine: they are looked up.
Workers of all of them get the order to leave when they connect. If the site returns to the configuration
before they are settled, they are observed as all others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from adaptor.api import RemovedPilotView
from adaptor.budget.accounting.credits import format_credits, in_credits
from adaptor.budget.accounting.removed import RemovedPilot
from adaptor.daemon.core import Core
from adaptor.daemon.sites import former_local_site
from adaptor.errors import AdaptorError, UsageError
from adaptor.journal.pilot_rows import PilotRow, pilots_in_system, signs_of_life
from adaptor.model import AttemptOutcome
from adaptor.reports import OwnJob
from adaptor.units import format_duration, format_instant
from backends.base import TAG_START

log = logging.getLogger(__name__)

_TOLD: Final = "removed"
"""The kind under which `adaptor why` has them; its first line has the time at which a daemon noticed."""


def removed_pilots(core: Core) -> list[RemovedPilot]:
    """The unsettled pilots of removed sites, the oldest first. Raises JournalError."""
    rows = [row for row in core.journal.read(pilots_in_system) if row.site not in core.terms]
    noticed = core.journal.explained(_TOLD) if rows else {}
    return [_known(core, row, noticed.get(row.id)) for row in sorted(rows, key=lambda row: row.id)]


async def settle_removed(core: Core) -> int:
    """Settle those that have certainly ended, and return how many; note each of the others once.

    Raises JournalError.
    """
    pilots = removed_pilots(core)
    if not pilots:
        return 0
    ended = await asyncio.to_thread(_ended_here, core, pilots)
    before, now = core.journal.explained(_TOLD), core.now()
    settled = 0
    for pilot in pilots:
        if pilot.id in ended or pilot.due <= now:
            why = "its job on this machine has ended"
            if pilot.id not in ended:
                why = f"its latest possible end was {format_instant(pilot.due)}"
            await _settle(core, pilot, ended.get(pilot.id), why)
            settled += 1
        elif pilot.id not in before:
            told = _told(pilot)
            log.warning("pilot %d: %s", pilot.id, told)
            core.journal.explain(now, pilot.site, _TOLD, told, pilot=pilot.id)
    return settled


def _ended_here(core: Core, pilots: Sequence[RemovedPilot]) -> dict[int, float]:
    """Epoch seconds at which pilots of former local sites ended, by pilot. Cancels their queued jobs."""
    ended: dict[int, float] = {}
    for site in {pilot.site for pilot in pilots}:
        own = {
            OwnJob(pilot.job, pilot.tag): pilot
            for pilot in pilots
            if pilot.site == site and pilot.job is not None
        }
        try:
            local = former_local_site(site, core.directory)
            if local is None:
                continue
            local.cancel([job for job, pilot in own.items() if pilot.started is None])
            reports = local.jobs([job.id for job in own], TAG_START)
        except AdaptorError as error:  # its folder cannot be read
            log.warning("pilots of the former site %s cannot be looked up: %s", site, error)
            continue
        ended |= {own[report.own].id: report.end for report in reports if report.own in own and report.end}
    return ended


async def settle_site(core: Core, site: str, ended: float | None) -> int:
    """Settle all of a site now, because its user says that they have ended; how many there were.

    `ended`: when, epoch seconds, if the user knows.

    Raises:
        UsageError: the site is configured, or has no such pilots, or they are to end in the future.
        JournalError: it cannot be written down.
    """
    if site in core.terms:
        raise UsageError(f"site {site} is configured: its scheduler tells when its pilots end")
    now = core.now()
    if ended is not None and ended > now:
        raise UsageError(f"{format_instant(ended)} is in the future: pilots are settled when they have ended")
    found = [pilot for pilot in removed_pilots(core) if pilot.site == site]
    if not found:
        raise UsageError(f"no pilot of a site {site!r} waits to be settled")
    for pilot in found:
        await _settle(core, pilot, ended, "settled by its user")
    return len(found)


def view_of(pilot: RemovedPilot) -> RemovedPilotView:
    return RemovedPilotView(
        pilot=pilot.id,
        site=pilot.site,
        reserved=in_credits(pilot.reserved),
        submitted=pilot.submitted,
        started=pilot.started,
        due=pilot.due,
    )


def _known(core: Core, row: PilotRow, noticed: float | None) -> RemovedPilot:
    first, last = core.journal.read(signs_of_life, row.id)
    reserved = core.treasury.ledger.open_pilots.get(row.id)
    return RemovedPilot(
        id=row.id,
        site=row.site,
        job=row.job,
        tag=row.tag,
        tr=row.tr,
        grace=reserved.tariff.grace if reserved else 0,
        reserved=reserved.amount if reserved else 0,
        submitted=row.submitted,
        started=first if row.started is None else row.started,
        last_sign=last,
        noticed=core.now() if noticed is None else noticed,
    )


def _told(pilot: RemovedPilot) -> str:
    since = (
        f"submitted {format_instant(pilot.submitted)}, not known to have started"
        if pilot.started is None
        else f"started {format_instant(pilot.started)}"
    )
    return (
        f"the configuration no longer has its site {pilot.site}: {since}, it reserves "
        f"{format_credits(pilot.reserved)} credits until {format_instant(pilot.due)}, when it has certainly "
        f"ended; if it has already: adaptor credits --settle {pilot.site}"
    )


async def _settle(core: Core, pilot: RemovedPilot, told: float | None, why: str) -> None:
    """End its attempts, then itself, and charge it."""
    now = core.now()
    for worker in core.broker.of_pilot(pilot.id):
        core.broker.lost(worker.id, AttemptOutcome.LOST, now, now)
        core.forget_worker(worker.id)
    core.broker.forget_pilot(pilot.id)
    await core.commit()
    end = pilot.end(told, now)
    reason = f"its site left the configuration; {why}"
    charged = core.treasury.write_off(pilot.id, pilot.started, now if end is None else end, reason)
    ran = "never started, as far as known"
    if end is not None and pilot.started is not None:
        ran = f"taken to have run for {format_duration(end - pilot.started)}"
    text = f"{ran}: {format_credits(charged)} credits of {format_credits(pilot.reserved)} charged; {why}"
    core.journal.explain(now, pilot.site, "ended", text, pilot=pilot.id)
    log.info("pilot %d of site %s, which left the configuration: %s", pilot.id, pilot.site, text)
