"""The local site's queue: who runs, and who starts when (`backends.local.planning`). Pure."""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.reports import JobReport, JobState
from adaptor.resources import Gpus, Node, Part
from backends.local.admission import LocalMachine
from backends.local.planning import QueueShare, starts
from backends.local.store import JobEntry

NODE = "local"
"""The name of the only node."""
_OVERDUE = 1.0
"""Seconds for which a job is thought to go on that is past its limit and being ended."""


def queue_state(entries: Iterable[JobEntry], machine: LocalMachine, now: float) -> QueueState:
    """Running jobs, and waiting ones with their planned starts: `now` for those that can start.

    `entries` are in order of their ids. A waiting job that is larger than the site is left out.
    """
    known = list(entries)
    running = [
        (entry, max(entry.limit, now + _OVERDUE)) for entry in known if entry.state is JobState.RUNNING
    ]
    waiting = [entry.job for entry in known if _waits(entry) and entry.job.holds.fits(machine.share)]
    planned = starts(
        now,
        machine.share,
        [(end, entry.job.holds) for entry, end in running],
        [(float(job.tr), job.holds) for job in waiting],
    )
    return QueueState(
        now=now,
        processors=machine.processors,
        running=tuple(
            RunningJob(str(entry.job.id), entry.job.p, end, _parts(entry.job.holds)) for entry, end in running
        ),
        pending=tuple(
            PendingJob(str(job.id), job.p, job.tr, start, _parts(job.holds))
            for job, start in zip(waiting, planned, strict=True)
        ),
        nodes=(
            Node(
                name=NODE,
                processors=machine.processors,
                memory=machine.memory,
                gpus=_gpus(len(machine.devices)),
            ),
        ),
    )


def free_devices(entries: Iterable[JobEntry], machine: LocalMachine) -> list[str]:
    """Those that no running job holds."""
    running = (entry.start for entry in entries if entry.state is JobState.RUNNING)
    held = {id for start in running if start is not None for id in start.devices or ()}
    return [id for id in machine.devices if id not in held]


def report(entry: JobEntry, planned_start: float | None, machine: LocalMachine) -> JobReport:
    """`planned_start`: epoch seconds; None for a job that does not wait or can never start."""
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
        never=_never(job.holds, machine) if _waits(entry) else "",
    )


def _waits(entry: JobEntry) -> bool:
    return entry.state is JobState.QUEUED


def _never(needs: QueueShare, machine: LocalMachine) -> str:
    """Why a job can never start on a site that was made smaller; empty where it can."""
    has = machine.share
    if needs.fits(has):
        return ""
    for what, need, there in (
        ("processors", needs.processors, has.processors),
        ("GPUs", needs.gpus, has.gpus),
    ):
        if need > there:
            return f"it needs {need} {what}, and the local site has only {there} now"
    return "it needs more memory than this machine has now"


def _parts(share: QueueShare) -> tuple[Part, ...]:
    return (Part(node=NODE, processors=share.processors, memory=share.memory, gpus=_gpus(share.gpus)),)


def _gpus(count: int) -> Gpus:
    return (("", count),) if count else ()
