"""Asks OpenPBS by its commands; what it makes of an answer are the rows of `backends.pbs.rows`."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.reports import JobState
from backends.base import PilotOrder, SchedulerError
from backends.commands import CommandAnswer, Commands, chunks, only_says
from backends.observed.remembered import Remembered
from backends.observed.rows import ReservationRow
from backends.pbs.constraints import PbsShape
from backends.pbs.fields import (
    PbsRecord,
    array_id,
    is_array,
    is_element,
    parse_dsv,
    parse_long,
    selected_ids,
    unknown_ids,
)
from backends.pbs.margins import SHRINK_MARGIN, SLOT_MARGIN, TIME_RESOLUTION
from backends.pbs.openpbs.hardware import preemption_of, queues_of, reservations_of, server_of, shown_nodes
from backends.pbs.openpbs.jobs import (
    GPU_TYPES,
    everyones_jobs,
    has_tag,
    own_element,
    own_job,
    queued_jobs,
)
from backends.pbs.openpbs.submitting import (
    accepted_id,
    arguments_of,
    changes_of,
    check_changed,
    must_be_rerunnable,
)
from backends.pbs.rows import WAITING, PbsJob, PbsNode, PbsQueue, PbsServer, Preemption
from backends.traits import Traits

LETTERS = {
    "B": JobState.RUNNING,
    "E": JobState.RUNNING,
    "H": JobState.QUEUED,
    "Q": JobState.QUEUED,
    "R": JobState.RUNNING,
    "S": JobState.RUNNING,
    "T": JobState.QUEUED,
    "U": JobState.RUNNING,
    "W": JobState.QUEUED,
}
_ENDED = frozenset("FX")
_TERMINATED = 91  # substate of a job that was deleted
_BY_SCHEDULER = "terminated by Scheduler@"
"""Part of the comment of a job that was deleted to make room for another."""
_NEGATIVE = {
    -11: JobState.PREEMPTED,  # put back to run again
    -14: JobState.NODE_FAILED,  # a sister node was lost
    -20: JobState.NODE_FAILED,  # the first node was lost
    -29: JobState.WALLTIME,
}
"""State by an exit status below 0: PBS itself ended the job, or never could start it."""


def was_put_back(job: PbsJob) -> bool:
    """Whether a job of ours waits in its queue to run again.

    Only pilots on donated nodes may be put back, where the scheduler has no other way to make them yield.
    """
    return job.state in ("Q", "H", "W") and job.rerunnable and job.runs > 0


def job_state(job: PbsJob) -> JobState:
    """State of one of our jobs.

    The exit status alone tells little: a deleted job that leaves in good order has 0, and so has every
    job whose node's PBS was restarted. What a pilot's workers have reported counts before it.
    """
    if was_put_back(job):
        return _NEGATIVE.get(job.exit_status or 0, JobState.PREEMPTED)
    if job.state not in _ENDED:
        return LETTERS.get(job.state, JobState.UNKNOWN)
    if job.substate == _TERMINATED:
        return JobState.PREEMPTED if _BY_SCHEDULER in job.comment else JobState.CANCELLED
    if job.exit_status is None:  # it never ran: what it depended on did not end as it should
        return JobState.CANCELLED
    if job.exit_status < 0:
        return _NEGATIVE.get(job.exit_status, JobState.FAILED)
    return JobState.COMPLETED if job.exit_status == 0 else JobState.FAILED


JOB = "Job Id: "  # text before the id of each job that qstat prints
LOOK_BACK = 14 * 86_400.0
"""Seconds that the first question after a start looks back for jobs that ended while no daemon ran."""
_OVERLAP = 900.0  # seconds by which later questions overlap; the server's clock need not be ours
_NO_HISTORY = "not configured to maintain job history"
_UNKNOWN = (153, 35, 36)
"""Exit statuses of qstat: the job is unknown, the job has finished, there is no history."""


class OwnPbsJobs:
    """Asks of ours alone, by their ids: nothing that others write into their jobs can be in the answer."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._asked_until = time.time() - LOOK_BACK
        self._history = True
        self._foreign: frozenset[str] = frozenset()  # ids of our user's jobs that were seen to have no tag
        self.unknown: set[str] = set()
        """Ids of the last question that the server does not know."""
        self._unstarted: frozenset[str] = frozenset()
        """Ids of arrays' jobs that waited at the last answer, or were deleted before they started."""

    def jobs(self, ids: Collection[str]) -> list[PbsJob]:
        """The jobs with these ids, and all with a tag. Raises SchedulerError: PBS does not answer."""
        now, self.unknown = time.time(), set()
        listed = {
            *selected_ids(self._commands.ask("qselect", "-u", self._commands.user())),
            *self._ended_since(self._asked_until),
        }
        asked = {array_id(id) for id in ids}  # also one that by now is an array of the user's own
        wanted = {*asked, *(listed - self._foreign)}
        found = [record for part in chunks(sorted(wanted)) for record in self._details(part)]
        tagged = {record.id for record in found if has_tag(record)}
        self._asked_until = now - _OVERLAP
        self._foreign = frozenset(listed - tagged)
        jobs = [own_job(record) for record in found if record.id in tagged or record.id in asked]
        arrays = [job.id for job in jobs if is_array(job.id)]
        self.unknown |= {id for id in ids if array_id(id) in self.unknown}
        return [*(job for job in jobs if not is_array(job.id)), *self._elements(arrays)]

    def _elements(self, arrays: list[str]) -> list[PbsJob]:
        """The jobs of arrays. Of one without a record of its own, PBS shows what its array has.

        Such a job waits, was deleted before it started, or has lost its record: then nothing is known of its
        end, and it is among the `unknown`, as is one that was deleted between two daemons.
        """
        records = [record for part in chunks(arrays) for record in self._details(part, "-t")]
        jobs = [own_element(record) for record in records if is_element(record.id)]
        found = [job for job in jobs if job.state not in _ENDED or job.hosts or job.id in self._unstarted]
        self.unknown |= {job.id for job in jobs} - {job.id for job in found}
        # One that was deleted stays among them: questions before a cancel or a change ask for it, too.
        self._unstarted = frozenset(
            job.id for job in found if job.state in WAITING or (job.state in _ENDED and not job.hosts)
        )
        return [
            job
            if job.state not in _ENDED or job.hosts
            else msgspec.structs.replace(job, substate=_TERMINATED)
            for job in found
        ]

    def _ended_since(self, moment: float) -> list[str]:
        if not self._history:
            return []
        # The commands run with TZ=UTC and read times in that zone, too.
        since = time.strftime("%Y%m%d%H%M", time.gmtime(moment))
        answer = self._commands.run(
            "qselect", "-x", "-u", self._commands.user(), "-s", "F", f"-tm.gt.{since}"
        )
        if self._lacks_history(answer):
            return []
        return selected_ids(_accepted("qselect", answer))

    def _details(self, ids: list[str], *options: str) -> list[PbsRecord]:
        past = ["-x"] if self._history else []
        answer = self._commands.run("qstat", *past, *options, "-f", "-F", "dsv", *ids)
        if self._history and self._lacks_history(answer):
            return self._details(ids, *options)
        self.unknown |= unknown_ids(answer.errors, ids)
        return parse_dsv(_accepted("qstat", answer), JOB)

    def _lacks_history(self, answer: CommandAnswer) -> bool:
        """Whether nothing was answered because PBS remembers no ended jobs; then it is not asked of any."""
        if _NO_HISTORY in answer.errors:
            self._history = False
        return not self._history


def _accepted(program: str, answer: CommandAnswer) -> str:
    if answer.status and answer.status not in _UNKNOWN:
        raise SchedulerError(f"{program} failed with status {answer.status}: {answer.complaint}")
    return answer.output


_GONE = (153, 35)  # exit statuses of qstat and qdel if a job is unknown or has finished
_RECORDS = 2 * 86_400.0  # seconds for which jobs that have ended are learned from
_MOST_RECORDS = 1000
_BY_GROUP = re.compile(r"acl_group_enable = True|\[g:(?!PBS_GENERIC)")
_GONE_WORDS = ("Unknown Job Id", "Job has finished", "Delete already in progress")


class OpenPbs(Traits):
    """OpenPBS, asked by its commands. Every method that asks may raise SchedulerError."""

    time_resolution = TIME_RESOLUTION
    slot_margin = SLOT_MARGIN
    shrink_margin: int | None = SHRINK_MARGIN
    can_reshape = can_release = can_follow = True
    most_in_array = 1000  # PBS's own max_array_size is 10,000; what is refused is submitted in parts
    template = Path(__file__).parent / "pilot.template"
    state_of = staticmethod(job_state)
    check_changed = staticmethod(check_changed)
    accepted_id = staticmethod(accepted_id)

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._own = OwnPbsJobs(commands)
        self._known_jobs, self._known_elements = Remembered[PbsJob | None](), Remembered[PbsJob | None]()
        self._known_nodes = Remembered[list[PbsNode]]()
        self._groups: list[str] | None = None  # of this user, once a queue has asked for them
        self._type_resource = GPU_TYPES[0]
        """Resource by which nodes named the type of their GPUs when they were last asked."""
        self._yielding: list[Preemption | None] = []
        """The scheduler's settings of preemption, asked once since the last look at the server."""

    def queue(self, nodes: Collection[PbsNode]) -> list[PbsJob]:
        """All users' jobs that wait, run or are about to end; the running jobs of an array one by one.

        The running jobs of arrays are asked for by the ids that nodes show: an array may have 100,000.

        `nodes`: asked for just before.
        """
        jobs = queued_jobs(self._commands.ask_bytes("qstat", "-f", "-F", "dsv"), JOB, self._known_jobs)
        return [*jobs, *self._elements(jobs, nodes)]

    def own_jobs(self, ids: Collection[str]) -> list[PbsJob]:
        """Our user's jobs with these ids, and all that are in the system, or not long ended, with a tag.

        Unknown ids are left out. Nothing that others have written may get into the answer.
        """
        return self._own.jobs(ids)

    def unknown_ids(self) -> frozenset[str]:
        """Ids of the last `own_jobs` of which the server said that it has no such job."""
        return frozenset(self._own.unknown)

    def ended_jobs(self) -> list[PbsJob]:
        """All users' jobs that have ended and that the server remembers, the oldest first.

        By qselect and then the newest in chunks: a server remembers two weeks.
        """
        since = time.strftime("%Y%m%d%H%M", time.gmtime(time.time() - _RECORDS))
        answer = self._commands.run("qselect", "-x", "-s", "F", f"-tm.gt.{since}")
        if answer.status:  # most often: no history is kept
            return []
        ids = selected_ids(answer.output)[-_MOST_RECORDS:]
        records = (record for part in chunks(ids) for record in parse_dsv(self._some(part, "-x").output, JOB))
        return [job for job in everyones_jobs(records) if job.state in ("F", "X")]

    def nodes(self) -> list[PbsNode]:
        found = shown_nodes(self._commands.ask_bytes("pbsnodes", "-a", "-v"), self._known_nodes)
        named = (name for name in GPU_TYPES if any(name in node.traits for node in found))
        self._type_resource = next(named, GPU_TYPES[0])
        return found

    def reservations(self, nodes: Collection[PbsNode]) -> list[ReservationRow]:
        """Reservations on these nodes, present and future, without those of jobs."""
        if not any(node.reservations for node in nodes):
            return []
        return reservations_of(parse_long(self._commands.ask("pbs_rstat", "-f"), "Resv ID: ", indent=""))

    def queues(self) -> list[PbsQueue]:
        text = self._commands.ask("qstat", "-Q", "-f")
        return queues_of(parse_long(text, "Queue: "), self._commands.user(), self._groups_in(text))

    def _groups_in(self, text: str) -> list[str] | None:
        """Groups of this user, the first of which PBS counts; None: nothing in the text goes by groups."""
        if not _BY_GROUP.search(text):
            return None
        if self._groups is None:
            self._groups = self._commands.ask("id", "-Gn").split()
        return self._groups

    def server(self) -> PbsServer:
        """State of the server. Raises SchedulerError: no server answers."""
        self._yielding = []
        text = self._commands.ask("qstat", "-B", "-f")
        for record in parse_long(text, "Server: "):
            return server_of(record, self._commands.user(), self._groups_in(text))
        raise SchedulerError("qstat -B prints no server")

    def preemption(self) -> Preemption | None:
        """The scheduler's settings of preemption; None: it does not show them."""
        try:
            printed = self._commands.ask("qmgr", "-c", "list sched default")
        except SchedulerError:  # a site may keep qmgr to itself
            return None
        return next(map(preemption_of, parse_long(printed, "Sched ")), None)

    def arguments(self, order: PilotOrder, site: SiteConfig, shape: PbsShape, script: Path) -> list[str]:
        """All arguments of `qsub` for an order whose script lies at `script`.

        Raises SubmitRefused: a pilot on a donated node could not yield.
        """
        if order.node and not self._yielding:
            self._yielding = [self.preemption()]
        rerunnable = bool(order.node) and must_be_rerunnable(self._yielding[0])
        return arguments_of(
            order, site, shape, script, type_resource=self._type_resource, rerunnable=rerunnable
        )

    def changes(self, order: PilotOrder, shape: PbsShape) -> list[str]:
        """The arguments of `qalter` for a queued job that is to ask for an order, without its id."""
        return changes_of(order, shape, type_resource=self._type_resource)

    def is_over(self, answer: CommandAnswer) -> bool:
        """Whether a `qdel` that failed only says of some jobs that there is nothing left to cancel."""
        return only_says(answer.errors, _GONE_WORDS)

    def _elements(self, jobs: Iterable[PbsJob], nodes: Iterable[PbsNode]) -> list[PbsJob]:
        """The running jobs of arrays, one by one."""
        if not any(job.state == "B" for job in jobs):
            return []
        ids = {id for node in nodes for id in node.jobs if "[" in id}
        printed = b"\n".join(self._some(part).printed for part in chunks(sorted(ids)))
        return queued_jobs(printed, JOB, self._known_elements)

    def _some(self, ids: list[str], *options: str) -> CommandAnswer:
        answer = self._commands.run("qstat", *options, "-f", "-F", "dsv", *ids)
        if answer.status and answer.status not in _GONE:
            raise SchedulerError(f"qstat failed with status {answer.status}: {answer.complaint}")
        return answer
