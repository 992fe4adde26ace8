"""What the adaptor asks of a batch scheduler. A backend is thin: it decides nothing.

All calls block; the daemon runs them in threads, one at a time per site. Times are epoch seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

import msgspec

from adaptor.errors import AdaptorError
from adaptor.model import EndedJob, Limits, QueueState, Request
from adaptor.reports import JobReport, NodeReport
from adaptor.resources import TaskSize

TAG_START = "adaptor-"
"""What the tags of pilots begin with, of whatever daemon."""


class SchedulerError(AdaptorError):
    """The scheduler did not answer, or not in words we know; nothing may be concluded from that."""


class PartitionClosed(SchedulerError):
    """The scheduler answers, and a partition starts no jobs at the moment, or does not exist."""


class SubmitRefused(SchedulerError):
    """The scheduler said no: the request is certainly not in its queue."""


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
    """Whose parts must lie on one node; `request.p` is a multiple of its processors, or of whole nodes."""
    directory: Path
    """The pilot's own folder (exists, 0700): script, scheduler's log, worker logs."""
    worker: tuple[str, ...]
    """The command that runs on each node of the pilot."""
    environment: dict[str, str]
    """Variables for the worker; nothing secret is among them."""
    node: str = ""
    """The idle donated node, wholly (see `SiteConfig.donation`); empty: a formal request."""
    spread: int = 0
    """Nodes on which its processors lie evenly, where the scheduler can be told; 0: wherever they fit."""
    partition: str = ""
    """By its name among the site's `partitions`; empty: the site has none, or it is for a donated node."""


class Backend(Protocol):
    """One site's scheduler. Every method may raise SchedulerError."""

    @property
    def can_release(self) -> bool:
        """Whether `release` gives nodes of a running pilot back."""

    @property
    def can_reshape(self) -> bool:
        """Whether `reshape` changes queued requests, and `jobs` tells what they ask for."""

    @property
    def time_resolution(self) -> int:
        """Seconds to which the scheduler rounds `tr` up."""

    @property
    def slot_margin(self) -> int:
        """Seconds by which a request must be shorter than a free slot to be started in it."""

    @property
    def shrink_margin(self) -> int | None:
        """Seconds of a free slot that a request with a least time does not get when it is started there.

        None: the scheduler starts no request with less than its tr, or gives it less than the slot holds.
        """

    def queue_state(self) -> QueueState:
        """Running and pending jobs of everyone, and the processors in service."""

    def nodes(self, donated: Collection[str]) -> list[NodeReport]:
        """The nodes on which the site's requests may run, in the scheduler's order.

        `donated` are the ids of the jobs by which nodes are donated: on their nodes they do not count.
        """

    def submit(self, order: PilotOrder) -> str:
        """The scheduler's job id.

        Raises:
            SubmitUncertain: the request may be in the queue, or come into it.
            SchedulerError: it certainly is not (SubmitRefused: because the scheduler said no).
        """

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """One bulk question: our jobs with these ids, and all whose tag starts with `tag_prefix`.

        A job that is missing from the answer is unknown to the scheduler, which never means that
        it completed. Finished jobs are reported for as long as the scheduler remembers them.
        """

    def cancel(self, ids: Collection[str]) -> None:
        """End these jobs, queued or running; unknown and ended ids are no error."""

    def reshape(self, id: str, order: PilotOrder) -> None:
        """Let a queued job ask for the request of an order, without losing its age (only if `can_reshape`).

        A job that has started stays as it is.

        Raises:
            ChangeRefused: the scheduler said no, most often because the job has started.
            SchedulerError: whether the request was changed is not known.
        """

    def release(self, id: str, nodes: Collection[str]) -> None:
        """Give these nodes of a running pilot back (only where `can_release`)."""

    def ended_jobs(self) -> list[EndedJob]:
        """Jobs of everyone but ours that ended lately, the oldest first, as far as we may read the records.

        It may take as long as one command may, and other calls go on beside it.
        """

    def advertised_limits(self) -> Limits:
        """The limits that the scheduler itself tells, for what the configuration leaves out."""
