"""Observing: what the scheduler says of our pilots, and what follows from it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial

from adaptor.daemon.credits.metering import read_meter
from adaptor.daemon.evidence import NOTHING, Evidence, evidence, prune
from adaptor.daemon.pilots import LOSS_WORDS, Pilot, miss, observe
from adaptor.daemon.site_state import SiteState
from adaptor.daemon.spool.setup import spool_of
from adaptor.model import AttemptOutcome, PilotState
from adaptor.protocol.messages import LAST_SECONDS
from adaptor.reports import JobReport, JobState
from adaptor.units import format_duration
from backends.base import SchedulerError

UNREACHED = 40.0
"""Seconds without a word from any worker after which a running pilot is remarked on."""
_OF_ITS_OWN = frozenset({PilotState.COMPLETED, PilotState.FAILED, PilotState.VANISHED, PilotState.WALLTIME})
"""Ends that nobody brought about from outside."""


async def observe_pilots(site: SiteState) -> None:
    """One bulk question on all pilots. Raises JournalError."""
    if not site.pilots:
        return
    ids = [pilot.job for pilot in site.pilots.values() if pilot.job is not None]
    asked = time.time()
    reports = await site.ask(lambda: site.backend.jobs(ids, site.tag_prefix))
    if reports is None:
        return
    by_tag = {report.tag: report for report in reports}
    await _hear_last_words(site, by_tag)
    left = await _evidence(site, by_tag)
    before = set(site.pilots)
    for pilot in list(site.pilots.values()):
        # What cannot be read now is read the next time: an end is judged with all that there is.
        if pilot.submitted < asked and left.get(pilot.id, NOTHING) is not None:
            _observe(site, pilot, by_tag.get(pilot.tag), left.get(pilot.id) or NOTHING)
    await site.core.commit()
    site.core.treasury.settle(before - set(site.pilots))
    if left:
        await _prune(site)
    await _cancel_strays(site, reports)


async def _hear_last_words(site: SiteState, reports: dict[str, JobReport]) -> None:
    """What workers of ended pilots have written is heard before their end is judged."""
    ended = (
        report.state.ended for pilot in site.pilots.values() if (report := reports.get(pilot.tag)) is not None
    )
    if site.spool is not None and any(ended):
        await site.spool.exchange()


async def _evidence(site: SiteState, reports: dict[str, JobReport]) -> dict[int, Evidence | None]:
    """What pilots have left that may have ended, or that nobody has heard of; None: it cannot be read."""
    now = time.time()
    found: dict[int, Evidence | None] = {}
    for pilot in list(site.pilots.values()):
        report = reports.get(pilot.tag)
        missing = report is None and pilot.state is not PilotState.SUBMITTING
        if missing or (report is not None and report.state.ended) or _is_silent(pilot, now):
            folder = site.folder(pilot)
            found[pilot.id] = await site.ask(partial(evidence, site.machine, folder))
    return found


async def _prune(site: SiteState) -> None:
    """Old folders go when something has ended; where they cannot, another time."""
    in_system = {row.id for row in site.core.journal.pilots_in_system()}
    with contextlib.suppress(SchedulerError):
        await asyncio.to_thread(prune, site.machine, site.home, in_system)


def _observe(site: SiteState, pilot: Pilot, report: JobReport | None, left: Evidence) -> None:
    now = time.time()
    if report is None:
        alive = bool(site.core.broker.of_pilot(pilot.id))
        changed = miss(pilot, now, alive=alive, settle_time=2 * site.config.command_timeout + 60)
    else:
        changed = observe(pilot, report, now)
        if report.never and not pilot.cancel_reason and pilot.state is PilotState.QUEUED:
            pilot.cancel_reason = f"it could never have started: {report.never}"
    _remark(site, pilot, now, left)
    read_meter(site, pilot)
    if changed:
        site.note_change(pilot)
    if not pilot.in_system:
        _pilot_ended(site, pilot, now, left)


def _is_silent(pilot: Pilot, now: float) -> bool:
    """Whether it runs, no worker of it has called, and nobody has remarked on that."""
    if pilot.state is not PilotState.RUNNING or pilot.started is None or pilot.first_hello is not None:
        return False
    return now - max(pilot.started, pilot.known_since) > UNREACHED and not pilot.note


def _remark(site: SiteState, pilot: Pilot, now: float, left: Evidence) -> None:
    """Say so when no worker of a running pilot calls; learn how long the start-up takes."""
    if pilot.state is not PilotState.RUNNING or pilot.started is None:
        return
    if pilot.first_hello is None:
        if _is_silent(pilot, now):
            ran = format_duration(now - pilot.started)
            pilot.note = (
                f"runs for {ran}, but no worker of it has reached the daemon; "
                f"{_doubt(site)} {left.complaints}"
            ).strip()
            site.explain("problem", pilot.note, pilot)
            if not site.core.broker.has_work_for(site.name):
                pilot.cancel_reason = "no task is left, and no worker of it could be told"
        return
    if pilot.node:
        return
    overhead = min(pilot.first_hello - pilot.started + LAST_SECONDS + 1, site.limits.max_tr / 2)
    if overhead > site.pad and pilot.known_since <= pilot.started:
        site.pad = overhead
        site.core.broker.set_longest(site.name, max(1.0, site.limits.max_tr - site.pad))


def _doubt(site: SiteState) -> str:
    """What may be in the way of its workers."""
    if site.spool is not None:
        return f"do the nodes see the folder of its spool ({spool_of(site.config)})?"
    if site.remote_folder is not None and site.remote_folder.caveat:
        return site.remote_folder.caveat
    return f"is port {site.core.server.worker_port} of this machine open from the nodes?"


def _pilot_ended(site: SiteState, pilot: Pilot, now: float, left: Evidence) -> None:
    """Take in what it left behind, put its tasks back, and draw the lessons."""
    broker = site.core.broker
    if left.results:
        broker.left_behind(pilot.id, site.name, left.results, now)
    word = LOSS_WORDS.get(pilot.state, AttemptOutcome.LOST)
    at = min(now, pilot.ended or now)
    for worker in broker.of_pilot(pilot.id):
        broker.lost(worker.id, word, at, now)
        site.core.forget_worker(worker.id)
    broker.forget_pilot(pilot.id)
    if site.lender is not None and pilot.node and pilot.state is PilotState.PREEMPTED:
        site.lender.give_back(pilot.node, now)
    del site.pilots[pilot.id]
    _judge_pilot(site, pilot, now, left.complaints or left.last_words)
    if word is not AttemptOutcome.LOST:
        site.core.losses[pilot.id] = word
    site.wake.set()


def _judge_pilot(site: SiteState, pilot: Pilot, now: float, words: str) -> None:
    """Tell how it ended; pilots that never run a task must not follow one another for ever."""
    ran = format_duration(pilot.ended - pilot.started) if pilot.started and pilot.ended else ""
    if pilot.state is PilotState.FAILED and words and words not in pilot.end_reason:
        pilot.end_reason = f"{pilot.end_reason}: {words}" if pilot.end_reason else words
        site.note_change(pilot)
    reason = f": {pilot.end_reason}" if pilot.end_reason else ""
    if pilot.state is not PilotState.WITHDRAWN:  # that was told when it was decided
        site.explain("ended", f"{pilot.state.value}{f' after {ran}' if ran else ''}{reason}", pilot)
    fruitless = site.fruitless_of(pilot)
    if pilot.worked:
        fruitless.succeeded()
    elif pilot.state in _OF_ITS_OWN and site.core.broker.has_waiting(site.name):
        fruitless.failed(now, pilot.end_reason or pilot.state.value)


async def _cancel_strays(site: SiteState, reports: list[JobReport]) -> None:
    """Jobs of ours that we gave up for lost, or never knew of, must not run on unnoticed."""
    known = {pilot.tag for pilot in site.pilots.values()}
    strays = [
        report.id
        for report in reports
        if report.tag not in known and report.state in (JobState.QUEUED, JobState.RUNNING)
    ]
    if strays:
        site.explain("problem", f"cancelled {', '.join(strays)}: left over from a submit given up for lost")
        await site.cancel(strays)
