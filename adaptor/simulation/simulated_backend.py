"""The simulated cluster behind the questions that a real scheduler is asked, on the virtual clock."""

from __future__ import annotations

from collections.abc import Collection

from adaptor.model import Limits, QueueState
from adaptor.reports import JobReport, JobState, NodeReport
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.outside_jobs import OutsideJob
from adaptor.simulation.queue_view import planned_starts, queue_state
from backends.base import PilotOrder, SchedulerError, SubmitRefused


class SimulatedBackend:
    """A `Backend` for one user of a simulated cluster; times are seconds of the trace.

    The driver advances the cluster and tells it when a pilot leaves (`Simulation.end`); job ids are
    the numbers of the simulation as text. Processors alone are counted: nodes and memory are not.
    """

    time_resolution = 1
    slot_margin = 0
    can_release = False
    loopback = True

    def __init__(self, cluster: Simulation, limits: Limits) -> None:
        self.cluster = cluster
        self.limits = limits
        self._tags: dict[int, str] = {}
        self._cancelled: set[int] = set()

    def queue_state(self) -> QueueState:
        return queue_state(self.cluster)

    def nodes(self, lent: Collection[str]) -> list[NodeReport]:  # noqa: ARG002
        """Raises SchedulerError: there are none; `adaptor.experiments.transparent` lends places instead."""
        raise SchedulerError("a simulated cluster counts processors and has no nodes to lend")

    def submit(self, order: PilotOrder) -> str:
        """Raises SubmitRefused: the request is beyond the limits or the machine."""
        request, limits = order.request, self.limits
        if request.p > limits.max_proc or request.tr > limits.max_tr:
            raise SubmitRefused(
                f"{request.p} processors for {request.tr} s are beyond the limits of"
                f" {limits.max_proc} for {limits.max_tr} s"
            )
        in_system = sum(self.cluster.outside_job(job).ended is None for job in self._tags)
        if in_system >= limits.max_pending_requests:
            raise SubmitRefused(f"{in_system} requests are in the system, as many as are allowed")
        try:
            job = self.cluster.submit(request.p, request.tr)
        except ValueError as error:
            raise SubmitRefused(str(error)) from error
        self._tags[job] = order.tag
        return str(job)

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        planned = planned_starts(self.cluster)
        return [
            self._report(self.cluster.outside_job(job), tag, planned.get(job))
            for job, tag in self._tags.items()
            if str(job) in ids or tag.startswith(tag_prefix)
        ]

    def cancel(self, ids: Collection[str]) -> None:
        for job in self._tags:
            if str(job) in ids and self.cluster.outside_job(job).ended is None:
                self._cancelled.add(job)
                self.cluster.cancel(job)

    def release(self, id: str, nodes: Collection[str]) -> None:
        """Raises SchedulerError: there are no nodes to release."""
        raise SchedulerError(f"job {id}: a simulated cluster has no nodes to release ({', '.join(nodes)})")

    def advertised_limits(self) -> Limits:
        return self.limits

    def _report(self, job: OutsideJob, tag: str, planned: float | None) -> JobReport:
        return JobReport(
            id=str(job.id),
            tag=tag,
            state=self._state(job),
            start=_seconds(job.started),
            end=_seconds(job.ended),
            planned_start=planned,
        )

    def _state(self, job: OutsideJob) -> JobState:
        if job.ended is None:
            return JobState.QUEUED if job.started is None else JobState.RUNNING
        if job.id in self._cancelled:
            return JobState.CANCELLED
        return JobState.WALLTIME if job.reached_limit else JobState.COMPLETED


def _seconds(time: int | None) -> float | None:
    return None if time is None else float(time)
