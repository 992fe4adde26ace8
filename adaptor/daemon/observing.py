"""Observing: what the scheduler says of our pilots and of the nodes, and what pilots left behind."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.crafting.futures.run_shares import MOST
from adaptor.daemon.evidence import PilotFiles, evidence, own_report, prune
from adaptor.daemon.remote.machines import python_of
from adaptor.daemon.site import Site
from adaptor.daemon.start_view import SiteSeen, follow_starts, look_of
from adaptor.decisions.pilot_rules import is_unheard
from adaptor.decisions.pilots import LEFT_OUT, LOSS_WORDS, Absence, Pilot
from adaptor.decisions.questions import PilotNews, Reply
from adaptor.journal.pilot_rows import pilots_in_system
from adaptor.model import EndedJob, PilotState
from adaptor.reports import JobReport, JobState, NodeReport
from adaptor.scheduling.workers import Worker
from backends.base import SchedulerError
from backends.registry import backend_type

_READ_AT_ONCE = 50  # folders of pilots: hundreds may end at once, and their files must fit into memory


async def look_at_pilots(site: Site) -> Reply:
    """One bulk question on all pilots.

    A job is a pilot's by its tag, and a stray by the prefix of the site's tags. A number says nothing:
    the scheduler may have given it to another job.
    """
    ids = list(dict.fromkeys(pilot.job for pilot in site.pilots.values() if pilot.job is not None))
    asked = site.core.now()
    reports = await site.ask(lambda: site.backend.jobs(ids, site.tag_prefix))
    if reports is None:
        return Reply(now=site.core.now())
    found = Found(reports)
    # What workers of ended pilots have written is heard before their end is judged.
    ended = (report.state.ended for pilot in site.pilots.values() if (report := found.of(pilot)) is not None)
    if site.spool is not None and any(ended):
        await site.spool.exchange()
    # What cannot be read now is read the next time: an end is judged with all that there is.
    pilots = [pilot for pilot in site.pilots.values() if pilot.submitted < asked]
    files = await _files_of(site, [each for each in pilots if _to_read(site, each, found.of(each))])
    news = [each for pilot in pilots if (each := _news(site, pilot, found, files.get(pilot.id))) is not None]
    known = {pilot.tag for pilot in site.pilots.values()}
    return Reply(
        now=site.core.now(),
        pilots=news,
        strays=[
            report.own
            for report in reports
            if report.tag.startswith(site.tag_prefix)
            and report.tag not in known
            and report.state in (JobState.QUEUED, JobState.RUNNING)
        ],
    )


class Found:
    """Jobs that the scheduler reports, by tag and by number."""

    def __init__(self, reports: Sequence[JobReport]) -> None:
        self._by_tag: dict[str, list[JobReport]] = {}
        self._by_id: dict[str, JobReport] = {}
        for report in reports:
            self._by_id[report.id] = report
            if report.tag:
                self._by_tag.setdefault(report.tag, []).append(report)

    def of(self, pilot: Pilot) -> JobReport | None:
        """The report with the pilot's tag; of several, the one with its number, else the last."""
        same = self._by_tag.get(pilot.tag, [])
        return next((report for report in same if report.id == pilot.job), same[-1] if same else None)

    def absence(self, pilot: Pilot) -> Absence:
        """The scheduler's answer about a pilot that its reports do not name."""
        report = None if pilot.job is None else self._by_id.get(pilot.job)
        if report is None:
            return LEFT_OUT
        gone = report.state is JobState.GONE
        return Absence(denied=gone, other="" if gone else report.tag or "without a name")


async def look_at_nodes(site: Site) -> list[NodeReport] | None:
    """The nodes as the scheduler says; None: it does not answer."""
    jobs = [pilot.job for pilot in site.memory.donated if pilot.job is not None]
    return await site.ask(lambda: site.backend.nodes(jobs))


def _to_read(site: Site, pilot: Pilot, report: JobReport | None) -> bool:
    """Whether its files are wanted: it may have ended, or is unheard."""
    missing = report is None and pilot.state is not PilotState.SUBMITTING
    unheard = is_unheard(pilot, site.core.now()) and not pilot.note
    return missing or (report is not None and report.state.ended is not None) or unheard


async def _files_of(site: Site, pilots: Collection[Pilot]) -> dict[int, PilotFiles]:
    """Files of each pilot, without those that cannot be read at the moment."""
    folders = {pilot.id: site.folder(pilot) for pilot in pilots}
    arrays = [(folders[pilot.id], folders[pilot.id].parent if pilot.array else None) for pilot in pilots]
    found: dict[Path, PilotFiles] = {}
    for begin in range(0, len(arrays), _READ_AT_ONCE):
        some = dict(arrays[begin : begin + _READ_AT_ONCE])
        found |= await site.ask(partial(evidence, site.machine, some)) or {}
    return {id: found[folder] for id, folder in folders.items() if folder in found}


def _news(site: Site, pilot: Pilot, found: Found, left: PilotFiles | None) -> PilotNews | None:
    """News of a pilot, with the files that were read of it; None: they cannot be read."""
    report = found.of(pilot)
    if left is None:
        wanted = _to_read(site, pilot, report)
        return None if wanted else PilotNews(pilot=pilot.id, report=report, absence=found.absence(pilot))
    if report is None and pilot.job is not None and left.own_end is not None:
        report = own_report(pilot, left.own_end)
    left = msgspec.structs.replace(left, way_out=_way_out(site, pilot, left))
    return PilotNews(pilot=pilot.id, report=report, absence=found.absence(pilot), left=left)


def doubt(site: Site) -> str:
    """A likely reason why workers do not reach the daemon, as a question to the user."""
    if site.spool is not None:
        return f"do the nodes see the folder of its spool ({site.config.spool})?"
    if site.remote_folder is not None and site.remote_folder.caveat:
        return site.remote_folder.caveat
    return (
        f"is port {site.core.server.worker_port} of this machine open from the nodes? If not, set "
        "`daemon.host` to an address that they know, `daemon.port` to one that is open, or `spool`"
    )


def _way_out(site: Site, pilot: Pilot, left: PilotFiles) -> str:
    """The way out for the user of a pilot that failed before any of its workers called."""
    if left.complaints:
        return doubt(site)
    if "prologue failed" in left.last_words:
        return ""
    start = (
        f"does {python_of(site.config)} start on the nodes, with the adaptor installed? Set `python`, or "
        "load a module by `prologue`"
    )
    if left.last_words:
        return start
    place = "the state directory ($ADAPTOR_DIR)" if site.config.ssh is None else "`ssh.directory`"
    return f"do the nodes see {site.folder(pilot)}, is {place} on a file system that they share? Or {start}"


def note_pilot(site: Site, pilot: Pilot, lost: Sequence[Worker]) -> None:
    """Write the state of a pilot down. Raises JournalError.

    `lost`: the workers that ended with it.
    """
    site.write_down(pilot)
    if pilot.held is not None:
        site.core.treasury.hold(pilot.id, pilot.held)
    for worker in lost:
        site.core.forget_worker(worker.id)
    if (outcome := LOSS_WORDS.get(pilot.state)) is not None:
        site.core.losses[pilot.id] = outcome
    if pilot.state is PilotState.REFUSED:  # no task ran in it
        site.core.treasury.settle([pilot.id])


def note_pilots(site: Site, pilots: Sequence[Pilot]) -> None:
    """Write the states of pilots down, in one transaction. Raises JournalError."""
    with site.core.journal.transaction():
        for pilot in pilots:
            note_pilot(site, pilot, ())


async def charge(site: Site, pilots: Collection[int]) -> None:
    """Charge pilots that ended, and remove folders of older ones. Raises JournalError.

    Where folders cannot be removed, they are another time.
    """
    site.core.treasury.settle(pilots)
    rows = site.core.journal.read(pilots_in_system)
    in_system = {number for row in rows for number in (row.id, row.array) if number is not None}
    with contextlib.suppress(SchedulerError):
        await asyncio.to_thread(prune, site.machine, site.home, in_system, site.ended_in_arrays(pilots))


log = logging.getLogger(__name__)


def keep_learned(site: Site) -> None:
    """Write down what was learned of runs, starts, sizes and idle nodes since the last call.

    Raises JournalError.
    """
    journal, donation = site.core.journal, site.memory.donation
    new = site.memory.jobs.take_new()
    if new:
        journal.keep_local_runs(site.name, new)
    sizes = site.memory.sizes.take_new()
    if sizes is not None:
        journal.keep_tried_sizes(site.name, msgspec.msgpack.encode(sizes))
    starts = site.starts.take_new()
    if starts is not None:
        journal.keep_starts_seen(site.name, starts)
    seen = donation is not None and donation.asked and donation.reports is not None
    if donation is not None and seen and donation.is_to_be_kept(site.core.now()):
        journal.keep_idleness(site.name, donation.seen.learner.idleness)


async def read_history(site: Site) -> None:
    """Learn from the scheduler's records, where few jobs were seen yet and the site allows it."""
    if site.config.read_history and len(site.memory.jobs) < MOST:
        site.memory.jobs.recall(await _ended_jobs(site))


async def _ended_jobs(site: Site) -> list[EndedJob]:
    """Jobs of the scheduler's records; none if it does not tell.

    In a thread of its own: the records may take as long as a command may.
    What fails is only logged: the site learns from what it sees.
    """
    try:
        ended = await asyncio.to_thread(site.backend.ended_jobs)
    except SchedulerError as problem:
        log.info("%s: the records of ended jobs were not read: %s", site.name, problem)
        return []
    except Exception:  # whatever a backend does wrong here, the site works without
        log.exception("%s: the records of ended jobs were not read", site.name)
        return []
    if ended:
        log.info("%s: learned from %d jobs that have ended", site.name, len(ended))
    return ended


RECORDS_REACH = 2 * 86_400.0
"""Seconds after which records of ended jobs are read again; that is how far those of Slurm reach back."""


async def read_newer_history(site: Site) -> None:
    """Learn from the scheduler's records again, if no step has looked at the queue for `RECORDS_REACH`.

    Raises JournalError.
    """
    now = site.core.now()
    if now < max(site.records_read, site.memory.jobs.looked_at) + RECORDS_REACH:
        return
    site.records_read = now
    site.memory.jobs.recall(await _ended_jobs(site), newest=True)
    keep_learned(site)


LOOKS_FOR_STARTS = 900.0
"""Seconds between two looks at a queue that no bag and no question needs: on Slurm 28 commands an hour. Waits
are known to half of that."""


def learns_starts(config: SiteConfig) -> bool:
    """Whether the queue of a site is looked at for the waits of others where nothing else looks."""
    return config.read_history and not backend_type(config.backend).on_this_machine


async def learn_starts(site: Site) -> None:
    """Look at the queue of a site, if nothing has looked for `LOOKS_FOR_STARTS`. Raises JournalError.

    The waits of jobs of anyone are learned, and the starts of some that wait are forecast, to be judged
    later. How long jobs run is not learned here (`read_newer_history`): those that begin and end between two
    such looks are not seen. The median share of its limit that a job runs would be 0.57 instead of 0.27 (all
    recorded jobs of CTC SP2), 0.54 instead of 0.16 (SDSC SP2), 0.76 instead of 0.10 (COARE).
    """
    now = asyncio.get_running_loop().time()
    if site.queue_asked is None:
        site.queue_asked = now
    if now < site.queue_asked + max(LOOKS_FOR_STARTS, site.memory.settings.poll):
        return
    queue = await site.look(patient=False)
    if queue is None:
        return
    memory, backend = site.memory, site.backend
    shares, own = memory.jobs.copy(), memory.own_jobs
    shares.looked(queue, own)
    seen = SiteSeen(
        name=site.name,
        queue=site.with_ends_of_pilots(queue),
        shares=shares,
        look=look_of(backend),
        slot_margin=float(backend.slot_margin),
        own=own,
        wait_shares=memory.waits.shares,
        starts=site.starts,
    )
    await asyncio.to_thread(follow_starts, seen)
    keep_learned(site)
