"""What differs between the dialects of PBS: the words of their commands, answers and ends.

`backends.pbs.backend.PbsBackend` drives any of them. A dialect runs its commands through the one
`Commands` that it is made with and decides nothing; what it makes of an answer are the rows of
`backends.pbs.rows`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from adaptor.config.schema import SiteConfig
from adaptor.reports import JobState
from backends.base import ChangeRefused, PilotOrder
from backends.commands import CommandAnswer
from backends.observed.rows import ReservationRow
from backends.pbs.constraints import PbsShape
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue, PbsServer, Preemption
from backends.traits import Traits

TIME_RESOLUTION = 1
SLOT_MARGIN = 60  # seconds: schedulers for Torque look at the queue every half a minute or so
OPENPBS_MARGIN = 20
"""Seconds: 10 from our look at the queue to the arrival of the request, 10 for a cycle under way then.

OpenPBS begins a cycle when a request arrives, and uses a hole to the second. Measured on 23.06.06 in front of
a planned job on all nodes: 7 of 7 requests whose walltimes left 10 s to -0.3 s of it started within 0.7 s.
"""
SHRINK_MARGIN = 0
"""Seconds: OpenPBS cuts a walltime to the second (`tests/backends/pbs/test_shrinking_live.py`)."""


class PbsDialect(Traits, Protocol):
    """Every method that asks may raise SchedulerError. A method with a body is for dialects that report
    nothing of it."""

    name: str  # for people: `OpenPBS`, `Torque`
    template: Path  # the pilot's script, filled in by `backends.scripts.render`

    def queue(self, nodes: Collection[PbsNode]) -> list[PbsJob]:
        """All users' jobs that wait, run or are about to end; the running jobs of an array one by one.

        `nodes`: asked for just before.
        """

    def own_jobs(self, ids: Collection[str]) -> list[PbsJob]:
        """Our user's jobs with these ids, and all that are in the system, or not long ended, with a tag.

        Unknown ids are left out. Nothing that others have written may get into the answer.
        """

    def unknown_ids(self) -> frozenset[str]:
        """Of the ids of the last `own_jobs`, those of which the server said that it has no such job."""
        return frozenset()

    def ended_jobs(self) -> list[PbsJob]:
        """All users' jobs that have ended and that the server remembers, the oldest first."""
        return []

    def nodes(self) -> list[PbsNode]: ...

    def reservations(self, nodes: Collection[PbsNode]) -> list[ReservationRow]:  # noqa: ARG002
        """What is set aside on these nodes, now or later; other than jobs."""
        return []

    def queues(self) -> list[PbsQueue]: ...

    def server(self) -> PbsServer: ...

    def preemption(self) -> Preemption | None:
        """How jobs are made to yield; None: the scheduler does not tell."""
        return None

    def state_of(self, job: PbsJob) -> JobState:
        """What the letter, the exit status and the rest of one of our jobs mean."""

    def arguments(self, order: PilotOrder, site: SiteConfig, shape: PbsShape, script: Path) -> list[str]:
        """All arguments of `qsub` for an order whose script lies at `script`.

        Raises SubmitRefused: a pilot on a donated node could not yield.
        """

    def changes(self, order: PilotOrder, shape: PbsShape) -> list[str]:  # noqa: ARG002
        """The arguments of `qalter` for a queued job that is to ask for an order, without its id.

        Raises ChangeRefused: there is no `can_reshape`.
        """
        raise ChangeRefused(f"requests are not changed on {self.name}")

    def check_changed(self, answer: CommandAnswer) -> None:
        """
        Raises:
            ChangeRefused: the server refused `qalter`.
            SchedulerError: its answer leaves open whether the job was changed.
        """

    def accepted_id(self, answer: CommandAnswer) -> str:
        """The job's id out of the answer of `qsub`.

        Raises:
            SubmitRefused: the scheduler said no.
            SubmitUncertain: the answer leaves open whether the request is queued.
            SchedulerError: the request is certainly not queued, for another reason than a refusal.
        """

    def is_over(self, answer: CommandAnswer) -> bool:
        """Whether a `qdel` that failed only says of some jobs that there is nothing left to cancel."""
