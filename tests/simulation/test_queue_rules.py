"""Fair share and a bounded depth of backfilling: the fast cluster against the slow one, and by hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_simulation.cluster import Cluster, Policy, cluster_of_processors
from adaptor_simulation.files import TraceError
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.kernels import JOB, NEVER, START
from adaptor_simulation.pilot_requests import planned_queue, queue_state
from adaptor_simulation.queue_rules import FairShare, QueueRules
from tests.examples import examples
from tests.simulation.naive_cluster import NaiveCluster
from tests.simulation.test_cluster import check_steps_and_forks, steps_in_seconds
from tests.simulation.trace_strategies import PROCESSORS, jobs_from, policies, traces

USERS = 3
requests = st.tuples(st.integers(1, PROCESSORS), st.integers(1, 30))


@st.composite
def of_users(draw: st.DrawFn) -> Jobs:
    """A trace whose jobs are those of a few users."""
    jobs = draw(traces(30))
    users = draw(st.lists(st.integers(0, USERS - 1), min_size=len(jobs), max_size=len(jobs)))
    return with_users(jobs, users)


def with_users(jobs: Jobs, users: list[int]) -> Jobs:
    return msgspec.structs.replace(jobs, user=np.array(users, np.int64))


shares = st.builds(
    FairShare,
    half_life=st.integers(5, 100),
    period=st.integers(2, 12),
    weight=st.just(100),
    age_weight=st.sampled_from([0, 20, 200]),
    longest_age=st.integers(10, 60),
)
queue_rules = st.builds(
    QueueRules, fair_share=st.none() | shares, per_user=st.integers(0, 3), depth=st.sampled_from([0, 1, 4])
)


def naive_of(jobs: Jobs, policy: Policy, rules: QueueRules) -> tuple[NaiveCluster, int]:
    """The slow cluster, and the number of the user whose jobs come from outside."""
    assert jobs.user is not None
    known, numbers = np.unique(jobs.user, return_inverse=True)
    ours = len(known)
    cluster = NaiveCluster(np.array([[PROCESSORS]]), policy, rules, ours + 1)
    for row, user in zip(jobs.table().tolist(), numbers.tolist(), strict=True):
        submit, run, estimate, processors = row
        cluster.add(submit, (1, (processors,)), estimate, run, user)
    return cluster, ours


def expected(cluster: NaiveCluster, jobs: Jobs) -> list[int]:
    started = cluster.run()
    return [started.get(job, -1) for job in range(len(jobs))]


@given(of_users(), policies, queue_rules)
@examples(300)
def test_every_start_equals_that_of_the_slow_cluster(jobs, policy, rules):
    fast = cluster_of_processors(jobs, PROCESSORS, policy, rules)
    fast.finish()
    assert fast.starts().tolist() == expected(naive_of(jobs, policy, rules)[0], jobs)
    assert (fast.starts() >= jobs.submit).all()


@given(
    of_users(),
    policies,
    queue_rules,
    st.integers(0, 60),
    st.lists(requests, min_size=1, max_size=5),
    st.integers(0, 30),
    st.none() | requests,
)
@examples(300)
def test_jobs_from_outside_of_a_fork_equal_a_full_replay(jobs, policy, rules, at, asked, later, change):
    """They come, and later the first one that waits is withdrawn, or asks for something else."""
    base = cluster_of_processors(jobs, PROCESSORS, policy, rules)
    base.advance(at)
    fork, (slow, ours) = base.fork(), naive_of(jobs, policy, rules)
    ids = [
        (
            fork.submit(processors, tr),
            slow.add(at, (1, (processors,)), tr, tr, ours, outside=True),
        )
        for processors, tr in asked
    ]
    fork.advance(at + later)
    waiting = [each for each in ids if fork.outside_job(each[0]).started is None]
    for job, theirs in waiting[:1]:
        if change is None:
            fork.cancel(job)
            slow.cancel(at + later, theirs)
        else:
            fork.reshape(job, *change)
            slow.reshape(at + later, theirs, (1, (change[0],)), change[1])
    fork.finish()
    base.finish()
    assert fork.starts().tolist() == expected(slow, jobs)
    assert [fork.outside_job(job).started for job, _ in ids] == [slow.started.get(each) for _, each in ids]
    assert base.starts().tolist() == expected(naive_of(jobs, policy, rules)[0], jobs)


@given(of_users(), policies, queue_rules, steps_in_seconds)
@examples(100)
def test_the_way_in_steps_and_forks_does_not_matter(jobs, policy, rules, steps):
    check_steps_and_forks(jobs, policy, steps, rules)


def starts_of(
    rows: list[tuple[int, int, int, int]], users: list[int], rules: QueueRules, policy: Policy
) -> list[int]:
    cluster = cluster_of_processors(with_users(jobs_from(rows), users), PROCESSORS, policy, rules)
    cluster.finish()
    return cluster.starts().tolist()


ALL = PROCESSORS
SHARE = FairShare(half_life=1000, period=5, longest_age=10_000)


@pytest.mark.parametrize("policy", ["conservative", "easy"])
def test_a_user_who_has_used_less_is_served_before_one_who_came_earlier(policy):
    rows = [(0, ALL, 20, 20), (1, ALL, 10, 10), (2, ALL, 10, 10)]
    assert starts_of(rows, [0, 0, 1], QueueRules(), policy) == [0, 20, 30]
    assert starts_of(rows, [0, 0, 1], QueueRules(fair_share=SHARE), policy) == [0, 30, 20]


@pytest.mark.parametrize("policy", ["conservative", "easy"])
@pytest.mark.parametrize(("half_life", "first"), [(1000, 2), (10, 3)])
def test_usage_is_forgotten_in_half_lives(policy, half_life, first):
    """User 0 has used 800 processor-seconds by 100, user 1 400 by 1000; a job of each waits at 1000."""
    rows = [(0, ALL, 100, 100), (950, ALL, 50, 50), (960, ALL, 10, 10), (961, ALL, 10, 10)]
    share = msgspec.structs.replace(SHARE, half_life=half_life)
    starts = starts_of(rows, [0, 1, 1, 0], QueueRules(fair_share=share), policy)
    assert starts.index(1000) == first


@pytest.mark.parametrize("policy", ["conservative", "easy"])
def test_a_job_that_has_waited_for_long_is_served_before_a_user_who_has_used_less(policy):
    rows = [(0, ALL, 90, 90), (1, ALL, 10, 10), (85, ALL, 10, 10)]
    by_age = msgspec.structs.replace(SHARE, age_weight=100_000, longest_age=100)
    assert starts_of(rows, [0, 0, 1], QueueRules(fair_share=SHARE), policy) == [0, 100, 90]
    assert starts_of(rows, [0, 0, 1], QueueRules(fair_share=by_age), policy) == [0, 90, 100]


@pytest.mark.parametrize("policy", ["conservative", "easy"])
@pytest.mark.parametrize(
    ("rules", "starts"),
    [
        pytest.param(QueueRules(), [0, 50, 60, 1, 1, 1], id="no bound"),
        pytest.param(QueueRules(per_user=1), [0, 50, 60, 70, 70, 1], id="one of each user"),
        pytest.param(QueueRules(depth=2), [0, 50, 60, 70, 70, 70], id="two in all"),
    ],
)
def test_backfilling_looks_at_so_many_jobs_of_a_user_and_of_all(policy, rules, starts):
    """Three processors stay free beside the first job; the last job is that of another user."""
    rows = [(0, ALL - 3, 50, 50), *[(1, ALL, 10, 10)] * 2, *[(1, 1, 10, 10)] * 3]
    assert starts_of(rows, [0, 0, 0, 0, 0, 1], rules, policy) == starts


def test_the_queue_shows_no_plan_for_a_job_that_backfilling_does_not_look_at():
    cluster = bounded_cluster()
    planned = {job.id: job.planned_start for job in queue_state(cluster).pending}
    assert planned == {"1": 50.0, "2": None, "3": 60.0}
    assert [job.id for job in planned_queue(cluster).pending] == ["2"]
    assert cluster.waiting_rows()[:, [JOB, START]].tolist() == [[1, 50], [2, NEVER], [3, 60]]


def bounded_cluster() -> Cluster:
    rows = [(0, ALL, 50, 50), (1, ALL, 10, 10), (1, ALL, 10, 10), (1, ALL, 10, 10)]
    jobs = with_users(jobs_from(rows), [0, 0, 0, 1])
    cluster = cluster_of_processors(jobs, PROCESSORS, "conservative", QueueRules(per_user=1))
    cluster.advance(2)
    return cluster


def test_a_trace_without_users_has_no_shares():
    with pytest.raises(TraceError, match="whose jobs"):
        cluster_of_processors(jobs_from([(0, 1, 1, 1)]), PROCESSORS, "easy", QueueRules(per_user=1))
    cluster_of_processors(jobs_from([(0, 1, 1, 1)]), PROCESSORS, "easy", QueueRules(depth=1)).finish()
