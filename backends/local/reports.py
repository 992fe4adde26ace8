"""What the local site answers about one job."""

from __future__ import annotations

from adaptor.reports import JobReport, JobState
from backends.local.admission import Machine
from backends.local.records import Entry


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
