"""Grid Engine as a backend."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.model import EndedJob, QueueState
from adaptor.reports import JobReport
from backends.base import TAG_START, PilotOrder, SubmitRefused
from backends.ceilings import Ceilings
from backends.gridengine.reading import Master, Own
from backends.gridengine.state import GridSeen, ceilings, pes_of, queue_state, refusal
from backends.gridengine.submitting import accepted_id, arguments_of, choose_pe, deleted_waiting, nothing_left
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.observed.backend import BatchBackend
from backends.scripts import render

_TEMPLATE = Path(__file__).with_name("pilot.template")
_LATELY = 6 * 3600.0
"""Seconds for which jobs that have ended are learned from."""


class GridEngineBackend(BatchBackend[Master]):
    """Implements `backends.base.Backend`."""

    reading = Master

    def __init__(self, site: SiteConfig, machine: Machine = HERE, shared: Master | None = None) -> None:
        super().__init__(site, machine, shared)
        self._own = Own(self._shared)
        self._seen: GridSeen | None = None

    def _observe(self) -> QueueState:
        self._seen = seen = self._shared.look.take(self._asker)
        return queue_state(seen, seen.queue(self._site.partition))

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
        return accepted_id(self._submit(command, script, text))

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """See `backends.base.Backend`. Records of ended jobs may come some seconds after their end."""
        return self._own.reports(ids, tag_prefix)

    def cancel(self, ids: Collection[str]) -> None:
        """See `backends.base.Backend`. The queue's `notify` passes from the signal to SIGKILL."""
        for answer in self._cancel("qdel", ids, nothing_left):
            self._own.deleted.update(deleted_waiting(answer))

    def ended_jobs(self) -> list[EndedJob]:
        """See `backends.base.Backend`: from the records that qacct shows."""
        found = self._shared.records(time.time() - _LATELY) or []
        return [
            EndedJob(job.owner, job.limit, job.end - job.start)
            for job in found
            if 0 < job.start < job.end and 0 < job.limit < float("inf") and not job.name.startswith(TAG_START)
        ]

    def _ceilings(self) -> Ceilings:
        seen = self._known()
        queue = seen.queue(self._site.partition)
        return ceilings(seen.cell, queue, seen.nodes(queue.name))

    def _known(self) -> GridSeen:
        """As it was when the queue was last read."""
        if self._seen is None:
            self._seen = self._shared.see()
        return self._seen


BACKEND = GridEngineBackend
