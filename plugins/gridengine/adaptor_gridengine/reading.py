"""State that the queues of a site share: one reading of the qmaster serves them all."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection

from adaptor.config.schema import SiteConfig
from adaptor.reports import TURN, Hold, JobReport, JobState, OwnJob, Wait
from adaptor_gridengine import parse
from adaptor_gridengine.parse import Cell, EndedRecord, GridJob
from adaptor_gridengine.state import GridSeen, state_of
from backends.arrays import tag_of
from backends.machines.base import Machine
from backends.observed.backend import Reading
from backends.observed.rows import ReservationRow

_ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC"}
"""Plain words, and times in UTC. qsub hands nothing of the environment on (no `-V`)."""
_MOST_IN_ARRAY = 1000
"""Grid Engine's own `max_aj_tasks` is 75,000; what is refused is submitted in parts."""
_CONFIGURED = 600.0  # seconds for which what is configured is not asked again
_NO_RECORDS = "no jobs running since startup"  # qacct's message before the first job of a cell has ended


class Master(Reading[GridSeen]):
    """Grid Engine as one site sees it, in whatever queue. Asks nothing yet.

    Raises (every method):
        SchedulerError: no answer, or not one that we can read.
    """

    most_in_array = _MOST_IN_ARRAY

    def __init__(self, site: SiteConfig, machine: Machine) -> None:
        super().__init__(site, machine, lambda own: {**own, **_ENVIRONMENT})
        self._cell: tuple[float, Cell] | None = None

    def see(self) -> GridSeen:
        """Look at everything, of all users."""
        now, cell = time.time(), self.cell()
        text = self._qstat("-F", "slots,h_vmem", "-u", "*")
        return GridSeen(
            now=now,
            cell=cell,
            instances=parse.instances(text),
            jobs=parse.jobs(text),
            reservations=self._reservations(),
        )

    def own_jobs(self) -> dict[OwnJob, GridJob]:
        """Jobs in the system, and those that have ended lately, as far as the qmaster knows them (state `z`).

        Tasks of an array are listed one by one, each with its own pilot's tag.
        """
        return {
            own: job
            for job in parse.jobs(self._qstat("-u", self.commands.user(), "-s", "prsz"))
            for id in job.elements(_MOST_IN_ARRAY)
            for own in [own_job(id, job.name)]
        }

    def records(self, since: float, user: str = "") -> list[EndedRecord] | None:
        """Ended jobs of all users, or of one, that started since then; None: we may not read them."""
        begin = time.strftime("%Y%m%d%H%M", time.gmtime(since))
        answer = self.commands.run("qacct", *(("-o", user) if user else ()), "-b", begin, "-j")
        if answer.status and _NO_RECORDS not in answer.output + answer.errors:
            return None
        return parse.ended(answer.output)

    def cell(self) -> Cell:
        if self._cell is None or time.monotonic() - self._cell[0] > _CONFIGURED:
            ask = self.commands.ask
            queues = parse.queues(ask("qconf", "-sq", ",".join(ask("qconf", "-sql").split())))
            names = self._optional("qconf", "-spl").split()
            self._cell = (
                time.monotonic(),
                Cell(
                    queues={queue.name: queue for queue in queues},
                    pes={name: parse.pe(ask("qconf", "-sp", name)) for name in names},
                    max_jobs=parse.max_jobs(ask("qconf", "-sconf")),
                    default_memory=parse.default_memory(ask("qconf", "-sc")),
                ),
            )
        return self._cell[1]

    def version(self) -> str:
        """Version of Grid Engine, such as `SGE 8.1.9`."""
        return self.commands.run("qstat", "-help").output.partition("\n")[0].strip() or "of unknown version"

    def _reservations(self) -> list[ReservationRow]:
        ids = re.findall(r"<id>(\d+)</id>", self._optional("qrstat", "-xml", "-u", "*"))
        text = self._optional("qrstat", "-xml", "-ar", ",".join(ids)) if ids else ""
        return parse.reservations(text) if text else []

    def _qstat(self, *options: str) -> str:
        return self.commands.ask("qstat", "-xml", "-f", "-r", *options)

    def _optional(self, *command: str) -> str:
        """The answer of a command that fails where there is nothing to be listed."""
        answer = self.commands.run(*command)
        return "" if answer.status else answer.output


TOLD = 128 + 12  # exit status of a pilot's script after an order to leave: as if by SIGUSR2
_BY_SIGNAL, _AT_LIMIT, _RESCHEDULED = 100, 37, (24, 25)
"""Values of `failed` (sge_status(5)): ended by a signal, or at a limit; put back to run again."""
_LONGEST = 14 * 86_400.0  # seconds before an end within which a job is taken to have started
_ERROR = "Grid Engine could not start it, and holds it until its error is cleared (`qstat -j`, `qmod -cj`)"
_HELD = Wait("it is held: qrls lets it go on (state h)", Hold.ITS_OWN)
_LAG = 60.0
"""Seconds after which the record of a job that has ended is there: Grid Engine writes them in batches
(`flush_time`, 15 s)."""


class Own:
    """The jobs of this user, and how those ended that we ask for."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self.deleted: set[str] = set()
        """Ids of jobs that were deleted while they waited: of these there are no records."""
        self._ends: dict[OwnJob, JobReport] = {}
        self._gone: dict[OwnJob, float] = {}  # first sight of a job's end without a record

    def living(self, jobs: Collection[OwnJob]) -> list[str]:
        """The ids of those of these jobs that are in the system now."""
        found = self._master.own_jobs()
        return [own.id for own in jobs if own in found and "z" not in found[own].state]

    def reports(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """Reports of our jobs (`Backend.jobs`). A number that was given out again may be several jobs'."""
        found = self._master.own_jobs().items()
        ours = [(own, job) for own, job in found if own.id in ids or own.tag.startswith(tag_prefix)]
        live = {own: report_of(own, job) for own, job in ours if "z" not in job.state}
        gone = {own: job for own, job in ours if "z" in job.state}
        ended = {*(job.id for job in gone), *ids}
        ended -= {job.id for job in live if job.tag.startswith(tag_prefix)}
        readable = self._read_ends(ended - {job.id for job in self._ends})
        for own in gone.keys() - self._ends.keys():
            since = self._gone.setdefault(own, time.monotonic())
            deleted = not self.deleted.isdisjoint((own.id, own.id.partition(".")[0]))
            if deleted or (readable and time.monotonic() - since > _LAG):
                self._ends[own] = JobReport(id=own.id, tag=own.tag, state=JobState.CANCELLED)
        known = {**live, **{own: report_of(own, gone[own]) for own in gone.keys() - self._ends.keys()}}
        ends = (own for own in self._ends if own.id in ended and own not in live)
        return [*known.values(), *(self._ends[own] for own in sorted(ends, key=lambda own: own.id))]

    def _read_ends(self, ids: Collection[str]) -> bool:
        """Whether we may read the records."""
        if not ids:
            return True
        records = self._master.records(time.time() - _LONGEST, self._master.commands.user())
        ends = (ended_report(job) for job in records or () if job.id in ids)
        self._ends.update({report.own: report for report in ends})
        return records is not None


def own_job(id: str, name: str) -> OwnJob:
    """The job with its pilot's tag, by the name of its job or of its array; the tasks have numbers from 1."""
    _, _, task = id.partition(".")
    return OwnJob(id, tag_of(name, int(task) - 1) if task else name)


def report_of(own: OwnJob, job: GridJob) -> JobReport:
    """Report on a job in the system, or on one that has ended and is not in the records yet: of unknown
    state."""
    state, asked = state_of(job), None if math.isinf(job.limit) else job.limit
    waits = state == "waiting"
    return JobReport(
        id=own.id,
        tag=own.tag,
        state={"waiting": JobState.QUEUED, "unknown": JobState.UNKNOWN}.get(state, JobState.RUNNING),
        start=None if waits else job.start,
        processors=job.slots,
        limit=asked,
        granted=None if waits else asked,
        nodes=tuple(dict.fromkeys(host for _, host in job.parts)),
        reason=f"state {job.state}" if set(job.state) & set("hE") else "",
        never=_ERROR if "E" in job.state else "",
        wait=_HELD if waits and "h" in job.state else TURN,
        held=None if waits else sum(job.parts.values()) or None,
    )


def ended_report(job: EndedRecord) -> JobReport:
    """Report on a job by its record."""
    return JobReport(
        id=job.id,
        tag=own_job(job.id, job.name).tag,
        state=_end(job),
        start=job.start or None,
        end=job.end or None,
        processors=job.slots,
        held=job.slots if job.start else None,
        nodes=(job.host,),
        reason=f"failed {job.failed}, exit status {job.exit_status}" if job.failed else "",
    )


def _end(job: EndedRecord) -> JobState:
    """Grid Engine does not say who ended a job: one that had its time has met its limit."""
    told = job.failed == _BY_SIGNAL or job.exit_status == TOLD
    if (told or job.failed == _AT_LIMIT) and job.start and job.end - job.start >= job.limit:
        return JobState.WALLTIME
    if told:
        return JobState.CANCELLED
    if job.failed in _RESCHEDULED:
        return JobState.NODE_FAILED
    return JobState.FAILED if job.failed or job.exit_status else JobState.COMPLETED
