"""The processors of a simulated cluster as nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.donation.situation import NodeUse
from adaptor_simulation.cluster import cluster_of_processors
from adaptor_simulation.kernels import NEED, NEVER
from adaptor_simulation.places import Places, plan
from tests.examples import examples
from tests.simulation.grid_strategies import cluster_of, scenes
from tests.simulation.trace_strategies import PROCESSORS, jobs_from


@given(scenes)
@examples(200)
def test_as_many_are_idle_as_the_cluster_counts_and_their_time_is_learned(scene) -> None:
    jobs, policy, _ = scene
    cluster = cluster_of_processors(jobs, PROCESSORS, policy)
    places, seen = Places(cluster), SeenNodes()
    seen.looked(places.reports(), float(cluster.now))
    while (coming := cluster.next_event()) is not None:
        cluster.advance(coming)
        places.look()
        reports = places.reports()
        seen.looked(reports, float(coming))
        taken = cluster.running_rows()[:, NEED].sum()
        assert places.idle == sum(report.use is NodeUse.IDLE for report in reports) == PROCESSORS - taken
    seen.looked(places.reports(), float(cluster.now + 60))
    known = sum(seen.learner.idleness.seconds)
    idle = PROCESSORS * (cluster.now + 60) - int((jobs.run * jobs.processors).sum())
    assert known == pytest.approx(idle, abs=1e-3)


@given(scenes)
def test_a_fork_goes_its_own_way(scene) -> None:
    cluster = cluster_of(scene)
    places = Places(cluster)
    before = places.reports()
    twin_cluster = cluster.fork()
    twin = places.fork(twin_cluster)
    twin_cluster.finish()
    twin.look()
    assert all(report.use is NodeUse.IDLE for report in twin.reports())
    assert places.reports() == before


def test_a_report_is_the_same_until_something_changes() -> None:
    cluster = cluster_of_processors(jobs_from([(5, 2, 50, 50)]), PROCESSORS, "conservative")
    cluster.advance(0)
    places = Places(cluster)
    before = places.reports()
    cluster.advance(5)
    assert places.look()
    after = places.reports()
    assert [new is old for old, new in zip(before, after, strict=True)] == [False] * 2 + [True] * (
        PROCESSORS - 2
    )
    assert not places.look()


@given(st.lists(st.booleans(), min_size=1, max_size=10), st.lists(st.integers(0, 10), max_size=8))
def test_the_plan_takes_the_first_processors(idle, frees) -> None:
    owners = np.where(idle, -1, 3)
    planned = np.full(len(idle), -1, np.int64)
    count = sum(idle)
    free = np.array([count, *frees], np.int64)
    times = np.arange(len(free)) * 10
    plan(owners, planned, times, free)
    for rank, place in enumerate(place for place in range(len(idle)) if idle[place]):
        sooner = [int(time) for time, left in zip(times, free, strict=True) if left < count - rank]
        assert planned[place] == min(sooner, default=NEVER)


def test_what_is_planned_on_a_processor_is_told() -> None:
    rows = [(0, 4, 30, 30), (0, PROCESSORS, 20, 20)]  # the second waits for all, from 30 on
    cluster = cluster_of_processors(jobs_from(rows), PROCESSORS, "conservative")
    cluster.advance(0)
    reports = Places(cluster).reports()
    assert [report.planned for report in reports] == [math.inf] * 4 + [30.0] * (PROCESSORS - 4)
