"""A future of a queue in which local jobs run shares of their limits."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import Schedule
from adaptor.crafting.futures.drawn_queue import drawn_jobs, ended_by, planned
from adaptor.model import PendingJob, QueueState, RunningJob

QUEUE = QueueState(
    now=100.0,
    processors=4,
    running=(RunningJob("local", 4, 1100.0), RunningJob("never", 0, float("inf"))),
    pending=(PendingJob("own", 4, 600.0, planned_start=1100.0), PendingJob("next", 4, 1000.0)),
)


def drawn(
    queue: QueueState,
    shares: Sequence[float],
    since: Mapping[str, float],
    own: Collection[str],
    draw: random.Random,
    by_job: Mapping[str, Sequence[float]] = {},
) -> Schedule:
    return planned(drawn_jobs(queue, shares, since, own, draw, by_job, planned(queue).starts))


def test_jobs_end_and_start_earlier_than_their_limits_say() -> None:
    future = drawn(QUEUE, (0.1, 0.5), {"local": 100.0}, {"own"}, random.Random(1))
    start = future.starts["own"]
    assert 100.0 <= start < 1100.0
    assert future.starts["next"] == start + 600.0, "own jobs run as long as they may"


def test_where_all_run_to_their_limits_the_future_is_as_planned() -> None:
    future = drawn(QUEUE, (1.0,), {}, (), random.Random(1))
    assert future.starts == planned(QUEUE).starts
    assert future.profile.steps() == planned(QUEUE).profile.steps()


def test_a_job_of_which_more_is_known_runs_its_own_share() -> None:
    future = drawn(QUEUE, (1.0,), {"local": 100.0}, {"own"}, random.Random(1), {"local": (0.5,), "x": (0.1,)})
    assert 500.0 <= future.starts["own"] <= 1100.0
    assert future.starts["own"] != 1100.0


def test_a_job_that_has_run_longer_than_such_jobs_do_runs_to_its_limit() -> None:
    future = drawn(QUEUE, (0.1,), {"local": -9000.0}, {"own"}, random.Random(1))
    assert future.starts["own"] == 1100.0


def test_reservations_begin_and_end_when_they_are_to() -> None:
    queue = QueueState(
        now=0.0,
        processors=4,
        running=(RunningJob("reservation old", 2, 900.0),),
        pending=(
            PendingJob("reservation new", 4, 600.0, planned_start=2000.0),
            PendingJob("local", 4, 1000.0, planned_start=900.0),
        ),
    )
    future = drawn(queue, (0.1,), {}, (), random.Random(1))
    assert future.starts == {"reservation new": 2000.0, "local": 900.0}
    assert future.profile.earliest_start(4, 1500.0) == 2600.0


JOBS = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 500)), max_size=12)


@given(running=JOBS, pending=JOBS, seed=st.integers(0, 1000))
def test_no_job_starts_later_than_planned(
    running: list[tuple[int, int]], pending: list[tuple[int, int]], seed: int
) -> None:
    held = sum(processors for processors, _ in running)
    queue = QueueState(
        now=0.0,
        processors=max(8, held),
        running=tuple(RunningJob(f"r{at}", p, float(tr)) for at, (p, tr) in enumerate(running)),
        pending=tuple(PendingJob(f"p{at}", p, float(tr)) for at, (p, tr) in enumerate(pending)),
    )
    future, plan = drawn(queue, (0.1, 0.4, 0.9), {}, (), random.Random(seed)), planned(queue)
    assert all(future.starts[job] <= plan.starts[job] + 1e-6 for job in plan.starts)


def test_jobs_whose_ends_are_known_end_by_then_and_others_start_sooner() -> None:
    queue = QueueState(
        now=100.0,
        processors=4,
        running=(RunningJob("own", 4, 10_000.0), RunningJob("short", 0, 150.0)),
        pending=(
            PendingJob("later", 4, 9000.0, planned_start=10_000.0),
            PendingJob("other", 4, 500.0, planned_start=19_000.0),
        ),
    )
    ends = {"own": 400.0, "later": 700.0, "short": 300.0}
    found = ended_by(queue, ends)
    assert [job.end for job in found.running] == [400.0, 150.0]
    assert planned(found).starts == {"later": 400.0, "other": 700.0}
    assert planned(ended_by(queue, {**ends, "later": 300.0})).starts["other"] == 401.0
    assert ended_by(queue, {"another": 400.0}) is queue
    apart = msgspec.structs.replace(queue, partitions={"batch": queue})
    assert ended_by(apart, ends).partitions["batch"] == found
