"""Which processors of a simulated cluster are idle: it counts them, here each gets a place.

A job gets the first processors that run no other, as schedulers fill nodes from the front. For the
cluster this changes nothing; for the donation it says how long each processor has been idle.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from adaptor.donation.idleness import IdleLearner
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.donation import kernels as k
from adaptor.simulation.kernels import NEVER, RUN_JOB, RUN_ORDER, Array
from adaptor.simulation.nodes.cluster import NodeCluster

C = TypeVar("C", Simulation, NodeCluster)


class Processors(Generic[C]):
    """The processors of a cluster, from now on; `lot` is the table of `kernels`."""

    def __init__(self, cluster: C, learner: IdleLearner) -> None:
        self.cluster: C = cluster
        self.learner = learner
        self.lot = np.full((k.ROWS, cluster.processors), -1, np.int64)
        self.lot[[k.PLANNED, k.END]] = NEVER
        self.lot[[k.SINCE, k.TOLD]] = cluster.now
        self._running: set[int] = set()
        self.watch()

    def fork(self, cluster: C) -> Processors[C]:
        """The same processors under a fork of the cluster, with a learner of their own."""
        twin: Processors[C] = object.__new__(Processors)
        twin.cluster, twin.learner = cluster, IdleLearner(self.learner.idleness)
        twin.lot, twin._running = self.lot.copy(), self._running.copy()
        return twin

    def watch(self) -> None:
        """Take in what has started and ended, where no bag uses donated processors."""
        ended, started = self.changes()
        for job in ended:
            self.vacate(job)
        for job in started:
            self.learn(job)
            self.seat(job)

    def changes(self) -> tuple[list[int], list[int]]:
        """Jobs that have ended, and that have started, since this was asked last; in their order."""
        rows = self.cluster.running_rows()
        running = set(rows[:, RUN_JOB].tolist())
        if running == self._running:
            return [], []
        ended, started = self._running - running, running - self._running
        self._running = running
        order = dict(zip(rows[:, RUN_JOB].tolist(), rows[:, RUN_ORDER].tolist(), strict=True))
        return sorted(ended), sorted(started, key=order.__getitem__)

    def vacate(self, job: int) -> None:
        """A job has ended."""
        freed = self.lot[k.OWNER] == job
        self.lot[k.OWNER, freed] = self.lot[k.DEADLINE, freed] = -1
        self.lot[k.SINCE, freed] = self.lot[k.TOLD, freed] = self.cluster.now

    def places_of(self, job: int) -> Array:
        """The processors that a job takes as it starts: the first that run no other."""
        places: Array = np.flatnonzero(self.lot[k.OWNER] < 0)[: self.cluster.started_job(job)[2]]
        return places

    def learn(self, job: int, *, local: bool = True) -> None:
        """The idle periods that a starting job ends; those that one of ours ends would have gone on."""
        self._tell(self.places_of(job), taken=local)

    def tell(self) -> None:
        """Let the learner know of the idle periods that go on."""
        self._tell(np.flatnonzero(self.lot[k.OWNER] < 0), taken=False)

    def seat(self, job: int, deadline: int | None = None) -> None:
        """A job has started; `deadline` is given where it is a pilot of ours."""
        need = self.cluster.started_job(job)[2]
        k.seat(self.lot, job, need, -1 if deadline is None else deadline)

    def plan_ahead(self) -> None:
        """See which idle processors the cluster's plan needs, and when."""
        k.plan_ahead(self.lot, *self.cluster.profile())

    # --- what the bag on them does ---------------------------------------------------------------

    @property
    def used(self) -> Array:
        """The donated processors that the bag uses."""
        return np.flatnonzero(self.lot[k.USED] >= 0)

    @property
    def some_unused(self) -> bool:
        """Whether there are idle processors that the bag does not use."""
        return bool(((self.lot[k.OWNER] < 0) & (self.lot[k.USED] < 0)).any())

    def used_until(self, now: int) -> int:
        """Processor-seconds for which those in use have been."""
        return int((now - self.lot[k.USED, self.used]).sum())

    def ends(self) -> dict[int, int]:
        """When the pilots on donated processors end, and how many processors each of these ends frees."""
        ends, counts = np.unique(self.lot[k.UNTIL, self.used], return_counts=True)
        return dict(zip(ends.tolist(), counts.tolist(), strict=True))

    def busy(self, job: int) -> bool:
        """Whether a task runs in the pilot."""
        return bool(((self.lot[k.OWNER] == job) & (self.lot[k.TASK] >= 0)).any())

    def _tell(self, places: Array, *, taken: bool) -> None:
        since, told = self.lot[[k.SINCE, k.TOLD]][:, places]
        self.lot[k.TOLD, places] = now = self.cluster.now
        kinds, counts = np.unique(np.stack([told - since, now - since]), axis=1, return_counts=True)
        for (before, age), nodes in zip(kinds.T.tolist(), counts.tolist(), strict=True):
            self.learner.saw(before, age, taken=taken, nodes=nodes)
