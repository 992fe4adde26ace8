"""Jobs that a user has submitted to the simulated cluster and that wait there."""

from __future__ import annotations

import numpy as np

from adaptor_simulation.cluster import Cluster


class Waiting:
    """Waiting jobs that are submitted through this object; it must be the only one of its cluster that
    submits."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._first = len(cluster.jobs) + len(cluster.outside_starts())
        self._numbers = np.zeros(0, np.int64)
        self._new: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers) + len(self._new)

    def submit(self, processors: int, limit: int) -> int:
        """The number of the job in the cluster. `limit`: seconds."""
        number = self._cluster.submit(processors, limit)
        self._new.append(number)
        return number

    def started(self) -> list[tuple[int, int]]:
        """The numbers of those that have started since the last call, and when, in the order of submission.

        Some start at once.
        """
        self._numbers = np.concatenate([self._numbers, np.array(self._new, np.int64)])
        self._new.clear()
        starts = self._cluster.outside_starts()[self._numbers - self._first]
        found = starts >= 0
        begun = zip(self._numbers[found].tolist(), starts[found].tolist(), strict=True)
        self._numbers = self._numbers[~found]
        return list(begun)

    def cancel(self) -> None:
        """All of them."""
        for number in [*self._numbers.tolist(), *self._new]:
            self._cluster.cancel(number)
