"""Which processors of a simulated cluster are idle: it counts them, here each gets a place.

A job gets the first processors that run no other, as schedulers fill nodes from the front. For the
cluster this changes nothing; for the donation it says how long each processor has been idle.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from adaptor.donation.idleness import IdleLearner
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.kernels import NEVER, RUN_JOB, RUN_ORDER, Array, kernel
from adaptor.simulation.nodes.cluster import NodeCluster

C = TypeVar("C", Simulation, NodeCluster)

# rows of a lot
OWNER = 0  # the job that runs on a processor; -1: none
SINCE = 1  # when it became idle
TOLD = 2  # until when that was told to the learner
PLANNED = 3  # when the plan needs it; NEVER
USED = 4  # since when it is used while it is donated; -1: it is not
UNTIL = 5  # when the pilot that uses it ends
ROWS = 6


class Processors(Generic[C]):
    """The processors of a cluster, from now on; `lot` has a column for each of them."""

    def __init__(self, cluster: C, learner: IdleLearner) -> None:
        self.cluster: C = cluster
        self.learner = learner
        self.lot = np.full((ROWS, cluster.processors), -1, np.int64)
        self.lot[PLANNED] = NEVER
        self.lot[[SINCE, TOLD]] = cluster.now
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
        freed = self.lot[OWNER] == job
        self.lot[OWNER, freed] = -1
        self.lot[SINCE, freed] = self.lot[TOLD, freed] = self.cluster.now

    def places_of(self, job: int) -> Array:
        """The processors that a job takes as it starts: the first that run no other."""
        places: Array = np.flatnonzero(self.lot[OWNER] < 0)[: self.cluster.started_job(job)[2]]
        return places

    def learn(self, job: int, *, local: bool = True) -> None:
        """The idle periods that a starting job ends; those that one of ours ends would have gone on."""
        self._tell(self.places_of(job), taken=local)

    def tell(self) -> None:
        """Let the learner know of the idle periods that go on."""
        self._tell(np.flatnonzero(self.lot[OWNER] < 0), taken=False)

    def seat(self, job: int) -> None:
        """A job has started."""
        self.lot[OWNER, self.places_of(job)] = job

    def plan_ahead(self) -> None:
        """See which idle processors the cluster's plan needs, and when."""
        plan_lot(self.lot, *self.cluster.profile())

    # --- what the bag on them does ---------------------------------------------------------------

    @property
    def used(self) -> Array:
        """The donated processors that the bag uses."""
        return np.flatnonzero(self.lot[USED] >= 0)

    @property
    def some_unused(self) -> bool:
        """Whether there are idle processors that the bag does not use."""
        return bool(((self.lot[OWNER] < 0) & (self.lot[USED] < 0)).any())

    def ends(self) -> dict[int, int]:
        """When the pilots on donated processors end, and how many processors each of these ends frees."""
        ends, counts = np.unique(self.lot[UNTIL, self.used], return_counts=True)
        return dict(zip(ends.tolist(), counts.tolist(), strict=True))

    def _tell(self, places: Array, *, taken: bool) -> None:
        since, told = self.lot[[SINCE, TOLD]][:, places]
        self.lot[TOLD, places] = now = self.cluster.now
        kinds, counts = np.unique(np.stack([told - since, now - since]), axis=1, return_counts=True)
        for (before, age), nodes in zip(kinds.T.tolist(), counts.tolist(), strict=True):
            self.learner.saw(before, age, taken=taken, nodes=nodes)


@kernel
def plan_lot(lot: Array, times: Array, free: Array) -> None:
    """When the plan needs each idle processor, if jobs take the first ones: from the availability profile."""
    count = 0
    for p in range(lot.shape[1]):
        if lot[OWNER, p] < 0:
            lot[PLANNED, p] = NEVER
            count += 1
    p = 0
    for step in range(1, len(times)):
        while free[step] < count:
            while lot[OWNER, p] >= 0:
                p += 1
            lot[PLANNED, p] = times[step]
            p += 1
            count -= 1
