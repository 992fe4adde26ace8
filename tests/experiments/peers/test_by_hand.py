"""Jobs that users write by hand, against schedules that can be seen at a glance."""

from __future__ import annotations

import numpy as np
import pytest

from adaptor_experiments.peers.by_hand import ARRAYS, Policy, Site, run_by_hand
from tests.simulation.empty_cluster import empty_cluster

RUNTIMES = np.array([100, 200, 300, 400], np.int64)


@pytest.mark.parametrize(
    ("policy", "processors", "turnaround", "held"),
    [
        (Policy(name="array", factor=1.5), 4, 400, 1000),
        (Policy(name="array", factor=1.5), 2, 600, 1000),
        (Policy(name="array-one", factor=1.5, in_system=1), 4, 1000, 1000),
        (Policy(name="chunks", factor=1.5, tasks=2), 4, 700, 1000),
        (Policy(name="node", factor=1.5, width=2, tasks=4), 4, 600, 1200),
        (Policy(name="node-one", factor=1.5, node=2), 4, 600, 2000),
    ],
)
def test_an_empty_cluster(policy: Policy, processors: int, turnaround: int, held: int) -> None:
    jobs = policy.jobs(RUNTIMES, Site(longest=10_000))
    assert jobs is not None
    found = run_by_hand(empty_cluster(processors), jobs, policy.in_system)
    assert (found.turnaround, found.held) == (turnaround, held)


def test_a_job_that_the_site_does_not_allow_is_not_written() -> None:
    assert Policy(name="chunks", factor=3.0, tasks=4).jobs(RUNTIMES, Site(longest=500)) is None
    assert all(policy.jobs(RUNTIMES, Site(longest=10_000)) for policy in ARRAYS)


@pytest.mark.parametrize(
    ("policy", "site", "turnaround", "held", "jobs"),
    [
        pytest.param(
            Policy(name="array", factor=1.5),
            Site(longest=10_000, start=50),
            450,
            1200,
            4,
            id="each job starts",
        ),
        pytest.param(
            Policy(name="chunks", factor=1.5, tasks=2),
            Site(longest=10_000, start=50),
            750,
            1100,
            2,
            id="fewer jobs start",
        ),
        pytest.param(
            Policy(name="array", factor=1.5),
            Site(longest=10_000, node=2),
            400,
            2 * (200 + 400),
            2,
            id="users fill nodes",
        ),
        pytest.param(
            Policy(name="node-one", factor=1.5, node=1),
            Site(longest=10_000, node=2),
            600,
            2000,
            4,
            id="or leave the rest of a node idle",
        ),
    ],
)
def test_sites_with_nodes_and_with_jobs_that_start_slowly(
    policy: Policy, site: Site, turnaround: int, held: int, jobs: int
) -> None:
    found = policy.run(empty_cluster(4), RUNTIMES, site)
    assert found is not None
    assert (found.turnaround, found.held, found.jobs) == (turnaround, held, jobs)
