"""One bag on donated processors and in the pilots of formal requests, as the driver sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from adaptor.crafting.situation import Demand
from adaptor.donation.situation import Allocation, DonationRules
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.donation.processors import Processors
from adaptor.simulation.grid_job import GridTerms
from adaptor.simulation.kernels import Array


class DonationBag(Protocol):
    """A worker on each processor that is ours pulls the next task which, by the estimate, fits.

    In a pilot of a formal request it must end before the pilot does; on a donated processor also before
    that is taken, with the probability that the rules want. A donated processor without a task is given
    back. All times are whole seconds of the trace.
    """

    total: int

    @property
    def done(self) -> int:
        """Tasks that have ended; those that were given up (`failed`) are among them."""

    @property
    def failed(self) -> int:
        """Tasks that were cut although they had all the time that a request can hold."""

    @property
    def last_end(self) -> int:
        """When the last of them ended."""

    @property
    def waiting(self) -> int:
        """Tasks that nobody has."""

    def figures(self, now: int) -> dict[str, int]:
        """Processor-seconds used so far, of use and lost, and donated processors taken by jobs."""

    def demand(self) -> Demand:
        """What the planner is told of the waiting tasks."""

    def expire(self) -> None:
        """End the pilots on donated processors whose time is up; their tasks are cut."""

    def start(self, job: int, deadline: int | None) -> None:
        """A job starts, which takes donated processors back; `deadline` is given where it is a pilot."""

    def end(self, job: int) -> None:
        """A job has ended; tasks that ran in it are cut and wait again."""

    def expect(self, start: int | None) -> None:
        """When the next formal request is predicted to start; None: none waits to."""

    def use_nodes(self) -> None:
        """Do what the donation decides now, and start tasks on all idle processors of ours."""

    def fill(self) -> None:
        """Start tasks on all idle processors of ours: first in pilots, then on donated ones."""

    def run(self, until: int) -> int:
        """Let tasks end, and others start on their processors, up to and including `until`.

        Returns:
            When it stopped before that, to have something learned before the next task starts (`fill`
            goes on) or because a pilot has no task any more; NEVER where it did not.
        """

    def learn(self) -> bool:
        """Learn from the tasks that are done; whether that has changed the estimate."""


BagFactory = Callable[[Processors[Simulation], Array, GridTerms, DonationRules, Allocation], DonationBag]
"""Makes a bag of tasks with these runtimes (whole seconds), which is submitted now."""
