"""A batch scheduler for measurements: every request starts at once, and nothing runs in it.

`bench.limits` registers it as an installed package would, and plays the workers of its pilots.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.model import Limits, QueueState
from adaptor.reports import JobReport, JobState, OwnJob
from backends.arrays import job_name, tag_of
from backends.backend_type import BackendType
from backends.base import Backend, PilotOrder, SchedulerError
from backends.machines.base import Machine


class StandinBackend(Backend):
    slot_margin = 0
    most_in_array = 1000

    def __init__(self, processors: int) -> None:
        self._processors = processors
        self._jobs: dict[str, JobReport] = {}

    def queue_state(self) -> QueueState:
        return QueueState(now=time.time(), processors=self._processors)

    def submit(self, order: PilotOrder) -> str:
        self._jobs[order.tag] = JobReport(
            id=order.tag, tag=order.tag, state=JobState.RUNNING, start=time.time()
        )
        return order.tag

    def submit_array(self, order: PilotOrder) -> list[str]:
        name = job_name(order)
        tags = (tag_of(name, index) for index in range(order.pilots))
        return [self.submit(msgspec.structs.replace(order, tag=tag)) for tag in tags]

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        return [job for tag, job in self._jobs.items() if tag in ids or tag.startswith(tag_prefix)]

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        for tag in (job.tag for job in jobs):
            if tag in self._jobs:
                self._jobs[tag] = JobReport(id=tag, tag=tag, state=JobState.CANCELLED, end=time.time())

    def advertised_limits(self) -> Limits:
        raise SchedulerError("the configuration has them")


class StandinType(BackendType):
    title = "stand-in"
    slot_margin = 0
    poll_interval = 5.0
    pause = 0.5
    on_this_machine = True
    over_ssh = False
    discovery_order = 2000

    def make(self, name: str, site: SiteConfig, state: Path, machine: Machine) -> StandinBackend:  # noqa: ARG002
        return StandinBackend(site.processors or 1)


TYPE = StandinType()
