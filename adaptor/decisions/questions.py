"""Questions of a step of a site (`adaptor.decisions.step`) to its driver, and the answers.

Times are epoch seconds.
"""

from __future__ import annotations

import enum
from collections.abc import Generator, Sequence
from typing import TypeAlias

import msgspec

from adaptor.crafting.situation import Demand, Reshape, SubmitRequest
from adaptor.decisions.actions import Action
from adaptor.decisions.decide import Decision
from adaptor.decisions.pilots import LEFT_OUT, Absence, Pilot
from adaptor.model import Limits, QueueState, Request
from adaptor.protocol.messages import Result
from adaptor.reports import JobReport, NodeReport, OwnJob, Remedy
from adaptor.scheduling.workers import Worker


class Ask(enum.Enum):
    """Kind of question of a step; the field of `Reply` with this name has the answer."""

    LIMITS = enum.auto()
    PILOTS = enum.auto()
    NODES = enum.auto()
    QUEUE = enum.auto()
    DECISION = enum.auto()
    """`decide`, by a snapshot that is taken for it."""


class Cancel(msgspec.Struct, frozen=True):
    """Order the scheduler to end these jobs."""

    jobs: tuple[OwnJob, ...]


class Intend(msgspec.Struct, frozen=True):
    """Write down that a pilot array, or one pilot, is about to be submitted, and reserve what it may cost.

    As many of the pilots as the budgets hold are written down, in one transaction.
    """

    submits: tuple[SubmitRequest, ...]
    """Submissions of equal pilots."""
    asked: Request
    """The request of each, in the form that the scheduler takes."""


class IntendChange(msgspec.Struct, frozen=True):
    """Write down that a change is about to be asked of the scheduler, and reserve what it may cost."""

    action: Reshape
    asked: Request
    """The request in the form that the scheduler takes."""


class Submit(msgspec.Struct, frozen=True):
    """Ask the scheduler for equal pilots, whose numbers follow each other, by one submission."""

    pilots: tuple[Pilot, ...]
    demand: Demand


class Together(msgspec.Struct, frozen=True):
    """Drive these steps, several at a time where that helps."""

    steps: tuple[Steps, ...]


class RequestChanged(msgspec.Struct, frozen=True):
    """Write down what a pilot asks for now, and reserve what that costs."""

    pilot: Pilot
    asked: Request
    """The changed request in the form that the scheduler takes."""
    reason: str | None = None
    """Why it asks for that; None: as before."""


class PilotChanged(msgspec.Struct, frozen=True):
    """Write the state of a pilot down. One that is refused costs nothing from now on."""

    pilot: Pilot
    lost: tuple[Worker, ...] = ()
    """The workers that ended with it."""


class PilotsChanged(msgspec.Struct, frozen=True):
    """Several pilots have changed, none of which has a worker that ended with it."""

    pilots: tuple[Pilot, ...]


class Commit(msgspec.Struct, frozen=True):
    """Write down what the broker has changed."""


class PilotsEnded(msgspec.Struct, frozen=True):
    """Charge these pilots, all of whose tasks are written down."""

    pilots: tuple[int, ...]


class LeftBehind(msgspec.Struct, frozen=True, kw_only=True):
    """Files that the workers of a pilot left in its folder, decoded."""

    results: Sequence[Result] = []
    """Results that workers wrote down when they left without an acknowledgement."""
    complaints: str = ""
    """Complaints of workers that could not reach the daemon, one sentence each."""
    last_words: str = ""
    """The last line of the scheduler's log, which often says why a pilot failed."""
    way_out: str = ""
    """A sentence for its user, if it failed before any of its workers has called."""


class PilotNews(msgspec.Struct, frozen=True, kw_only=True):
    """News of a pilot from the scheduler, and the files that its workers left behind."""

    pilot: int
    report: JobReport | None
    """The scheduler's report; None: it does not name the pilot."""
    absence: Absence = LEFT_OUT
    """The scheduler's answer about a pilot that it does not name."""
    left: LeftBehind | None = None
    """Files from its folder; None: the folder was not read."""


class Answer(enum.Enum):
    """Fate of a request, of a change, or of an order to cancel."""

    TAKEN = enum.auto()
    REFUSED = enum.auto()
    """Refused by the scheduler: another request may be taken."""
    FAILED = enum.auto()
    """The scheduler failed, and certainly has not taken it."""
    UNCERTAIN = enum.auto()
    """Unknown whether the scheduler has taken it."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question; None: the scheduler does not answer."""

    now: float
    limits: Limits | None = None
    pilots: Sequence[PilotNews] | None = None
    """News of the pilots of which something is known now."""
    strays: Sequence[OwnJob] = ()
    """Jobs with tags of this site that are no pilots of which anything is known."""
    nodes: Sequence[NodeReport] | None = None
    midnight: float = 0.0
    """Epoch seconds of some local midnight, in an answer with nodes."""
    queue: QueueState | None = None
    decision: Decision | None = None
    pilot: int = 0
    """The number of the first of the pilots whose requests are written down now; the others follow it."""
    tags: tuple[str, ...] = ()
    """Tags of those pilots."""
    jobs: tuple[str, ...] = ()
    """The scheduler's ids of the pilots that it has taken."""
    answer: Answer = Answer.TAKEN
    remedy: Remedy = Remedy.OTHER
    """The change by which the scheduler might take a request that it refused."""
    problem: str = ""
    """Why it was not taken, or of an intent: why a budget does not hold more than is written down."""


Question: TypeAlias = (
    Ask
    | Cancel
    | Intend
    | IntendChange
    | Submit
    | Together
    | RequestChanged
    | PilotChanged
    | PilotsChanged
    | Commit
    | PilotsEnded
    | Action
)
Steps: TypeAlias = Generator[Question, Reply, None]
