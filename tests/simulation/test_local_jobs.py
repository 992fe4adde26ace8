"""What local jobs wait longer is what single waits say, with the bag and without it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adaptor_experiments.derose.sample import followed
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.what_if import LocalJobs
from tests.examples import examples
from tests.simulation.grid_strategies import bags, cluster_of, scenes, terms


@given(scenes, st.lists(st.tuples(bags, terms()), min_size=1, max_size=3), st.sampled_from([0, 5, 86_400]))
@examples(60)
def test_it_is_the_sum_over_the_jobs_however_far_the_reference_has_gone(scene, runs, afterwards):
    base = cluster_of(scene)
    local = LocalJobs(base)
    for runtimes, term in runs:
        cluster, alone = base.fork(), base.fork()
        end = base.now + run_grid_job(cluster, np.array(runtimes), term).turnaround
        added = followed(local, cluster, end, afterwards).added_wait
        alone.advance(cluster.now)
        assert cluster.now == end + afterwards
        assert added == waited(cluster) - waited(alone)


def waited(cluster):
    """By all jobs that have come until now."""
    starts = cluster.starts()
    return sum(
        (start if start >= 0 else cluster.now) - submit
        for submit, start in zip(cluster.jobs.submit.tolist(), starts.tolist(), strict=True)
        if submit <= cluster.now
    )
