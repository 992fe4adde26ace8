"""The lower bound: below every turnaround, and exact where it can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_simulation.cluster import Cluster, cluster_of_processors
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.yardstick import Yardstick
from tests.examples import examples
from tests.simulation.grid_strategies import bags, cluster_of, scenes, terms
from tests.simulation.trace_strategies import PROCESSORS, jobs_from


@given(scenes, bags, terms())
@examples(400)
def test_no_heuristic_beats_it(scene, runtimes, terms):
    cluster, limits = cluster_of(scene), terms.rules.limits
    most = min(PROCESSORS, limits.max_pending_requests * limits.max_proc)
    bound = Yardstick(cluster).bound(np.array(runtimes), most)
    assert max(runtimes) <= bound <= run_grid_job(cluster, np.array(runtimes), terms).turnaround


def turnaround_with_the_whole_machine(cluster: Cluster, runtimes: list[int]) -> int:
    """Always two requests for everything, and the longest tasks first, by one who knows the runtimes."""
    begin, left = cluster.now, sorted(runtimes)
    requests = [cluster.submit(PROCESSORS, 40) for _ in range(2)]
    while True:
        while (start := cluster.outside_job(requests[0]).started) is None:
            assert cluster.advance_to_change(cluster.now + 10_000)
        free_at = [start] * PROCESSORS
        while left and min(free_at) + left[-1] <= start + 40:
            free_at[free_at.index(min(free_at))] += left.pop()
        if not left:
            return max(free_at) - begin
        cluster.advance(start + 40)
        requests = [requests[1], cluster.submit(PROCESSORS, 40)]


@given(scenes, st.lists(st.integers(1, 20), min_size=1, max_size=60))
@examples(300)
def test_nor_does_one_who_keeps_the_machine_for_himself(scene, runtimes):
    cluster = cluster_of(scene)
    bound = Yardstick(cluster).bound(np.array(runtimes), PROCESSORS)
    assert bound <= turnaround_with_the_whole_machine(cluster, runtimes)


@pytest.mark.parametrize(
    ("rows", "policy", "runtimes", "most", "expected"),
    [
        ([], "easy", [10] * 16, 8, 20),  # two rounds on 8 processors
        ([], "easy", [10] * 17, 8, 30),  # whole tasks, not 21.25
        ([], "easy", [10] * 4, 2, 20),  # no more than the limits allow at once
        ([], "easy", [1, 1, 1, 30], 8, 30),  # the longest task
        ([(0, 8, 100, 50)], "easy", [10], 8, 60),  # what runs, runs to its end and not to its limit
        ([(0, 8, 50, 50), (0, 8, 60, 30)], "easy", [10] * 8, 8, 60),
        ([(0, 8, 50, 50), (0, 8, 60, 30)], "conservative", [1] * 80, 8, 90),  # behind a promise
        ([(0, 8, 50, 50), (0, 8, 60, 30)], "conservative", [1] * 81, 8, 91),
    ],
)  # fmt: skip
def test_by_hand(rows, policy, runtimes, most, expected):
    cluster = cluster_of_processors(jobs_from(rows), PROCESSORS, policy)
    cluster.advance(0)
    assert Yardstick(cluster).bound(np.array(runtimes), most) == expected
