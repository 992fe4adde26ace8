"""Pilots of sites that left the configuration: reported, and settled once they have certainly ended.

Their scheduler is no longer asked. Their workers are told to leave when they connect. If the site returns to
the configuration before they are settled, they are observed as all others.
"""

from __future__ import annotations

import logging
from typing import Final

from adaptor.api import RemovedPilotView
from adaptor.budget.accounting.credits import format_credits, in_credits
from adaptor.budget.accounting.removed import RemovedPilot
from adaptor.daemon.core import Core
from adaptor.errors import UsageError
from adaptor.journal.pilot_rows import PilotRow, pilots_in_system, signs_of_life
from adaptor.model import AttemptOutcome
from adaptor.units import format_duration, format_instant

log = logging.getLogger(__name__)

_TOLD: Final = "removed"
"""The kind under which `adaptor why` has them; when it was told first is when a daemon noticed."""


def removed_pilots(core: Core) -> list[RemovedPilot]:
    """The unsettled pilots of removed sites, the oldest first. Raises JournalError."""
    rows = [row for row in core.journal.read(pilots_in_system) if row.site not in core.terms]
    noticed = core.journal.explained(_TOLD) if rows else {}
    return [_known(core, row, noticed.get(row.id)) for row in sorted(rows, key=lambda row: row.id)]


def tell_of_removed(core: Core) -> None:
    """Note each once: which, how much it reserves, since when, until when. Raises JournalError."""
    pilots = removed_pilots(core)
    before = core.journal.explained(_TOLD) if pilots else {}
    for pilot in pilots:
        if pilot.id not in before:
            told = _told(pilot)
            log.warning("pilot %d: %s", pilot.id, told)
            core.journal.explain(core.now(), pilot.site, _TOLD, told, pilot=pilot.id)


async def settle_removed(core: Core) -> int:
    """Settle those that have certainly ended; how many there were. Raises JournalError."""
    now = core.now()
    due = [pilot for pilot in removed_pilots(core) if pilot.due <= now]
    for pilot in due:
        await _settle(core, pilot, None, f"its latest possible end was {format_instant(pilot.due)}")
    return len(due)


async def settle_site(core: Core, site: str, ended: float | None) -> int:
    """Settle all of a site now, because its user says that they have ended; how many there were.

    Args:
        ended: when, epoch seconds, if the user knows.

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
