"""Our own jobs as the daemon is told of them, and the words of PBS on why a job waits.

These stand in a job's comment (OpenPBS, src/scheduler/config.h and job_info.cpp). Torque's schedulers say
what they like there; of what is not known here, a place is taken to be kept.
"""

from __future__ import annotations

import math
import re

from adaptor.reports import JobReport, JobState
from backends.pbs.rows import WAITING, PbsJob

_NEVER = re.compile(r"Can Never Run:?\s*(.*)", re.DOTALL)
_HELD = "too many failed attempts to run"
_NOTHING_IS_KEPT = re.compile(
    r"limit|would exceed|Queue not started|not an execution queue|[Dd]edicated time|primetime"
    r"|zero shares|does not exist|Job held|PBS Error|Not in queued state"
)
"""Waits for the end of other jobs of the same user, for a person, or for the clock."""


_RAN = re.compile(r"(?<=^Job run at )([^(]*?) on (?:\+?\([^()]*(?:\)|$))+")
"""When a job ran, and all chunks that it got, which may be hundreds."""


def sentence(comment: str) -> str:
    """The comment of a job without the list of its chunks."""
    return _RAN.sub(r"\1", comment)


def never(job: PbsJob) -> str:
    """Why a waiting job can never start as it stands, one sentence; empty when it can."""
    impossible = _NEVER.match(job.comment)
    if impossible:
        return f"PBS says that it can never run: {impossible[1].strip() or 'no reason given'}"
    if job.state == "H" and _HELD in job.comment:
        return "PBS could not start it and holds it until a person releases it"
    return ""


def is_considered(job: PbsJob) -> bool:
    """Whether the scheduler looks for a place for this job at the moment."""
    if job.state not in ("Q", "B") or never(job):
        return False
    return not _NOTHING_IS_KEPT.search(job.comment)


def was_put_back_to_yield(job: PbsJob, state: JobState) -> bool:
    """Whether a job has ended for us that waits to run again. `state`: what the dialect makes of it."""
    return job.state in WAITING and bool(state.ended)


def report_of(job: PbsJob, state: JobState) -> JobReport:
    """Args: state: what the dialect makes of the job."""
    put_back = was_put_back_to_yield(job, state)
    waits = job.state in WAITING and not put_back
    return JobReport(
        id=job.id,
        tag=job.tag,
        state=state,
        start=None if waits else job.start,
        end=job.end if state.ended else None,
        planned_start=job.planned_start if waits else None,
        granted=None if waits or math.isinf(job.limit) else job.limit,
        processors=None if job.request is None else job.request.p,
        limit=None if job.request is None else job.request.tr,
        nodes=job.hosts,
        reason="" if put_back else sentence(job.comment),  # of a job put back: why it does not start again
        never=never(job) if waits else "",
    )
