"""The partitions of a site as one backend: each order names the one in which it goes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.model import EndedJob, Limits, QueueState
from backends.base import Backend, InFront, PartitionClosed, PilotOrder
from backends.ceilings import Ceilings


class Partitions(InFront):
    """One backend for each partition.

    What concerns the scheduler as a whole is asked of the first. So are the nodes for pilots on donated
    nodes: these use the nodes of the partition listed first, or of `donation.partition`.
    """

    def __init__(self, each: Mapping[str, Backend]) -> None:
        """`each`: by the names of the partitions in the configuration, one at least."""
        super().__init__(next(iter(each.values())))
        self._each = dict(each)

    def queue_state(self) -> QueueState:
        """State of the largest partition, with the state of each; without those that start no jobs now.

        Raises:
            SchedulerError: no answer.
            PartitionClosed: no partition starts any job.
        """
        states: dict[str, QueueState] = {}
        closed: dict[str, str] = {}
        for name, backend in self._each.items():
            try:
                states[name] = backend.queue_state()
            except PartitionClosed as problem:
                closed[name] = str(problem)
        if not states:
            raise PartitionClosed("; ".join(f"{name}: {why}" for name, why in closed.items()))
        self.learn(self._behind)
        return together(states, closed)

    def submit(self, order: PilotOrder) -> str:
        """Submit a request in its partition. An order without one goes to the first."""
        return self._each.get(order.partition, self._behind).submit(order)

    def submit_array(self, order: PilotOrder) -> list[str]:
        """Submit equal pilots in their partition. An order without one goes to the first."""
        return self._each.get(order.partition, self._behind).submit_array(order)

    def reshape(self, id: str, order: PilotOrder) -> None:
        """Change the request of a queued job, which stays in its partition."""
        self._each.get(order.partition, self._behind).reshape(id, order)

    def ended_jobs(self) -> list[EndedJob]:
        """Jobs of other users that ended lately in all partitions, whose records may name the same jobs."""
        return [job for backend in self._each.values() for job in backend.ended_jobs()]

    def advertised_limits(self) -> Limits:
        """Advertised limits of each partition; the limits of the site are the largest of them."""
        return most_of({name: backend.advertised_limits() for name, backend in self._each.items()})

    def ceilings(self, partition: str = "") -> Ceilings | None:
        """The most that the scheduler lets a request in a partition have."""
        return self._each.get(partition, self._behind).ceilings()


def together(states: Mapping[str, QueueState], closed: Mapping[str, str] | None = None) -> QueueState:
    """The state of a site from those of its partitions, one at least."""
    largest = max(states.values(), key=lambda state: state.processors)
    return msgspec.structs.replace(largest, partitions=dict(states), closed=dict(closed or {}))


def most_of(limits: Mapping[str, Limits]) -> Limits:
    """The most that any of these partitions allows, with the limits of each."""
    return Limits(
        max_pending_requests=max(each.max_pending_requests for each in limits.values()),
        max_pilots=max(each.max_pilots for each in limits.values()),
        max_proc=max(each.max_proc for each in limits.values()),
        max_tr=max(each.max_tr for each in limits.values()),
        partitions=dict(limits),
    )
