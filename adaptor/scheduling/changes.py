"""What a step of the broker changed, to be written into the journal in one transaction."""

from __future__ import annotations

import msgspec

from adaptor.model import AttemptOutcome, TaskState
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.bag import Tally


class AttemptStart(msgspec.Struct, frozen=True):
    """An attempt was leased to a worker."""

    key: AttemptKey
    pilot: int
    node: str
    worker: str
    at: float


class AttemptEnd(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt is over."""

    key: AttemptKey
    outcome: AttemptOutcome
    at: float
    started: float | None = None
    wall: float | None = None
    cpu: float | None = None
    peak_memory: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    pilot: int | None = None
    """Where its worker told the end; None: nobody told it."""


class AttemptRevived(msgspec.Struct, frozen=True):
    """An attempt that was given up turns out to run still."""

    key: AttemptKey


AttemptChange = AttemptStart | AttemptEnd | AttemptRevived


class TaskChange(msgspec.Struct, frozen=True):
    """A task's state after the step."""

    bag: int
    task: int
    state: TaskState
    attempts: int
    charged: int
    result: int | None
    """The attempt whose end is the task's result."""
    error: str | None = None
    """Why the task failed, where the attempt's own end does not say it."""


class Changes(msgspec.Struct):
    """In the order in which they happened."""

    attempts: list[AttemptChange] = []
    tasks: list[TaskChange] = []
    tallies: dict[int, Tally] = {}
    """The bags whose numbers changed."""

    def __bool__(self) -> bool:
        return bool(self.attempts or self.tasks or self.tallies)
