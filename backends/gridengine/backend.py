"""Grid Engine as a backend."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.model import EndedJob, Limits, QueueState
from adaptor.reports import JobReport, NodeReport
from backends.base import TAG_START, ChangeRefused, PilotOrder, SchedulerError, SubmitRefused
from backends.ceilings import limits_of
from backends.commands import chunks
from backends.gridengine.reading import Master, Own
from backends.gridengine.state import GridSeen, ceilings, pes_of, queue_state, refusal
from backends.gridengine.submitting import accepted_id, arguments_of, choose_pe, deleted_waiting
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.observed.state import SecondLook
from backends.scripts import render, submit

_TEMPLATE = Path(__file__).with_name("pilot.template")
_LATELY = 6 * 3600.0
"""Seconds for which jobs that have ended are learned from."""


class GridEngineBackend:
    """Implements `backends.base.Backend`."""

    time_resolution = 1
    slot_margin = 60
    shrink_margin: int | None = None
    can_reshape = False
    can_release = False

    def __init__(self, site: SiteConfig, machine: Machine = HERE, master: Master | None = None) -> None:
        """Asks Grid Engine nothing yet.

        Args:
            machine: where the commands are run and the scripts lie.
            master: shared with the backends of the site's other queues.
        """
        self._site = site
        self._machine = machine
        self._master = master or Master(site, machine)
        self._own = Own(self._master)
        self._second_look = SecondLook()
        self._seen: GridSeen | None = None

    def queue_state(self) -> QueueState:
        """See `backends.base.Backend`.

        Raises:
            SchedulerError: no answer, or no such queue.
        """
        return self._second_look.state(self._look)

    def _look(self) -> QueueState:
        self._seen = seen = self._master.look.take(f"queue {self._site.partition}")
        return queue_state(seen, seen.queue(self._site.partition))

    def nodes(self, donated: Collection[str]) -> list[NodeReport]:  # noqa: ARG002
        """Raises SchedulerError: Grid Engine has no jobs that make room for others."""
        raise SchedulerError("Grid Engine has no nodes to donate: it has no preemption that deletes jobs")

    def submit(self, order: PilotOrder) -> str:
        """See `backends.base.Backend`.

        Raises:
            SubmitRefused: Grid Engine said no, or would take the request and never start it.
            SubmitUncertain: qsub hung, or failed in a way that leaves open what became of the request.
            SchedulerError: qsub cannot be run or did not reach the qmaster; the request is not queued.
        """
        seen = self._known()
        queue = seen.queue(self._site.partition)
        nodes = seen.nodes(queue.name)
        if problem := refusal(order.request, seen.cell, queue, nodes):
            raise SubmitRefused(problem)
        pe = choose_pe(order, self._site, pes_of(seen.cell, queue), nodes)
        script = order.directory / "pilot.sh"
        command = ["qsub", *arguments_of(order, self._site, queue.name, pe, script)]
        memory = order.task.memory
        text = render(
            _TEMPLATE,
            processors=order.request.p,
            seconds=str(order.request.tr),
            command=command,
            environment=order.environment,
            prologue=self._site.prologue,
            worker=order.worker,
            memory="" if memory is None else str(memory // order.task.processors),
        )
        self._master.look.forget()
        answer = submit(self._machine, self._master.commands, command, script, text)
        return accepted_id(answer)

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """See `backends.base.Backend`. Records of ended jobs may come some seconds after their end."""
        return self._own.reports(ids, tag_prefix)

    def cancel(self, ids: Collection[str]) -> None:
        """See `backends.base.Backend`. The queue's `notify` passes from the signal to SIGKILL."""
        self._master.look.forget()
        for part in chunks(ids):
            self._own.deleted.update(deleted_waiting(self._master.commands.run("qdel", *part)))

    def reshape(self, id: str, order: PilotOrder) -> None:  # noqa: ARG002
        """Raises ChangeRefused: qalter changes a job that has started as well, and says nothing."""
        raise ChangeRefused("Grid Engine cannot change a request only while it waits")

    def release(self, id: str, nodes: Collection[str]) -> None:
        """Raises SchedulerError: Grid Engine takes no host back from a job."""
        raise SchedulerError(f"job {id} can give back none of {', '.join(sorted(nodes))}")

    def ended_jobs(self) -> list[EndedJob]:
        """See `backends.base.Backend`: from the records that qacct shows."""
        found = self._master.records(time.time() - _LATELY) or []
        return [
            EndedJob(job.owner, job.limit, job.end - job.start)
            for job in found
            if 0 < job.start < job.end and 0 < job.limit < float("inf") and not job.name.startswith(TAG_START)
        ]

    def advertised_limits(self) -> Limits:
        """See `backends.base.Backend`; `backends.gridengine.state` says where each comes from."""
        seen = self._known()
        queue = seen.queue(self._site.partition)
        known = ceilings(seen.cell, queue, seen.nodes(queue.name))
        return limits_of(known, self._site.limits.max_pending_requests)

    def _known(self) -> GridSeen:
        """As it was when the queue was last read."""
        if self._seen is None:
            self._seen = self._master.see()
        return self._seen
