"""Our own jobs in OpenPBS: which there are, and which of the ended ones still matter."""

from __future__ import annotations

import time
from collections.abc import Collection

from adaptor.reports import JobState
from backends.base import SchedulerError
from backends.commands import Answer, Commands, chunks
from backends.pbs.openpbs.jobs import has_tag, own_job
from backends.pbs.records import Record, parse_dsv
from backends.pbs.rows import PbsJob

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
_TERMINATED = 91
"""Substate of a job that was deleted."""
_BY_SCHEDULER = "terminated by Scheduler@"
"""In the comment of a job that was deleted to make room for another."""
_NEGATIVE = {
    -11: JobState.PREEMPTED,  # put back to run again
    -14: JobState.NODE_FAILED,  # a sister node was lost
    -20: JobState.NODE_FAILED,  # the first node was lost
    -29: JobState.WALLTIME,
}
"""Of a status below 0 PBS itself ended the job, or never could start it."""


def was_put_back(job: PbsJob) -> bool:
    """Whether a job of ours waits in its queue to run again.

    Only pilots on donated nodes may be put back, where the scheduler has no other way to make them yield.
    """
    return job.state in ("Q", "H", "W") and job.rerunnable and job.runs > 0


def job_state(job: PbsJob) -> JobState:
    """What becomes of one of our jobs.

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


JOB = "Job Id: "
"""What stands before the id of each job that qstat prints."""
LOOK_BACK = 14 * 86_400.0
"""Seconds that the first question after a start looks back for jobs that ended while nobody asked."""
_OVERLAP = 900.0
"""Seconds by which later questions overlap; the server's clock need not be ours."""
_NO_HISTORY = "not configured to maintain job history"
_UNKNOWN = (153, 35, 36)
"""How qstat ends where it knows a job no more, where it has finished, and where there is no history."""


class OwnJobs:
    """Asks of ours alone, by their ids: nothing that others write into their jobs can be in the answer."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._asked_until = time.time() - LOOK_BACK
        self._history = True
        self._foreign: frozenset[str] = frozenset()
        """Ids of our user's jobs that were seen to have no tag."""

    def jobs(self, ids: Collection[str]) -> list[PbsJob]:
        """Those with these ids, and all with a tag. Raises SchedulerError: PBS does not answer."""
        now = time.time()
        listed = {
            *self._commands.ask("qselect", "-u", self._commands.user()).split(),
            *self._ended_since(self._asked_until),
        }
        wanted = {*ids, *(listed - self._foreign)}
        found = [record for part in chunks(sorted(wanted)) for record in self._details(part)]
        tagged = {record.id for record in found if has_tag(record)}
        self._asked_until = now - _OVERLAP
        self._foreign = frozenset(listed - tagged)
        return [own_job(record) for record in found if record.id in tagged or record.id in ids]

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
        return _accepted("qselect", answer).split()

    def _details(self, ids: list[str]) -> list[Record]:
        answer = self._commands.run("qstat", *(["-x"] if self._history else []), "-f", "-F", "dsv", *ids)
        if self._history and self._lacks_history(answer):
            return self._details(ids)
        return parse_dsv(_accepted("qstat", answer), JOB)

    def _lacks_history(self, answer: Answer) -> bool:
        """Whether nothing was answered because PBS remembers no ended jobs; then it is not asked of any."""
        if _NO_HISTORY in answer.errors:
            self._history = False
        return not self._history


def _accepted(program: str, answer: Answer) -> str:
    if answer.status and answer.status not in _UNKNOWN:
        raise SchedulerError(f"{program} failed with status {answer.status}: {answer.complaint}")
    return answer.output
