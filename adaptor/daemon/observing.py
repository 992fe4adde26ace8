"""Observing: what the scheduler says of our pilots, and what follows from it."""

from __future__ import annotations

import time

from adaptor.daemon.evidence import complaints, last_words, prune, unsent_results
from adaptor.daemon.pilots import LOSS_WORDS, Pilot, miss, observe
from adaptor.daemon.site_state import SiteState
from adaptor.link.messages import LAST_SECONDS
from adaptor.model import AttemptOutcome, PilotState
from adaptor.units import format_duration
from backends.base import JobReport, JobState

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
    for pilot in list(site.pilots.values()):
        if pilot.submitted < asked:
            _observe(site, pilot, by_tag.get(pilot.tag))
    await site.core.commit()
    await _cancel_strays(site, reports)


def _observe(site: SiteState, pilot: Pilot, report: JobReport | None) -> None:
    now = time.time()
    if report is None:
        alive = bool(site.core.broker.of_pilot(pilot.id))
        changed = miss(pilot, now, alive=alive, settle_time=2 * site.config.command_timeout + 60)
    else:
        changed = observe(pilot, report, now)
        if report.never and not pilot.cancel_reason and pilot.state is PilotState.QUEUED:
            pilot.cancel_reason = f"it could never have started: {report.never}"
    _remark(site, pilot, now)
    if changed:
        site.note_change(pilot)
    if not pilot.in_system:
        _pilot_ended(site, pilot, now)


def _remark(site: SiteState, pilot: Pilot, now: float) -> None:
    """Say so when no worker of a running pilot calls; learn how long the start-up takes."""
    if pilot.state is not PilotState.RUNNING or pilot.started is None:
        return
    if pilot.first_hello is None:
        if now - max(pilot.started, pilot.known_since) > UNREACHED and not pilot.note:
            ran, port = format_duration(now - pilot.started), site.core.server.worker_port
            pilot.note = (
                f"runs for {ran}, but no worker of it has reached the daemon; is port {port} of this machine "
                f"open from the nodes? {complaints(site.folder(pilot))}"
            ).strip()
            site.explain("problem", pilot.note, pilot)
            if not site.core.broker.has_work_for(site.name):
                pilot.cancel_reason = "no task is left, and no worker of it could be told"
        return
    overhead = pilot.first_hello - pilot.started + LAST_SECONDS + 1
    if overhead > site.pad and pilot.known_since <= pilot.started:
        site.pad = min(overhead, site.limits.max_tr / 2)
        site.core.broker.set_longest(site.name, max(1.0, site.limits.max_tr - site.pad))


def _pilot_ended(site: SiteState, pilot: Pilot, now: float) -> None:
    """Take in what it left behind, put its tasks back, and draw the lessons."""
    folder = site.folder(pilot)
    broker = site.core.broker
    for path, results in unsent_results(folder):
        broker.left_behind(pilot.id, site.name, results, now)
        path.unlink(missing_ok=True)
    word = LOSS_WORDS.get(pilot.state, AttemptOutcome.LOST)
    at = min(now, pilot.ended or now)
    for worker in broker.of_pilot(pilot.id):
        broker.lost(worker.id, word, at, now)
        site.core.forget_worker(worker.id)
    del site.pilots[pilot.id]
    _judge_pilot(site, pilot, now, complaints(folder) or last_words(folder))
    if word is not AttemptOutcome.LOST:
        site.core.losses[pilot.id] = word
    prune(site.core.directory, set(site.pilots))
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
    if pilot.worked:
        site.fruitless.succeeded()
    elif pilot.state in _OF_ITS_OWN and any(each.waiting for each in site.core.broker.demands(site.name)):
        site.fruitless.failed(now, pilot.end_reason or pilot.state.value)


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
