"""The changes of one broker step, which the journal writes in one transaction."""

from __future__ import annotations

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.model import AttemptOutcome, TaskState, UserChange
from adaptor.protocol.messages import AttemptKey, Result
from adaptor.resources import OwnNeeds
from adaptor.scheduling.bag import Guard, Tally


class AttemptStart(msgspec.Struct, frozen=True):
    """A worker got an attempt. Times in epoch seconds."""

    key: AttemptKey
    pilot: int
    node: str
    worker: str
    at: float
    processors: int | None = None
    """Processors that it holds; None: as its bag says."""


class AttemptEnd(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt has ended. Instants in epoch seconds, durations in seconds, memory in bytes."""

    key: AttemptKey
    outcome: AttemptOutcome
    at: float
    started: float | None = None
    wall: float | None = None
    result: Result | None = None
    """Result by its worker; None: no worker reported one."""
    pilot: int | None = None
    """The pilot whose worker reported the end; None: no worker reported it."""
    suspect: bool = False
    """Whether it ran when its worker died: counted against the task's `max_lost`."""


class AttemptRevived(msgspec.Struct, frozen=True):
    """An attempt still runs although the broker had given it up."""

    key: AttemptKey


class AttemptSuspected(msgspec.Struct, frozen=True):
    """A lost attempt counts against the task's `max_lost` from now on, or no longer."""

    key: AttemptKey
    suspect: bool


AttemptChange = AttemptStart | AttemptEnd | AttemptRevived | AttemptSuspected


class WorkerDied(msgspec.Struct, frozen=True):
    """A worker died for no known reason, and what ran on it is suspected."""

    site: str
    pilot: int
    text: str
    """The event and its consequence, in a sentence."""


class TaskChange(msgspec.Struct, frozen=True):
    """The state of a task after the step, or of several with consecutive numbers that changed alike."""

    bag: int
    task: int
    """The number of the first."""
    state: TaskState
    attempts: int
    charged: int
    result: int | None
    """The attempt whose end is the task's result."""
    error: str | None = None
    """Why the task failed, if the end of the attempt does not say it."""
    event: int | None = None
    """The number of this change among the events of the bag, of the first task; None: clients are not told of
    it. Those of the others follow."""
    count: int = 1
    """The number of tasks."""

    @property
    def tasks(self) -> range:
        return range(self.task, self.task + self.count)

    def with_next(self, change: TaskChange) -> TaskChange | None:
        """The change and the next one as one; None: they are not alike, or do not follow each other."""
        count = self.count
        if self.result is not None or change.task != self.task + count:
            return None
        follows = msgspec.structs.replace(
            self,
            task=self.task + count,
            event=None if self.event is None else self.event + count,
            count=change.count,
        )
        return msgspec.structs.replace(self, count=count + change.count) if follows == change else None


class MemoryRaised(msgspec.Struct, frozen=True):
    """A task that ran out of memory gets more."""

    bag: int
    task: int
    memory: int
    """Bytes, from now on."""
    site: str
    pilot: int
    """Pilot in which it ran out of memory."""
    text: str
    """The event in one sentence; empty: the same was reported for another task."""


class NeedsChanged(msgspec.Struct, frozen=True):
    """The user says that tasks have other needs from now on."""

    bag: int
    tasks: list[int]
    needs: OwnNeeds
    """Needs that replace those of the tasks; None in it: as before."""


class Changes(msgspec.Struct):
    """All changes of one step, in the order in which they happened."""

    attempts: list[AttemptChange] = []
    tasks: list[TaskChange] = []
    deaths: list[WorkerDied] = []
    """Deaths of workers that `adaptor why` is to show."""
    raised: list[MemoryRaised] = []
    needs: list[NeedsChanged] = []
    tallies: dict[int, Tally] = {}
    """New counts of each bag whose counts changed."""
    by_user: dict[int, UserChange] = {}
    """Change by its user of each changed bag."""
    guards: dict[int, Guard] = {}
    """New guard of each bag that has paused, or goes on."""
    specs: dict[int, BagSpec] = {}
    """All options of each bag whose options its user has changed."""

    at_rest: bool = False
    """True if a bag whose counts changed has ended, or is paused and runs nothing: workers may be useless."""

    def note(self, change: TaskChange) -> None:
        """Add the change of a task; where many change alike, as in a cancelled bag, they are one change."""
        together = self.tasks[-1].with_next(change) if self.tasks else None
        if together is None:
            self.tasks.append(change)
        else:
            self.tasks[-1] = together

    def __bool__(self) -> bool:
        return bool(self.attempts or self.tasks or self.tallies or self.guards or self.specs)
