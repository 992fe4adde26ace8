"""Reports of a scheduler on our jobs and its nodes, in words common to all schedulers.

Frozen types, no behaviour. Times are epoch seconds.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from adaptor.donation.situation import NodeReport as NodeReport
from adaptor.model import PilotState


class JobState(enum.Enum):
    """State of a job, in words common to all schedulers."""

    QUEUED = "queued"
    RUNNING = "running"
    """Holds processors; starting up and completing are included."""
    COMPLETED = "completed"
    FAILED = "failed"
    WALLTIME = "walltime"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    NODE_FAILED = "node_failed"
    UNKNOWN = "unknown"
    """A word that we do not know; never taken as an end."""
    GONE = "gone"
    """The scheduler says that it has no job of this number (any more), and has no record of one; no tag."""

    @property
    def ended(self) -> PilotState | None:
        """The pilot state that this end means; None while the job is in the system or unknown."""
        return _ENDS.get(self)


_ENDS = {
    JobState.COMPLETED: PilotState.COMPLETED,
    JobState.FAILED: PilotState.FAILED,
    JobState.WALLTIME: PilotState.WALLTIME,
    JobState.PREEMPTED: PilotState.PREEMPTED,
    JobState.CANCELLED: PilotState.CANCELLED,
    JobState.NODE_FAILED: PilotState.NODE_FAILED,
}


class OwnJob(msgspec.Struct, frozen=True):
    """A job that the adaptor submitted. Its number may be given to another job later; its tag never is."""

    id: str
    """The scheduler's number."""
    tag: str
    """Text that the scheduler keeps for us: the name, a comment or a variable of the job."""


class Remedy(enum.Enum):
    """The change by which a scheduler might start a request that it does not start as it is."""

    SHORTER = "shorter"
    NARROWER = "narrower"
    """A request with fewer processors."""
    SMALLER = "smaller"
    """Shorter, narrower or both: the scheduler does not say which."""
    OTHER = "other"
    """No smaller request helps: it takes other words, a person, or the end of other jobs."""


class Hold(enum.Enum):
    """The cause for which a waiting job is not considered, besides the jobs before it."""

    NONE = "none"
    ITS_OWN = "its own"
    """A cause in this job alone: a person holds it, or it begins later."""
    LIMIT = "limit"
    """A limit of its user, account, group or QOS, until other jobs end: it holds for new requests too."""
    SPENT = "spent"
    """A limit of the same kind that the end of no job lifts: the time of an allocation is used up."""


class Wait(msgspec.Struct, frozen=True):
    """Why a waiting job does not start, by the scheduler's word."""

    said: str = ""
    """One sentence with that word and what the user can do; empty: it takes its turn among other jobs."""
    hold: Hold = Hold.NONE
    remedy: Remedy = Remedy.OTHER


TURN = Wait()  # it waits as every job does


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's report on one job of our user."""

    id: str
    tag: str
    state: JobState
    start: float | None = None
    """Epoch seconds of its start; None: it is queued."""
    end: float | None = None
    """Epoch seconds of its end; None: it has not ended."""
    planned_start: float | None = None
    granted: float | None = None
    """Seconds that it got when it started, where that may be fewer than were asked for; None: as many."""
    processors: int | None = None
    """Processors that it asks for, or has got since it started; None: the scheduler does not say it in the
    terms of a request."""
    limit: float | None = None
    """Seconds that it asks for now; None: not known."""
    partition: str = ""
    """Partition in which it waits or runs; empty: several, or the scheduler does not say."""
    begins: float | None = None
    """The scheduler holds it in its queue until then; None: it does not, or does not say."""
    nodes: tuple[str, ...] = ()
    yielded: float | None = None
    """Seconds from the call to make room until nothing of it ran; None: not known, or it was not called."""
    reason: str = ""
    """The scheduler's own word for why it waits or ended."""
    never: str = ""
    """Why it can never start as it stands, one sentence; empty when it can."""
    wait: Wait = TURN
    """Why it waits; of one that can never start only the remedy counts."""
    held: int | None = None
    """Processors that it has by the scheduler's own count; None: it has not started, or that is not told."""

    @property
    def own(self) -> OwnJob:
        return OwnJob(self.id, self.tag)


def gone(ids: Iterable[str]) -> list[JobReport]:
    """The scheduler says that it has no jobs of these numbers."""
    return [JobReport(id=id, tag="", state=JobState.GONE) for id in sorted(ids)]
