"""The plan of the local site over processors, memory and GPUs, without any process."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import schedule
from adaptor.model import PendingJob, QueueState, RunningJob
from backends.local.planning import NOTHING, QueueShare, starts

NOW = 100.0
MACHINE = QueueShare(4, 8, 2)


def test_what_is_short_is_waited_for_and_the_rest_goes_on() -> None:
    memory, gpu, small = QueueShare(1, 6), QueueShare(1, 0, 2), QueueShare(1, 2, 0)
    running = [(NOW + 50, QueueShare(1, 4, 1))]
    assert starts(NOW, MACHINE, running, [(10, memory), (10, gpu), (10, small)]) == [NOW + 50, NOW + 50, NOW]


def test_jobs_that_do_not_say_what_memory_they_need_are_not_held_up_by_it() -> None:
    assert starts(
        NOW, MACHINE, [(NOW + 50, QueueShare(1, 8))], [(10, QueueShare(3)), (10, QueueShare(1, 1))]
    ) == [
        NOW,
        NOW + 50,
    ]


SHARES = st.builds(QueueShare, st.integers(1, 4), st.integers(0, 8), st.integers(0, 2))
JOBS = st.lists(st.tuples(st.integers(1, 50).map(float), SHARES), max_size=10)


@given(JOBS)
def test_the_plan_never_holds_more_than_there_is(jobs: list[tuple[float, QueueShare]]) -> None:
    found = starts(NOW, MACHINE, [], jobs)
    for instant in found:
        held = [
            share
            for start, (limit, share) in zip(found, jobs, strict=True)
            if start <= instant < start + limit
        ]
        assert sum(held, NOTHING).fits(MACHINE)


@given(JOBS, st.tuples(st.integers(1, 50).map(float), SHARES))
def test_a_later_job_delays_nobody(
    jobs: list[tuple[float, QueueShare]], later: tuple[float, QueueShare]
) -> None:
    assert starts(NOW, MACHINE, [], [*jobs, later])[:-1] == starts(NOW, MACHINE, [], jobs)


SIMPLE = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 4)), max_size=10)


@given(SIMPLE, SIMPLE)
def test_processors_alone_are_planned_as_the_profile_plans_them(
    running: list[tuple[int, int]], waiting: list[tuple[int, int]]
) -> None:
    """Also where more runs than the site has, for it was made smaller."""
    queue = QueueState(
        now=NOW,
        processors=4,
        running=tuple(RunningJob(f"r{n}", p, NOW + tr) for n, (tr, p) in enumerate(running)),
        pending=tuple(PendingJob(str(n), p, tr) for n, (tr, p) in enumerate(waiting)),
    )
    planned = schedule(queue).starts
    found = starts(
        NOW,
        MACHINE,
        [(NOW + tr, QueueShare(p)) for tr, p in running],
        [(tr, QueueShare(p)) for tr, p in waiting],
    )
    assert found == [planned[str(n)] for n in range(len(waiting))]
    assert not any(math.isinf(start) for start in found)
