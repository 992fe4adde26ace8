"""Parts of a course of a bag: its events, pilots, running tasks, and tasks that were cut."""

from __future__ import annotations

import math
from enum import IntEnum, auto
from typing import NamedTuple

from adaptor.forecast.supply import PilotAhead


class Event(IntEnum):
    """Events, in the order in which those of the same instant happen."""

    TASKS_END = auto()  # what was cut waits before other slots of this instant are free
    SLOT_STARTS = auto()
    UNIT_ENDS = auto()
    PILOT_LEAVES = auto()  # if it has been idle until then
    REQUESTS = auto()  # they are considered


class PilotOfCourse:
    __slots__ = ("ahead", "end", "idle_since", "live", "outlasting", "slots", "sooner", "start")

    def __init__(self, ahead: PilotAhead, slots: int) -> None:
        self.ahead, self.start, self.end = ahead, ahead.start, ahead.end
        self.slots = slots
        self.live = slots
        """Slots that have a task, or were not asked yet."""
        self.outlasting = 0
        """Running tasks that count for no slot: the longest of a group of the last round."""
        self.idle_since = math.inf
        self.sooner = 0.0
        """Mean seconds by which the pilots that it stands for are idle before the last of them."""


class CutTask(NamedTuple):
    """A task that was cut, or tasks of slots that count as one."""

    ran: float
    """Seconds for which it ran at most."""
    number: int
    takes: float
    outlasts: bool = False
    """Whether it is the longest of its group, and takes no slot (see `RunningTasks`)."""


class RunningTasks(NamedTuple):
    pilot: PilotOfCourse
    since: float
    """Epoch seconds at which it would have started, had it run without a break."""
    takes: float
    """Seconds that it takes in all."""
    tasks: float
    """Tasks that run one after the other; these are in `takes` together."""
    number: int | None
    """Number of a task that was cut before; None: another task."""
    cut: bool
    """Whether the last of them is cut at the end of the pilot."""
    outlasts: bool
    """Whether it is the longest of a group, which ends before it: the slot goes on without it."""
