"""The order in which the local site starts jobs, without any process."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.model import PendingJob
from adaptor.reports import JobState
from backends.local.admission import LocalMachine
from backends.local.planning import QueueShare
from backends.local.queue import queue_state
from backends.local.store import Job, JobEnd, JobEntry, Start

NOW = 1000.0


def job(id: int, held: int, tr: int) -> Job:
    return Job(
        id=id,
        tag=f"t{id}",
        p=held,
        tr=tr,
        holds=QueueShare(held),
        memory=1,
        submitted=0.0,
        directory="/nowhere",
        worker=("true",),
        environment={},
        grace=1.0,
        marker=f"/nowhere/{id}",
    )


def waiting(id: int, held: int, tr: int) -> JobEntry:
    return JobEntry(job(id, held, tr))


def running(id: int, held: int, tr: int, started: float) -> JobEntry:
    supervisor = {"host": "here", "boot": "b", "pid": 1, "ticks": 1}
    return JobEntry(job(id, held, tr), Start(started=started, supervisor=supervisor))  # type: ignore[arg-type]


def starts(*entries: JobEntry, processors: int = 4) -> dict[str, float | None]:
    return {
        job.id: job.planned_start
        for job in queue_state(entries, LocalMachine(processors, 2**30), NOW).pending
    }


def test_first_come_first_served() -> None:
    assert starts(waiting(1, 4, 10), waiting(2, 4, 10), waiting(3, 4, 10)) == {
        "1": NOW,
        "2": NOW + 10,
        "3": NOW + 20,
    }


def test_a_short_job_is_backfilled_where_it_delays_nobody() -> None:
    planned = starts(running(1, 3, 100, NOW), waiting(2, 4, 50), waiting(3, 1, 100), waiting(4, 1, 101))
    assert planned == {"2": NOW + 100, "3": NOW, "4": NOW + 150}


def test_a_job_past_its_limit_still_holds_its_processors() -> None:
    state = queue_state([running(1, 4, 10, NOW - 20), waiting(2, 1, 5)], LocalMachine(4, 2**30), NOW)
    assert state.running[0].end > NOW
    assert state.pending[0].planned_start == state.running[0].end


def test_a_job_larger_than_the_site_is_left_out_and_holds_up_nobody() -> None:
    assert starts(waiting(1, 5, 10), waiting(2, 4, 10)) == {"2": NOW}


def test_a_site_made_smaller_starts_nothing_before_there_is_room() -> None:
    assert starts(running(1, 4, 10, NOW), waiting(2, 1, 5), processors=2) == {"2": NOW + 10}


def test_ended_and_cancelled_jobs_hold_nothing() -> None:
    ended = msgspec.structs.replace(running(1, 4, 50, NOW), end=JobEnd(ended=NOW, state=JobState.COMPLETED))
    cancelled = msgspec.structs.replace(waiting(2, 4, 50), start=Start(started=NOW, supervisor=None))
    assert starts(ended, cancelled, waiting(3, 4, 5)) == {"3": NOW}


def used(plan: list[PendingJob], at: float) -> int:
    return sum(
        job.processors
        for job in plan
        if job.planned_start is not None and job.planned_start <= at < job.planned_start + job.tr
    )


requests = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 50)), min_size=1, max_size=12)


@given(requests)
def test_the_plan_never_uses_more_than_there_is(shapes: list[tuple[int, int]]) -> None:
    plan = list(
        queue_state(
            [waiting(i, p, tr) for i, (p, tr) in enumerate(shapes, 1)], LocalMachine(4, 2**30), NOW
        ).pending
    )
    assert len(plan) == len(shapes)
    assert all(used(plan, job.planned_start or 0.0) <= 4 for job in plan)


@given(requests, st.tuples(st.integers(1, 4), st.integers(1, 50)))
def test_a_later_job_delays_nobody(shapes: list[tuple[int, int]], later: tuple[int, int]) -> None:
    entries = [waiting(i, p, tr) for i, (p, tr) in enumerate(shapes, 1)]
    before = starts(*entries)
    after = starts(*entries, waiting(99, *later))
    assert {id: after[id] for id in before} == before
