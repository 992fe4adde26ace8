"""What a bag costs the local jobs of a cluster: when they start with it, and when without."""

from __future__ import annotations

import numpy as np

from adaptor.simulation.cluster import Cluster
from adaptor.simulation.kernels import NEVER, Array

EVER = NEVER - 1
"""Until all have started."""


class LocalJobs:
    """Those of the trace that had not started when a bag came, in the order of submission."""

    def __init__(self, base: Cluster) -> None:
        """`base`: the cluster at that instant, without us; it must not move any more."""
        self._alone = base.fork()
        starts = base.starts()
        waiting = np.flatnonzero(starts < 0)
        self._first = int(waiting[0]) if len(waiting) else len(starts)
        self._open = starts[self._first :] < 0

    def starts(self, cluster: Cluster, until: int, came: int = EVER) -> tuple[Array, Array, Array]:
        """When those that came by `came` were submitted, when they start without us, and with us; seconds.

        They are followed until `until`: one that still waits then counts as if it started at that instant.

        Args:
            cluster: with the bag, whose last request is over; its clock moves on.
        """
        here = self._open.copy()
        submit = cluster.jobs.submit[self._first :]
        here[np.searchsorted(submit, came, side="right") :] = False
        both = []
        for each in (self._alone, cluster):
            each.advance(max(each.now, until))
            starts = each.starts(self._first)[here]
            both.append(np.where(starts < 0, until, np.minimum(starts, until)))
        return submit[here], *both
