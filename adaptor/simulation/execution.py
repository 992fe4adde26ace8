"""What the driver of a grid job needs of the workers in its pilots, whoever stands in for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from adaptor.crafting.situation import Demand
from adaptor.runtimes.learner import LearnedRuntimes


class Served(msgspec.Struct, frozen=True):
    """What was done in a pilot."""

    tasks: int
    work: int
    """Processor-seconds of these tasks."""


class Execution(Protocol):
    """The tasks of one bag in the slots of running pilots. All times are whole seconds of the trace.

    A worker per pilot pulls tasks as soon as it has a free slot (eager scheduling, De Rose §4.3). It ends
    its tasks `last` seconds before its pilot's end; they are learned from and wait again at the head of the
    queue.
    A worker without work leaves after its idle time, or at once when all tasks have ended.
    """

    @property
    def ended(self) -> bool:
        """Whether every task is done or given up."""

    @property
    def last_end(self) -> int:
        """When the last of the tasks that have ended did so."""

    @property
    def failed(self) -> Sequence[int]:
        """Tasks that were given up: they had all the time that a request can give, and were cut."""

    @property
    def learned(self) -> LearnedRuntimes:
        """What is known of the tasks' runtimes."""

    def demands(self) -> tuple[Demand, ...]:
        """What the planner is told."""

    def add_pilot(self, pilot: int, processors: int, started: int, deadline: int) -> None:
        """A pilot has started now; its worker takes tasks at once."""

    def end_pilot(self, pilot: int, now: int) -> Served:
        """The scheduler ends a pilot now, its worker gets a signal; returns what was done in it."""

    def ahead(self) -> int:
        """The next second in which something may happen that matters to the cluster; NEVER: none will.

        The tasks may have been run ahead to it; `settle` takes back what is not reached.
        """

    def settle(self, now: int) -> bool:
        """Let all happen up to and including `now`; whether the estimated runtime has changed."""

    def leave(self, now: int) -> dict[int, Served]:
        """Pilots whose workers have left since the last call, and what was done in each."""
