"""What is learned of local jobs: kept over restarts, and asked of the scheduler's records once."""

from __future__ import annotations

import asyncio
import logging

from adaptor.crafting.futures.run_shares import MOST
from adaptor.daemon.site import Site
from backends.base import SchedulerError

log = logging.getLogger(__name__)


def keep_learned(site: Site) -> None:
    """Write down the runs and the idle nodes that were learned since the last call. Raises JournalError."""
    journal, donation = site.core.journal, site.memory.donation
    new = site.memory.jobs.take_new()
    if new:
        journal.keep_local_runs(site.name, new)
    seen = donation is not None and donation.asked and donation.reports is not None
    if donation is not None and seen and donation.is_to_be_kept(site.core.now()):
        journal.keep_idleness(site.name, donation.seen.learner.idleness)


async def read_history(site: Site) -> None:
    """Learn from the scheduler's records, where few jobs were seen yet and the site allows it.

    In a thread of its own and beside all other questions: the records may take as long as a command may.
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
