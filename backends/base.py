"""The interface to a batch scheduler. A backend is thin: it decides nothing.

All calls block; the daemon runs them in threads, one at a time per site. Times are epoch seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

import msgspec

from adaptor.errors import AdaptorError
from adaptor.model import EndedJob, Limits, QueueState, Request
from adaptor.reports import JobReport, NodeReport, OwnJob, Remedy
from adaptor.resources import TaskSize
from backends.ceilings import Ceilings
from backends.traits import Traits

TAG_START = "adaptor-"  # common prefix of the tags of pilots of all daemons
DAEMON_TAG = f"{TAG_START}daemon-"
"""Common prefix of the tags of jobs that run a daemon."""


class SchedulerError(AdaptorError):
    """The scheduler did not answer, or not in words we know; nothing may be concluded from that."""


class PartitionClosed(SchedulerError):
    """The scheduler answers, and a partition starts no jobs at the moment, or does not exist."""


class SubmitRefused(SchedulerError):
    """The scheduler said no: the request is certainly not in its queue."""

    def __init__(self, problem: str, remedy: Remedy = Remedy.SMALLER) -> None:
        """`remedy`: which other request it might take."""
        super().__init__(problem)
        self.remedy = remedy


class SubmitUncertain(SchedulerError):
    """The submit command failed or hung in a way that leaves open whether the request is queued."""


class ChangeRefused(SchedulerError):
    """The scheduler said no to a change of a queued request; `jobs` tells what it has of it now."""


class PilotOrder(msgspec.Struct, frozen=True, kw_only=True):
    """All a backend needs to submit one request."""

    tag: str
    """The job's name, never used again: it finds the job again after a crash in the middle of a submit."""
    request: Request
    task: TaskSize
    """Size of its tasks, each part on one node; `request.p` is a multiple of its processors, or of whole
    nodes."""
    directory: Path  # the pilot's own folder (exists, 0700): script, scheduler's log, worker logs
    worker: tuple[str, ...]  # the command that runs on each node of the pilot
    environment: dict[str, str]  # variables for the worker; nothing secret is among them
    node: str = ""  # the idle donated node, wholly (see `SiteConfig.donation`); empty: a formal request
    partition: str = ""
    """Partition by its name among the site's `partitions`; empty: the site has none, or it is for a donated
    node."""
    pilots: int = 1
    """Equal pilots that it asks for, of which all else here is the first; more than one are an array."""
    after: str = ""
    """A job of ours by its id: this one starts when that one has ended, however it ends (only where
    `can_follow`). Empty: it may start at once."""


class Backend(Traits, Protocol):
    """One site's scheduler. Every method may raise SchedulerError.

    One that gives no nodes back, changes no requests, donates no nodes and keeps no records says so here.
    """

    def queue_state(self) -> QueueState:
        """Running and pending jobs of all users, and the processors in service."""

    def nodes(self, donated: Collection[str]) -> list[NodeReport]:  # noqa: ARG002
        """The nodes on which the site's requests may run, in the scheduler's order.

        `donated` are the ids of the jobs by which nodes are donated: on their nodes they do not count.
        """
        raise SchedulerError("this scheduler has no nodes to donate")

    def submit(self, order: PilotOrder) -> str:
        """The scheduler's job id.

        Raises:
            SubmitUncertain: the request may be in the queue, or come into it.
            SchedulerError: it certainly is not (SubmitRefused: because the scheduler said no).
        """

    def submit_array(self, order: PilotOrder) -> list[str]:
        """The scheduler's ids of the jobs of equal pilots, in the order of their numbers.

        All of them or none, up to `most_in_array`. Each job finds its own number and folder
        (`backends.arrays`), and `jobs` reports each with its own tag.

        Raises: as `submit`.
        """
        return [self.submit(order)]

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """One bulk question: our user's jobs with these ids, and all whose tag starts with `tag_prefix`.

        A job that is missing from the answer was left out, which never means that it completed; where the
        scheduler itself says that it has no such job, it is reported as GONE. Finished jobs are reported for
        as long as the scheduler remembers them. A number may belong to a job that the adaptor did not submit:
        the tag of its report tells.
        """

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        """End these jobs, queued or running; unknown and ended ones are no error.

        A job with one of these numbers and another tag is not touched. Where the scheduler takes number and
        tag in one order, they are given so; else the tag is read immediately before the order.
        """

    def reshape(self, id: str, order: PilotOrder) -> None:  # noqa: ARG002
        """Let a queued job ask for the request of an order, without losing its age (only if `can_reshape`).

        A job that has started stays as it is, as does one with another tag than the order's.

        Raises:
            ChangeRefused: the scheduler said no, most often because the job has started, or has no such job.
            SchedulerError: whether the request was changed is not known.
        """
        raise ChangeRefused(f"{id}: a request cannot be changed here")

    def release(self, job: OwnJob, nodes: Collection[str]) -> None:
        """Give these nodes of a running pilot back (only where `can_release`).

        Raises SchedulerError: none was given back; or the number is another job's.
        """
        raise SchedulerError(f"job {job.id} can give back none of {', '.join(sorted(nodes))}")

    def ended_jobs(self) -> list[EndedJob]:
        """Jobs of other users that ended lately, the oldest first, if we may read the records.

        It may take as long as one command may, and other calls go on meanwhile.
        """
        return []

    def advertised_limits(self) -> Limits:
        """The limits that the scheduler itself tells, for what the configuration leaves out."""

    def ceilings(self, partition: str = "") -> Ceilings | None:  # noqa: ARG002
        """The most that the scheduler lets a request have, polite or not; None: it does not say.

        `partition`: its name among the site's `partitions`; empty: the site has none.
        """
        return None


class InFront(Backend):
    """A backend in front of another, which does whatever it does not do itself."""

    def __init__(self, behind: Backend) -> None:
        self._behind = behind
        self.learn(behind)

    def queue_state(self) -> QueueState:
        """The state of the queue behind; some backends learn their traits when they are first asked."""
        state = self._behind.queue_state()
        self.learn(self._behind)
        return state

    def nodes(self, donated: Collection[str]) -> list[NodeReport]:
        return self._behind.nodes(donated)

    def submit(self, order: PilotOrder) -> str:
        return self._behind.submit(order)

    def submit_array(self, order: PilotOrder) -> list[str]:
        return self._behind.submit_array(order)

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        return self._behind.jobs(ids, tag_prefix)

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        self._behind.cancel(jobs)

    def reshape(self, id: str, order: PilotOrder) -> None:
        self._behind.reshape(id, order)

    def release(self, job: OwnJob, nodes: Collection[str]) -> None:
        self._behind.release(job, nodes)

    def ended_jobs(self) -> list[EndedJob]:
        return self._behind.ended_jobs()

    def advertised_limits(self) -> Limits:
        return self._behind.advertised_limits()

    def ceilings(self, partition: str = "") -> Ceilings | None:
        return self._behind.ceilings(partition)
