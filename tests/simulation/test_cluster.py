"""The fast cluster against the slow one, with and without jobs from outside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_simulation.cluster import Cluster, Policy, cluster_of_processors
from adaptor_simulation.files import TraceError
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.kernels import JOB, START
from adaptor_simulation.queue_rules import BY_SUBMISSION, QueueRules
from tests.examples import examples
from tests.simulation.naive_cluster import NaiveCluster
from tests.simulation.trace_strategies import PROCESSORS, jobs_from, policies, traces

requests = st.tuples(st.integers(1, PROCESSORS), st.integers(1, 30))
steps_in_seconds = st.lists(st.integers(0, 40), min_size=1, max_size=6)


def naive(processors: int, policy: str) -> NaiveCluster:
    """A cluster that counts processors: one node, where a job is one chunk."""
    return NaiveCluster(np.array([[processors]]), policy)


def size(processors: int) -> tuple[int, tuple[int]]:
    return 1, (processors,)


def naive_of(jobs: Jobs, policy: str) -> NaiveCluster:
    cluster = naive(PROCESSORS, policy)
    for submit, run, estimate, processors in jobs.table().tolist():
        cluster.add(submit, size(processors), estimate, run)
    return cluster


def expected(cluster: NaiveCluster, jobs: Jobs) -> list[int]:
    started = cluster.run()
    return [started.get(job, -1) for job in range(len(jobs))]


@given(traces(), policies)
@examples(300)
def test_every_start_equals_that_of_the_slow_cluster(jobs, policy):
    fast = cluster_of_processors(jobs, PROCESSORS, policy)
    fast.finish()
    assert fast.starts().tolist() == expected(naive_of(jobs, policy), jobs)


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (0, 1))])
def test_a_queue_that_never_empties_equals_that_of_the_slow_cluster(seed):
    draw = np.random.default_rng(seed)
    width, rows, now = 96, [], 0
    for _ in range(80):
        now += int(draw.integers(0, 6))
        estimate = int(draw.choice([10, 30, 60, 90, 200]))
        rows.append((now, int(draw.integers(1, estimate + 1)), estimate, int(2 ** draw.uniform(1, 6))))
    jobs = Jobs(number=np.arange(len(rows)), **columns(rows))
    fast, slow = cluster_of_processors(jobs, width, "conservative"), naive(width, "conservative")
    for submit, run, estimate, processors in rows:
        slow.add(submit, size(processors), estimate, run)
    fast.finish()
    assert fast.starts().tolist() == expected(slow, jobs)
    assert (fast.starts() > jobs.submit).mean() > 0.5


def columns(rows: list[tuple[int, int, int, int]]) -> dict[str, np.ndarray]:
    submit, run, estimate, processors = np.array(rows, np.int64).T
    return {"submit": submit, "run": run, "estimate": estimate, "processors": processors}


@given(traces(), policies, st.integers(0, 90), st.lists(requests, min_size=1, max_size=4))
@examples(300)
def test_a_fork_with_jobs_from_outside_equals_a_full_replay(jobs, policy, at, asked):
    base = cluster_of_processors(jobs, PROCESSORS, policy)
    base.advance(at)
    fork, slow = base.fork(), naive_of(jobs, policy)
    ids = []
    for processors, tr in asked:
        ids.append((fork.submit(processors, tr), slow.add(at, size(processors), tr, tr, outside=True)))
    fork.finish()
    base.finish()
    assert fork.starts().tolist() == expected(slow, jobs)
    assert [fork.outside_job(ours).started for ours, _ in ids] == [slow.started[theirs] for _, theirs in ids]
    assert base.starts().tolist() == expected(naive_of(jobs, policy), jobs)


@given(traces(), policies, st.integers(0, 90), requests, st.integers(0, 40))
@examples(300)
def test_a_cancel_queued_or_running_equals_a_full_replay(jobs, policy, at, asked, later):
    fast, slow = cluster_of_processors(jobs, PROCESSORS, policy), naive_of(jobs, policy)
    fast.advance(at)
    job = fast.submit(*asked)
    theirs = slow.add(at, size(asked[0]), asked[1], asked[1], outside=True)
    fast.advance(at + later)
    fast.cancel(job)
    slow.cancel(at + later, theirs)
    fast.finish()
    assert fast.starts().tolist() == expected(slow, jobs)
    assert fast.outside_job(job).started == slow.started.get(theirs)


@given(
    traces(),
    policies,
    st.integers(0, 90),
    requests,
    st.lists(st.tuples(st.integers(0, 30), requests), max_size=1),
)
@examples(300)
def test_a_queued_request_that_is_reshaped_equals_a_full_replay(jobs, policy, at, asked, changes):
    fast, slow = cluster_of_processors(jobs, PROCESSORS, policy), naive_of(jobs, policy)
    fast.advance(at)
    job = fast.submit(*asked)
    theirs = slow.add(at, size(asked[0]), asked[1], asked[1], outside=True)
    for later, (processors, tr) in changes:
        at += later
        fast.advance(at)
        if fast.outside_job(job).started is not None:
            break
        fast.reshape(job, processors, tr)
        slow.reshape(at, theirs, size(processors), tr)
        asked = processors, tr
        break
    fast.finish()
    assert fast.starts().tolist() == expected(slow, jobs)
    known = fast.outside_job(job)
    assert (known.started, known.processors, known.tr) == (slow.started[theirs], *asked)


@given(traces(), st.integers(0, 90), requests, st.integers(0, 40), requests)
@examples(300)
def test_a_reshaped_request_delays_no_reservation_of_another(jobs, at, asked, later, wanted):
    cluster = cluster_of_processors(jobs, PROCESSORS, "conservative")
    cluster.advance(at)
    job = cluster.submit(*asked)
    cluster.advance(at + later)
    if cluster.outside_job(job).started is not None:
        return
    order, promised = reservations(cluster)
    cluster.reshape(job, *wanted)
    after_order, after = reservations(cluster)
    assert [each for each in order if each in after] == after_order, "all keep their places in the queue"
    assert all(after[each] <= promised[each] for each in after if each != job)
    free = cluster.profile()[1]
    assert free.min() >= 0


def test_a_smaller_request_starts_in_the_hole_and_a_larger_one_keeps_its_place():
    jobs = jobs_from([(0, PROCESSORS - 2, 100, 100), (1, PROCESSORS, 100, 100)])
    cluster = cluster_of_processors(jobs, PROCESSORS, "conservative")
    cluster.advance(1)
    ours, behind = cluster.submit(2, 150), cluster.submit(PROCESSORS, 10)
    assert [reservations(cluster)[1][job] for job in (ours, behind)] == [200, 350]
    cluster.reshape(ours, 2, 99)
    assert cluster.outside_job(ours).started == 1
    cluster.cancel(ours)
    ours, last = cluster.submit(1, 120), cluster.submit(1, 120)
    cluster.reshape(ours, PROCESSORS, 130)
    order, promised = reservations(cluster)
    assert order[-2:] == [ours, last]
    assert (promised[ours], promised[last]) == (330, 210)


def test_what_has_started_is_not_reshaped():
    cluster = cluster_of_processors(jobs_from([(0, 1, 1, 1)]), PROCESSORS, "conservative")
    job = cluster.submit(1, 10)
    with pytest.raises(ValueError, match="does not wait"):
        cluster.reshape(job, 1, 5)
    with pytest.raises(KeyError):
        cluster.reshape(job + 1, 1, 5)


def reservations(cluster: Cluster) -> tuple[list[int], dict[int, int]]:
    """The waiting jobs in the order of the queue, and the reservation of each."""
    rows = cluster.waiting_rows()[:, [JOB, START]].tolist()
    return [job for job, _ in rows], dict(rows)


def test_the_clock_stops_where_a_job_from_outside_starts_and_where_it_ends():
    cluster = cluster_of_processors(jobs_from([(0, PROCESSORS, 10, 7)]), PROCESSORS, "easy")
    cluster.advance(0)
    job = cluster.submit(1, 5)
    assert cluster.advance_to_change(100)
    assert cluster.outside_job(job).started == cluster.now == 7
    assert cluster.advance_to_change(100)
    assert cluster.outside_job(job).ended == cluster.now == 12
    assert not cluster.advance_to_change(100)
    assert cluster.now == 100


def check_steps_and_forks(
    jobs: Jobs, policy: Policy, steps: list[int], rules: QueueRules = BY_SUBMISSION
) -> None:
    """A cluster that goes on in steps, each in a fork of the last, starts every job as a whole one does."""
    whole = cluster_of_processors(jobs, PROCESSORS, policy, rules)
    whole.finish()
    stepped = cluster_of_processors(jobs, PROCESSORS, policy, rules)
    now = 0
    for step in steps:
        now += step
        origin, stepped = stepped, stepped.fork()
        origin.submit(PROCESSORS, 17)
        origin.finish()
        stepped.advance(now)
        known = stepped.starts()
        assert (known[known >= 0] <= now).all()
    stepped.finish()
    assert stepped.starts().tolist() == whole.starts().tolist()


@given(traces(), policies, steps_in_seconds)
@examples(100)
def test_the_way_in_steps_and_forks_of_forks_does_not_matter(jobs, policy, steps):
    check_steps_and_forks(jobs, policy, steps)


@given(traces(), policies)
@examples(100)
def test_never_more_processors_in_use_than_there_are(jobs, policy):
    cluster = cluster_of_processors(jobs, PROCESSORS, policy)
    cluster.finish()
    starts = cluster.starts()
    assert (starts >= jobs.submit).all()
    for instant in starts:
        running = (starts <= instant) & (instant < starts + jobs.run)
        assert jobs.processors[running].sum() <= PROCESSORS


@given(traces())
@examples(100)
def test_no_job_starts_later_than_its_first_reservation(jobs):
    slow = naive_of(jobs, "conservative")
    slow.run()
    fast = cluster_of_processors(jobs, PROCESSORS, "conservative")
    fast.finish()
    assert all(fast.starts()[job] <= promise for job, promise in slow.first_promise.items())


@given(traces(), policies)
@examples(50)
def test_jobs_that_take_the_whole_machine_run_in_their_order(jobs, policy):
    whole = Jobs(
        number=jobs.number,
        submit=jobs.submit,
        run=jobs.run,
        estimate=jobs.estimate,
        processors=np.full(len(jobs), PROCESSORS),
    )
    cluster = cluster_of_processors(whole, PROCESSORS, policy)
    cluster.finish()
    assert (np.diff(cluster.starts()) > 0).all()


def test_starts_of_one_second_come_in_the_order_of_the_reservations():
    """Found by search: jobs 1 and 3 start at 4 and end at 5, and which ends first decides on job 7."""
    rows = [
        (1, 7, 3, 3), (1, 5, 3, 1), (1, 6, 2, 1), (2, 3, 1, 1),
        (4, 2, 4, 1), (5, 5, 3, 3), (6, 3, 1, 1), (6, 2, 1, 1),
    ]  # fmt: skip
    cluster = cluster_of_processors(jobs_from(rows), PROCESSORS, "conservative")
    cluster.finish()
    assert cluster.starts().tolist() == [1, 4, 5, 4, 5, 6, 7, 6]


def test_arrays_grow_with_the_queue():
    rows = [(0, PROCESSORS, 5, 5)] * 1000
    cluster = cluster_of_processors(jobs_from(rows), PROCESSORS, "conservative")
    cluster.finish()
    assert cluster.starts().tolist() == [5 * i for i in range(1000)]


def test_hundreds_of_jobs_from_outside():
    cluster = cluster_of_processors(jobs_from([]), PROCESSORS, "easy")
    ids = [cluster.submit(PROCESSORS, 10) for _ in range(300)]
    cluster.finish()
    assert [cluster.outside_job(job).started for job in ids] == [10 * i for i in range(300)]
    assert cluster.outside_job(ids[-1]).ended == 3000


def test_a_job_that_fits_starts_within_its_second():
    cluster = cluster_of_processors(jobs_from([(5, 4, 10, 10)]), PROCESSORS, "conservative")
    cluster.advance(5)
    assert cluster.outside_job(cluster.submit(4, 10)).started == 5
    assert cluster.outside_job(cluster.submit(1, 10)).started is None


def test_a_pilot_may_leave_in_the_second_it_started():
    cluster = cluster_of_processors(jobs_from([]), PROCESSORS, "easy")
    first = cluster.submit(PROCESSORS, 100)
    second = cluster.submit(PROCESSORS, 100)
    cluster.cancel(first)
    assert cluster.outside_job(first).ended == 0
    assert cluster.outside_job(second).started == 0


def test_next_event():
    cluster = cluster_of_processors(jobs_from([(3, 4, 10, 7)]), PROCESSORS, "easy")
    seen = []
    while (at := cluster.next_event()) is not None:
        seen.append(at)
        cluster.advance(at)
    assert seen == [3, 10]


@pytest.mark.parametrize(("processors", "tr"), [(0, 5), (9, 5), (1, 0)])
def test_a_request_that_can_never_run_is_refused(processors, tr):
    cluster = cluster_of_processors(jobs_from([]), PROCESSORS, "easy")
    with pytest.raises(ValueError, match=r"\d"):
        cluster.submit(processors, tr)


def test_the_clock_does_not_go_back():
    cluster = cluster_of_processors(jobs_from([]), PROCESSORS, "easy")
    cluster.advance(10)
    with pytest.raises(ValueError, match="does not go back"):
        cluster.advance(9)


def test_unknown_jobs():
    cluster = cluster_of_processors(jobs_from([(50, 1, 1, 1)]), PROCESSORS, "easy")
    cluster.submit(PROCESSORS, 10)
    for call in (cluster.cancel, cluster.outside_job):
        with pytest.raises(KeyError):
            call(0)
    assert cluster.starts().tolist() == [-1]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ((0, 9, 5, 5), "more than the 8 processors"),
        ((0, 0, 5, 5), "no processor"),
        ((0, 1, 5, 6), "longer than its estimate"),
        ((0, 1, 5, 0), "less than a second"),
        ((-1, 1, 5, 5), "before the start of the trace"),
    ],
)
def test_a_trace_that_was_not_normalised_is_refused(row, says):
    with pytest.raises(TraceError, match=says):
        cluster_of_processors(jobs_from([row]), PROCESSORS, "easy")


def test_impossible_clusters():
    with pytest.raises(ValueError, match="policy"):
        cluster_of_processors(jobs_from([]), PROCESSORS, "fifo")
    with pytest.raises(ValueError, match="processors"):
        cluster_of_processors(jobs_from([]), 0, "easy")
