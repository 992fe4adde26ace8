"""A cluster on which nothing happens for months."""

from __future__ import annotations

from adaptor_simulation.cluster import Cluster, cluster_of_processors
from tests.simulation.trace_strategies import jobs_from


def empty_cluster(processors: int) -> Cluster:
    return cluster_of_processors(jobs_from([(10_000_000, 1, 1, 1)]), processors, "easy")
