"""Whether free slots that the planner finds are there: one bag at many instants, with and without nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from adaptor.simulation.cluster import Cluster
from adaptor.simulation.grid_job import GridResult, GridTerms
from adaptor.simulation.grid_run import run_grid_job
from adaptor.simulation.kernels import Array

TWO_CYCLES = 60
"""Seconds of two scheduling cycles, by Slurm's default `bf_interval` of 30 s."""


class HolesFound(msgspec.Struct, frozen=True, kw_only=True):
    """What became of all bags on the same terms."""

    sees_nodes: bool
    """See `GridTerms`."""
    bags: int
    requests: int
    promised: int
    """Requests made for a free slot that was there at once, as the planner saw it."""
    started: int
    """Those of them that started within `TWO_CYCLES`."""
    turnarounds: tuple[int, ...]
    """Of each bag, in seconds."""

    @property
    def mean_turnaround(self) -> float:
        return sum(self.turnarounds) / len(self.turnarounds)


def find_holes(
    cluster: Cluster, instants: Iterable[int], runtimes: Array, every: Sequence[GridTerms]
) -> list[HolesFound]:
    """Run the bag at each of these seconds, on each of these terms; the cluster's clock moves on.

    Each bag is alone with the jobs of the trace.

    Raises:
        ReplayError: the bag can never be finished.
        ValueError: there is no instant, or one is in the past.
    """
    results: list[list[GridResult]] = [[] for _ in every]
    for at in sorted(instants):
        cluster.advance(at)
        for terms, done in zip(every, results, strict=True):
            done.append(run_grid_job(cluster.fork(), runtimes, terms))
    if not results or not all(results):
        raise ValueError("no bag was run")
    return [_told(terms, done) for terms, done in zip(every, results, strict=True)]


def _told(terms: GridTerms, done: list[GridResult]) -> HolesFound:
    holes = [result.holes(TWO_CYCLES) for result in done]
    return HolesFound(
        sees_nodes=terms.sees_nodes,
        bags=len(done),
        requests=sum(len(result.requests) for result in done),
        promised=sum(promised for promised, _ in holes),
        started=sum(started for _, started in holes),
        turnarounds=tuple(result.turnaround for result in done),
    )
