"""What a bag costs the local jobs: their waits with it, less their waits without it."""

from __future__ import annotations

import numpy as np

from adaptor.simulation.cluster import Cluster

AFTERWARDS = 3 * 86_400
"""Seconds after a bag's end for which the local jobs are followed."""


class LocalWaits:
    """The local jobs of one submission time. Waits in seconds.

    A job counts as far as it has waited by the end of the time for which they are followed, so that the sum
    is the same whether it has started by then or not.
    """

    def __init__(self, base: Cluster, afterwards: int = AFTERWARDS) -> None:
        """`base`: the cluster at the submission, without us; it must not move any more."""
        self._afterwards = afterwards
        self._alone = base.fork()
        waiting = np.flatnonzero(base.starts() < 0)
        self._first = int(waiting[0]) if len(waiting) else len(base.jobs)

    def added(self, cluster: Cluster, end: int) -> int:
        """Seconds by which the local jobs wait longer in all, often below 0; the cluster's clock moves on.

        Args:
            cluster: with the bag, whose last request is over.
            end: of the bag's last task.
        """
        until = max(cluster.now, end + self._afterwards)
        cluster.advance(until)
        self._alone.advance(max(self._alone.now, until))
        return self._waited(cluster, until) - self._waited(self._alone, until)

    def _waited(self, cluster: Cluster, until: int) -> int:
        submit = cluster.jobs.submit
        came = int(np.searchsorted(submit, until, side="right"))
        starts = cluster.starts(self._first)[: max(0, came - self._first)]
        waited_until = np.where(starts < 0, until, np.minimum(starts, until))
        return int((waited_until - submit[self._first : came]).sum())
