"""Observing: what the scheduler says of our pilots and of the nodes, and what pilots left behind."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Sequence
from functools import partial

from adaptor.crafting.futures.run_shares import MOST
from adaptor.daemon.evidence import NOTHING, PilotFiles, evidence, own_report, prune
from adaptor.daemon.site import Site
from adaptor.daemon.spool import spool_of
from adaptor.daemon.submitting import take_in_request
from adaptor.decisions.pilot_rules import is_unheard
from adaptor.decisions.pilots import LOSS_WORDS, Pilot
from adaptor.decisions.step import PilotNews
from adaptor.journal.pilot_rows import pilots_in_system
from adaptor.model import PilotState
from adaptor.reports import JobReport, JobState, NodeReport
from adaptor.scheduling.workers import Worker
from adaptor.units import format_duration
from backends.base import SchedulerError
from backends.donation import is_agent

_OUTDATED = "`donation` of its site has changed in the configuration, and no longer allows this pilot"


async def end_outdated(site: Site) -> None:
    """End what runs by another configuration, before the scheduler is asked about it. Raises JournalError."""
    donation = site.memory.settings.donation
    for pilot in site.memory.donated:
        allowed = donation is not None and not (_is_agents(pilot) and donation.preemptible)
        if not pilot.leaving and not allowed:
            site.memory.change(pilot, leaving=_OUTDATED)
            site.explain("withdrawn", _OUTDATED, pilot)
    leaving = [pilot for pilot in site.memory.donated if pilot.leaving == _OUTDATED]
    for pilot in leaving:
        if _is_agents(pilot):
            site.memory.change(pilot, job=None)
        for worker in site.core.broker.of_pilot(pilot.id):
            site.core.broker.tell_to_leave(worker.id, _OUTDATED)
    if leaving:
        await site.core.commit()


def _is_agents(pilot: Pilot) -> bool:
    return pilot.job is not None and is_agent(pilot.job)


async def look_at_pilots(site: Site) -> list[PilotNews] | None:
    """One bulk question on all pilots; None: the scheduler does not answer. Raises JournalError."""
    await end_outdated(site)
    ids = [pilot.job for pilot in site.pilots.values() if pilot.job is not None]
    asked = site.core.now()
    reports = await site.ask(lambda: site.backend.jobs(ids, site.tag_prefix))
    if reports is None:
        return None
    by_tag = {report.tag: report for report in reports}
    # What workers of ended pilots have written is heard before their end is judged.
    ended = (
        report.state.ended for pilot in site.pilots.values() if (report := by_tag.get(pilot.tag)) is not None
    )
    if site.spool is not None and any(ended):
        await site.spool.exchange()
    left = await _evidence(site, by_tag)
    site.memory.unreachable_because = _doubt(site)
    # Jobs of ours that we gave up for lost, or never knew of, must not run on unnoticed.
    known = {pilot.tag for pilot in site.pilots.values()}
    strays = [
        report.id
        for report in reports
        if report.tag not in known and report.state in (JobState.QUEUED, JobState.RUNNING)
    ]
    if strays:
        site.explain("problem", f"cancelled job {', '.join(strays)}: its submit had failed as far as known")
        await site.cancel(strays)
    return [
        _news(site, pilot, by_tag.get(pilot.tag), left.get(pilot.id))
        for pilot in site.pilots.values()
        # What cannot be read now is read the next time: an end is judged with all that there is.
        if pilot.submitted < asked and left.get(pilot.id, NOTHING) is not None
    ]


async def look_at_nodes(site: Site) -> list[NodeReport] | None:
    """The nodes as the scheduler says; None: it does not answer."""
    jobs = [pilot.job for pilot in site.memory.donated if pilot.job is not None]
    return await site.ask(lambda: site.backend.nodes(jobs))


async def _evidence(site: Site, reports: dict[str, JobReport]) -> dict[int, PilotFiles | None]:
    """By pilot that may have ended, or is unheard: the files that it left; None: they cannot be read."""
    now = site.core.now()
    found: dict[int, PilotFiles | None] = {}
    for pilot in list(site.pilots.values()):
        report = reports.get(pilot.tag)
        missing = report is None and pilot.state is not PilotState.SUBMITTING
        unheard = is_unheard(pilot, now) and not pilot.note
        if missing or (report is not None and report.state.ended) or unheard:
            folder = site.folder(pilot)
            found[pilot.id] = await site.ask(partial(evidence, site.machine, folder))
    return found


def _news(site: Site, pilot: Pilot, report: JobReport | None, left: PilotFiles | None) -> PilotNews:
    """Raises JournalError: the request has been changed, and that could not be written down."""
    if report is None and pilot.job is not None and left is not None and left.own_end is not None:
        report = own_report(pilot, left.own_end)
    if report is not None:
        take_in_request(site, pilot, report)
    if left is None:
        return PilotNews(pilot=pilot.id, report=report)
    return PilotNews(
        pilot=pilot.id,
        report=report,
        results=left.results,
        complaints=left.complaints,
        last_words=left.last_words,
    )


def _doubt(site: Site) -> str:
    if site.spool is not None:
        return f"do the nodes see the folder of its spool ({spool_of(site.config)})?"
    if site.remote_folder is not None and site.remote_folder.caveat:
        return site.remote_folder.caveat
    return f"is port {site.core.server.worker_port} of this machine open from the nodes?"


def note_pilot(site: Site, pilot: Pilot, lost: Sequence[Worker]) -> None:
    """Write the state of a pilot down, and how it ended. Raises JournalError.

    `lost`: the workers that ended with it.
    """
    site.write_down(pilot)
    if pilot.state.in_system:
        return
    for worker in lost:
        site.core.forget_worker(worker.id)
    if (outcome := LOSS_WORDS.get(pilot.state)) is not None:
        site.core.losses[pilot.id] = outcome
    if pilot.state is not PilotState.WITHDRAWN:  # that was reported with the decision
        ran = format_duration(pilot.ended - pilot.started) if pilot.started and pilot.ended else ""
        reason = f": {pilot.end_reason}" if pilot.end_reason else ""
        site.explain("ended", f"{pilot.state.value}{f' after {ran}' if ran else ''}{reason}", pilot)


async def note_observed(site: Site, ended: Collection[int]) -> None:
    """Write down what became of the tasks, and charge the pilots that ended. Raises JournalError.

    Old folders are removed when a pilot has ended; where that fails, another time.
    """
    await site.core.commit()
    site.core.treasury.settle(ended)
    if ended:
        in_system = {row.id for row in site.core.journal.read(pilots_in_system)}
        with contextlib.suppress(SchedulerError):
            await asyncio.to_thread(prune, site.machine, site.home, in_system)


log = logging.getLogger(__name__)


def keep_learned(site: Site) -> None:
    """Write down runs, starts and idle nodes that were learned since the last call. Raises JournalError."""
    journal, donation = site.core.journal, site.memory.donation
    new = site.memory.jobs.take_new()
    if new:
        journal.keep_local_runs(site.name, new)
    judged = site.starts.take_new()
    if judged:
        journal.keep_starts_seen(site.name, judged)
    seen = donation is not None and donation.asked and donation.reports is not None
    if donation is not None and seen and donation.is_to_be_kept(site.core.now()):
        journal.keep_idleness(site.name, donation.seen.learner.idleness)


async def read_history(site: Site) -> None:
    """Learn from the scheduler's records, where few jobs were seen yet and the site allows it.

    In a thread of its own: the records may take as long as a command may.
    What fails is only logged: the site learns from what it sees.
    """
    if not site.config.read_history or len(site.memory.jobs) >= MOST:
        return
    try:
        ended = await asyncio.to_thread(site.backend.ended_jobs)
    except SchedulerError as problem:
        log.info("%s: the records of ended jobs were not read: %s", site.name, problem)
        return
    except Exception:  # whatever a backend does wrong here, the site works without
        log.exception("%s: the records of ended jobs were not read", site.name)
        return
    site.memory.jobs.recall(ended)
    if ended:
        log.info("%s: learned from %d jobs that have ended", site.name, len(ended))
