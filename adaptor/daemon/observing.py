"""Observing: what the scheduler says of our pilots, and what they left behind."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

from adaptor.daemon.evidence import NOTHING, Evidence, evidence, own_report, prune
from adaptor.daemon.site import Site
from adaptor.daemon.spool.setup import spool_of
from adaptor.decisions.pilot_rules import is_unheard
from adaptor.decisions.pilots import Pilot, miss, observe
from adaptor.model import AttemptOutcome, PilotState, Request
from adaptor.reports import JobReport, JobState
from adaptor.units import format_duration
from backends.base import SchedulerError


async def observe_pilots(site: Site) -> None:
    """One bulk question on all pilots. Raises JournalError."""
    if not site.pilots:
        return
    ids = [pilot.job for pilot in site.pilots.values() if pilot.job is not None]
    asked = site.core.now()
    reports = await site.ask(lambda: site.backend.jobs(ids, site.tag_prefix))
    if reports is None:
        return
    by_tag = {report.tag: report for report in reports}
    await _hear_last_words(site, by_tag)
    left = await _evidence(site, by_tag)
    site.memory.unreachable_because = _doubt(site)
    before = set(site.pilots)
    for pilot in list(site.pilots.values()):
        # What cannot be read now is read the next time: an end is judged with all that there is.
        if pilot.submitted < asked and left.get(pilot.id, NOTHING) is not None:
            _observe(site, pilot, by_tag.get(pilot.tag), left.get(pilot.id))
    site.memory.watch(site.core.broker, site.core.now())
    await site.core.commit()
    site.core.treasury.settle(before - set(site.pilots))
    if left:
        await _prune(site)
    await _cancel_strays(site, reports)


async def _hear_last_words(site: Site, reports: dict[str, JobReport]) -> None:
    """What workers of ended pilots have written is heard before their end is judged."""
    ended = (
        report.state.ended for pilot in site.pilots.values() if (report := reports.get(pilot.tag)) is not None
    )
    if site.spool is not None and any(ended):
        await site.spool.exchange()


async def _evidence(site: Site, reports: dict[str, JobReport]) -> dict[int, Evidence | None]:
    """What pilots have left that may have ended, or that nobody has heard of; None: it cannot be read."""
    now = site.core.now()
    found: dict[int, Evidence | None] = {}
    for pilot in list(site.pilots.values()):
        report = reports.get(pilot.tag)
        missing = report is None and pilot.state is not PilotState.SUBMITTING
        unheard = is_unheard(pilot.facts(None), now) and not pilot.note
        if missing or (report is not None and report.state.ended) or unheard:
            folder = site.folder(pilot)
            found[pilot.id] = await site.ask(partial(evidence, site.machine, folder))
    return found


async def _prune(site: Site) -> None:
    """Old folders go when something has ended; where they cannot, another time."""
    in_system = {row.id for row in site.core.journal.pilots_in_system()}
    with contextlib.suppress(SchedulerError):
        await asyncio.to_thread(prune, site.machine, site.home, in_system)


def _observe(site: Site, pilot: Pilot, report: JobReport | None, left: Evidence | None) -> None:
    now, core = site.core.now(), site.core
    if report is None and pilot.job is not None and left is not None and left.own_end is not None:
        report = own_report(pilot, left.own_end)
    if report is None:
        alive = bool(core.broker.of_pilot(pilot.id))
        changed = miss(pilot, now, alive=alive, settle_time=2 * site.config.command_timeout + 60)
    else:
        before = pilot.request
        changed = observe(pilot, report, now)
        if pilot.request != before:
            _tell_altered(site, pilot, before)
    site.memory.meter(core.broker, pilot, core.treasury.ledger)
    if left is not None and not pilot.note:
        pilot.unheard = left.complaints
    if changed:
        site.note_change(pilot)
    if not pilot.in_system:
        _pilot_ended(site, pilot, now, left or NOTHING)


def _tell_altered(site: Site, pilot: Pilot, before: Request) -> None:
    site.core.treasury.alter(pilot.id, pilot.request)
    was, now = (f"{request.p} × {format_duration(request.tr)}" for request in (before, pilot.request))
    site.explain("state", f"the scheduler has it as {now}, no longer as {was}", pilot)


def _doubt(site: Site) -> str:
    """What may be in the way of its workers."""
    if site.spool is not None:
        return f"do the nodes see the folder of its spool ({spool_of(site.config)})?"
    if site.remote_folder is not None and site.remote_folder.caveat:
        return site.remote_folder.caveat
    return f"is port {site.core.server.worker_port} of this machine open from the nodes?"


def _pilot_ended(site: Site, pilot: Pilot, now: float, left: Evidence) -> None:
    """Take in what it left behind, put its tasks back, and tell how it ended."""
    broker = site.core.broker
    if left.results:
        broker.left_behind(pilot.id, site.name, left.results, now)
    word, lost = site.memory.ended(broker, pilot, now)
    for worker in lost:
        site.core.forget_worker(worker.id)
    _tell_end(site, pilot, left.complaints or left.last_words)
    site.memory.judge(broker, pilot, now)
    if word is not AttemptOutcome.LOST:
        site.core.losses[pilot.id] = word
    site.wake.set()


def _tell_end(site: Site, pilot: Pilot, words: str) -> None:
    """`words`: what its workers had to say."""
    ran = format_duration(pilot.ended - pilot.started) if pilot.started and pilot.ended else ""
    if pilot.state is PilotState.FAILED and words and words not in pilot.end_reason:
        pilot.end_reason = f"{pilot.end_reason}: {words}" if pilot.end_reason else words
        site.note_change(pilot)
    reason = f": {pilot.end_reason}" if pilot.end_reason else ""
    if pilot.state is not PilotState.WITHDRAWN:  # that was told when it was decided
        site.explain("ended", f"{pilot.state.value}{f' after {ran}' if ran else ''}{reason}", pilot)


async def _cancel_strays(site: Site, reports: list[JobReport]) -> None:
    """Jobs of ours that we gave up for lost, or never knew of, must not run on unnoticed."""
    known = {pilot.tag for pilot in site.pilots.values()}
    strays = [
        report.id
        for report in reports
        if report.tag not in known and report.state in (JobState.QUEUED, JobState.RUNNING)
    ]
    if strays:
        site.explain("problem", f"cancelled job {', '.join(strays)}: its submit had failed as far as known")
        await site.cancel(strays)
