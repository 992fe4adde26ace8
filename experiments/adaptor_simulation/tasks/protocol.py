"""The tasks of one bag in the slots of running pilots, by any model of the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from adaptor.scheduling.broker import Broker
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.grid_job import GridTerms
from adaptor_simulation.kernels import Array

BAG = 1
SITE = "site"  # the only bag, and the name of the only site


class Served(msgspec.Struct):
    """Work in a pilot, in tasks and in processor-seconds."""

    tasks: int = 0
    work: int = 0
    """Work of tasks that finished there."""
    cut: int = 0
    """Tasks that were ended before they had finished."""
    lost: int = 0
    """Work of the cut tasks."""


class Tasks(Protocol):
    """The tasks of one bag in the slots of running pilots. All times are whole seconds of the trace.

    A worker per pilot pulls tasks as soon as it has a free slot (eager scheduling, De Rose §4.3). It ends
    its tasks `last` seconds before its pilot's end; they are learned from and wait again at the head of the
    queue. A worker without work leaves after its idle time, or at once when all tasks have ended.
    """

    @property
    def board(self) -> Broker:
        """Facts about the tasks for decisions, and reports of the site."""

    @property
    def ended(self) -> bool:
        """Whether every task is done or given up."""

    @property
    def waiting(self) -> int:
        """Tasks that no worker has."""

    @property
    def last_end(self) -> int:
        """End of the last of the tasks that have ended."""

    @property
    def failed(self) -> Sequence[int]:
        """Tasks that were given up: they had all the time that a request can give, and were cut."""

    def add_pilot(self, pilot: int, processors: int, started: int, deadline: int) -> None:
        """A pilot has started now; its worker takes tasks at once.

        On a donated node if the board knows that of it (`use_node`).
        """

    def end_pilot(self, pilot: int, now: int) -> Served:
        """The scheduler ends a pilot now, its worker gets a signal; returns what was done in it."""

    def ahead(self, until: int) -> int:
        """The next second, `until` at the latest, in which something may happen that matters to the cluster.

        The tasks may have been run ahead to it; `settle` takes back what is not reached.
        """

    def settle(self, now: int) -> bool:
        """Let all happen up to and including `now`; whether the estimated runtime has changed."""

    def leave(self, now: int) -> dict[int, Served]:
        """Pilots whose workers have left since the last call, and what was done in each."""


MakeTasks = Callable[[Array, GridTerms, Cluster], Tasks]
"""The tasks of a bag with these runtimes (whole seconds), on these terms, submitted now to this cluster."""
