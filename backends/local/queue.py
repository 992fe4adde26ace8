"""The local site's queue: who runs, and who starts when. Pure.

Jobs start first come, first served, with conservative backfilling (`adaptor.crafting.nodes.schedule`): each
waiting job, in order, at the first instant at which all that it needs is free for its whole time limit. So a
later job may overtake an earlier one, but never delays it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from adaptor.crafting.nodes.schedule import node_schedule
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.reports import JobReport, JobState
from adaptor.resources import Need, Part
from backends.local.admission import LocalMachine
from backends.local.store import JobEntry

_OVERDUE = 1.0  # seconds for which a job is thought to go on that is past its limit and being ended


def queue_state(entries: Iterable[JobEntry], machine: LocalMachine, now: float) -> QueueState:
    """Running jobs, and waiting ones with their planned starts: `now` for those that can start.

    `entries` are in order of their ids. A waiting job that is larger than the site is left out.
    """
    known = list(entries)
    waiting = [entry.job for entry in known if _waits(entry)]
    queue = QueueState(
        now=now,
        processors=machine.processors,
        running=tuple(
            RunningJob(str(entry.job.id), entry.job.p, max(entry.limit, now + _OVERDUE), (entry.job.holds,))
            for entry in known
            if entry.state is JobState.RUNNING
        ),
        pending=tuple(PendingJob(str(job.id), job.p, job.tr, need=_need(job.holds)) for job in waiting),
        nodes=(machine.node,),
    )
    starts = node_schedule(queue).starts
    planned = tuple(
        PendingJob(str(job.id), job.p, job.tr, start, (job.holds,))
        for job in waiting
        if (start := starts[str(job.id)]) < math.inf
    )
    return msgspec.structs.replace(queue, pending=planned)


def free_devices(entries: Iterable[JobEntry], machine: LocalMachine) -> list[str]:
    """Ids of the GPUs that no running job holds."""
    running = (entry.start for entry in entries if entry.state is JobState.RUNNING)
    held = {id for start in running if start is not None for id in start.devices or ()}
    return [id for id in machine.devices if id not in held]


def report(entry: JobEntry, planned_start: float | None, machine: LocalMachine) -> JobReport:
    """Report on a job. `planned_start`: epoch seconds; None for a job that does not wait or can never
    start."""
    job = entry.job
    return JobReport(
        id=str(job.id),
        tag=job.tag,
        state=entry.state,
        start=entry.started,
        end=entry.ended,
        planned_start=planned_start,
        nodes=entry.nodes,
        reason=entry.reason,
        never=_never(_need(job.holds), machine) if _waits(entry) else "",
    )


def _waits(entry: JobEntry) -> bool:
    return entry.state is JobState.QUEUED


def _need(part: Part) -> Need:
    gpus = sum(count for _, count in part.gpus)
    return Need(chunks=1, processors=part.processors, memory=part.memory, gpus=gpus)


def _never(need: Need, machine: LocalMachine) -> str:
    """Why a job can never start on a site that was made smaller; empty where it can."""
    for what, wanted, there in (
        ("processors", need.processors, machine.processors),
        ("GPUs", need.gpus, len(machine.devices)),
    ):
        if wanted > there:
            return f"it needs {wanted} {what}, and the local site has only {there} now"
    return "it needs more memory than this machine has now" if need.memory > machine.memory else ""
