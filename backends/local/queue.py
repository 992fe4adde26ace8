"""Who starts when on the local site: first come, first served, with conservative backfilling. Pure.

Each waiting job, in order, is planned at the first instant at which its processors are free for its
whole time limit, running jobs being thought to hold theirs until their limits (Mu'alem and Feitelson
2001, "conservative backfilling"). So a later job may overtake an earlier one, but never delays it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from adaptor.crafting.availability import schedule
from adaptor.model import NodeSize, PendingJob, QueueState, RunningJob
from adaptor.reports import JobReport, JobState
from backends.local.admission import Machine
from backends.local.records import Entry

_OVERDUE = 1.0
"""Seconds for which a job is thought to go on that is past its limit and being ended."""


def queue_state(entries: Iterable[Entry], machine: Machine, now: float) -> QueueState:
    """Running jobs, and waiting ones with their planned starts: `now` for those that can start.

    `entries` are in order of their ids. A waiting job that is larger than the site is left out.
    """
    running: list[RunningJob] = []
    pending: list[PendingJob] = []
    for entry in entries:
        job = entry.job
        if entry.state is JobState.RUNNING:
            running.append(RunningJob(str(job.id), job.held, max(entry.limit, now + _OVERDUE)))
        elif entry.state is JobState.QUEUED and job.held <= machine.processors:
            pending.append(PendingJob(str(job.id), job.held, job.tr))
    queue = QueueState(
        now=now,
        processors=machine.processors,
        running=tuple(running),
        pending=tuple(pending),
        nodes=(NodeSize(1, machine.processors, machine.memory),),
    )
    starts = schedule(queue).starts
    planned = tuple(PendingJob(job.id, job.processors, job.tr, starts[job.id]) for job in pending)
    return msgspec.structs.replace(queue, pending=planned)


def report(entry: Entry, planned_start: float | None, machine: Machine) -> JobReport:
    """`planned_start`: epoch seconds; None for a job that does not wait or can never start."""
    job = entry.job
    never = ""
    if entry.state is JobState.QUEUED and job.held > machine.processors:
        never = f"it needs {job.held} processors, and the local site has only {machine.processors} now"
    return JobReport(
        id=str(job.id),
        tag=job.tag,
        state=entry.state,
        start=entry.started,
        end=entry.ended,
        planned_start=planned_start,
        nodes=entry.nodes,
        reason=entry.reason,
        never=never,
    )
