"""What a step of a site (`adaptor.decisions.step`) asks of its driver, and the answers.

Times are epoch seconds.
"""

from __future__ import annotations

import enum
from collections.abc import Generator, Sequence
from typing import TypeAlias

import msgspec

from adaptor.crafting.situation import Demand, Reshape
from adaptor.decisions.actions import Action, SubmitRequest
from adaptor.decisions.decide import Decision
from adaptor.decisions.pilots import Pilot
from adaptor.model import Limits, QueueState, Request
from adaptor.protocol.messages import Result
from adaptor.reports import JobReport, NodeReport, Remedy
from adaptor.scheduling.workers import Worker


class Ask(enum.Enum):
    """What a step asks for; the field of `Reply` with this name has the answer."""

    LIMITS = enum.auto()
    PILOTS = enum.auto()
    NODES = enum.auto()
    QUEUE = enum.auto()
    DECISION = enum.auto()
    """`decide`, by a snapshot that is taken for it."""


class Cancel(msgspec.Struct, frozen=True):
    """Order the scheduler to end these jobs."""

    jobs: tuple[str, ...]


class Intend(msgspec.Struct, frozen=True):
    """Write down that this is about to be asked of the scheduler, and reserve what it may cost."""

    action: SubmitRequest | Reshape
    asked: Request
    """As the scheduler takes it."""


class Submit(msgspec.Struct, frozen=True):
    """Ask the scheduler for the request of a pilot."""

    pilot: Pilot
    demand: Demand


class Together(msgspec.Struct, frozen=True):
    """Drive these steps, several at a time where that helps."""

    steps: tuple[Steps, ...]


class RequestChanged(msgspec.Struct, frozen=True):
    """Write down what a pilot asks for now, and reserve what that costs."""

    pilot: Pilot
    asked: Request
    """The same as the scheduler takes it."""
    reason: str | None = None
    """Why it asks for that; None: as before."""


class PilotChanged(msgspec.Struct, frozen=True):
    """Write the state of a pilot down. One that is refused costs nothing from now on."""

    pilot: Pilot
    lost: tuple[Worker, ...] = ()
    """The workers that ended with it."""


class Commit(msgspec.Struct, frozen=True):
    """Write down what the broker has changed."""


class PilotsEnded(msgspec.Struct, frozen=True):
    """Charge these pilots, all of whose tasks are written down."""

    pilots: tuple[int, ...]


class LeftBehind(msgspec.Struct, frozen=True, kw_only=True):
    """What the workers of a pilot left in its folder."""

    results: Sequence[Result] = []
    """Those that they wrote down when they left without an acknowledgement."""
    complaints: str = ""
    """Of workers that could not reach the daemon, one sentence each."""
    last_words: str = ""
    """The last line of the scheduler's log, which often says why a pilot failed."""


class PilotNews(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler says of a pilot, and what its workers left behind."""

    pilot: int
    report: JobReport | None
    """None: the scheduler does not name it."""
    left: LeftBehind | None = None
    """None: its folder was not read."""


class Answer(enum.Enum):
    """What became of a request, of a change, or of an order to cancel."""

    TAKEN = enum.auto()
    REFUSED = enum.auto()
    """By the scheduler: another request may be taken."""
    FAILED = enum.auto()
    """The scheduler failed, and certainly has not taken it."""
    UNCERTAIN = enum.auto()
    """Whether the scheduler has taken it is not known."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question; None: the scheduler does not answer."""

    now: float
    limits: Limits | None = None
    pilots: Sequence[PilotNews] | None = None
    """Those of which something is known now."""
    strays: Sequence[str] = ()
    """Jobs of ours that are no pilots of which anything is known."""
    nodes: Sequence[NodeReport] | None = None
    midnight: float = 0.0
    """Some local midnight, of an answer with nodes."""
    queue: QueueState | None = None
    decision: Decision | None = None
    pilot: int = 0
    """The number of a pilot whose request is written down now."""
    tag: str = ""
    """Of that pilot."""
    job: str = ""
    """The scheduler's id of a request that it has taken."""
    answer: Answer = Answer.TAKEN
    remedy: Remedy = Remedy.OTHER
    """Of a request that was refused: which other one the scheduler might take."""
    problem: str = ""
    """Why it was not taken, or of an intent: why a budget does not hold it, so that it is not written."""


Question: TypeAlias = (
    Ask | Cancel | Intend | Submit | Together | RequestChanged | PilotChanged | Commit | PilotsEnded | Action
)
Steps: TypeAlias = Generator[Question, Reply, None]
