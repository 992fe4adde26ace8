"""Our own jobs as the daemon is told of them."""

from __future__ import annotations

import math

from adaptor.reports import JobReport, JobState
from backends.pbs.reasons import never, sentence
from backends.pbs.rows import WAITING, PbsJob


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
        request=job.request,
        nodes=job.hosts,
        reason="" if put_back else sentence(job.comment),  # of a job put back: why it does not start again
        never=never(job) if waits else "",
    )
