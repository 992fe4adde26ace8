"""The order in which the local site starts jobs, without any process."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import schedule
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.reports import JobState
from adaptor.resources import Part
from backends.local.admission import LocalMachine
from backends.local.queue import queue_state
from backends.local.store import Job, JobEnd, JobEntry, Start

NOW = 1000.0


MACHINE = LocalMachine(4, 8, ("0", "1"))


def job(id: int, held: int, tr: int, memory: int = 0, gpus: int = 0) -> Job:
    return Job(
        id=id,
        tag=f"t{id}",
        p=held,
        tr=tr,
        holds=Part(node="local", processors=held, memory=memory, gpus=(("", gpus),) if gpus else ()),
        memory=1,
        submitted=0.0,
        directory="/nowhere",
        worker=("true",),
        environment={},
        grace=1.0,
        marker=f"/nowhere/{id}",
    )


def waiting(id: int, held: int, tr: int, memory: int = 0, gpus: int = 0) -> JobEntry:
    return JobEntry(job(id, held, tr, memory, gpus))


def running(id: int, held: int, tr: int, started: float, memory: int = 0, gpus: int = 0) -> JobEntry:
    supervisor = {"host": "here", "boot": "b", "pid": 1, "ticks": 1}
    start = Start(started=started, supervisor=supervisor)  # type: ignore[arg-type]
    return JobEntry(job(id, held, tr, memory, gpus), start)


def starts(*entries: JobEntry, machine: LocalMachine = MACHINE) -> dict[str, float | None]:
    return {job.id: job.planned_start for job in queue_state(entries, machine, NOW).pending}


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
    state = queue_state([running(1, 4, 10, NOW - 20), waiting(2, 1, 5)], MACHINE, NOW)
    assert state.running[0].end > NOW
    assert state.pending[0].planned_start == state.running[0].end


def test_a_job_larger_than_the_site_is_left_out_and_holds_up_nobody() -> None:
    assert starts(waiting(1, 5, 10), waiting(2, 4, 10)) == {"2": NOW}


def test_a_site_made_smaller_starts_nothing_before_there_is_room() -> None:
    assert starts(running(1, 4, 10, NOW), waiting(2, 1, 5), machine=LocalMachine(2, 8)) == {"2": NOW + 10}


def test_ended_and_cancelled_jobs_hold_nothing() -> None:
    ended = msgspec.structs.replace(running(1, 4, 50, NOW), end=JobEnd(ended=NOW, state=JobState.COMPLETED))
    cancelled = msgspec.structs.replace(waiting(2, 4, 50), start=Start(started=NOW, supervisor=None))
    assert starts(ended, cancelled, waiting(3, 4, 5)) == {"3": NOW}


def test_what_is_short_is_waited_for_and_the_rest_goes_on() -> None:
    memory, gpu, small = waiting(2, 1, 10, 6), waiting(3, 1, 10, 0, 2), waiting(4, 1, 10, 2)
    planned = starts(running(1, 1, 50, NOW, 4, 1), memory, gpu, small)
    assert planned == {"2": NOW + 50, "3": NOW + 50, "4": NOW}


def test_jobs_that_do_not_say_what_memory_they_need_are_not_held_up_by_it() -> None:
    planned = starts(running(1, 1, 50, NOW, 8), waiting(2, 3, 10), waiting(3, 1, 10, 1))
    assert planned == {"2": NOW, "3": NOW + 50}


Shape = tuple[int, int, int, int]
"""Processors, seconds, memory, GPUs."""
shapes_of_jobs = st.tuples(st.integers(1, 4), st.integers(1, 50), st.integers(0, 8), st.integers(0, 2))
requests = st.lists(shapes_of_jobs, min_size=1, max_size=12)


def held(plan: list[PendingJob], at: float) -> list[int]:
    """Processors, memory and GPUs."""
    parts = [
        job.parts[0]
        for job in plan
        if job.planned_start is not None and job.planned_start <= at < job.planned_start + job.tr
    ]
    gpus = sum(dict(part.gpus).get("", 0) for part in parts)
    return [sum(part.processors for part in parts), sum(part.memory for part in parts), gpus]


@given(requests)
def test_the_plan_never_uses_more_than_there_is(shapes: list[Shape]) -> None:
    entries = [waiting(id, *shape) for id, shape in enumerate(shapes, 1)]
    plan = list(queue_state(entries, MACHINE, NOW).pending)
    assert len(plan) == len(shapes)
    for job in plan:
        assert all(map(int.__le__, held(plan, job.planned_start or 0.0), (4, 8, 2)))


@given(requests, shapes_of_jobs)
def test_a_later_job_delays_nobody(shapes: list[Shape], later: Shape) -> None:
    entries = [waiting(id, *shape) for id, shape in enumerate(shapes, 1)]
    before = starts(*entries)
    after = starts(*entries, waiting(99, *later))
    assert {id: after[id] for id in before} == before


SIMPLE = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 4)), max_size=10)


@given(SIMPLE, SIMPLE)
def test_processors_alone_are_planned_as_the_profile_plans_them(
    run: list[tuple[int, int]], wait: list[tuple[int, int]]
) -> None:
    """Also where more runs than the site has, for it was made smaller."""
    queue = QueueState(
        now=NOW,
        processors=4,
        running=tuple(RunningJob(f"r{n}", p, NOW + tr) for n, (tr, p) in enumerate(run)),
        pending=tuple(PendingJob(str(n), p, tr) for n, (tr, p) in enumerate(wait, len(run))),
    )
    entries = [running(n, p, tr, NOW) for n, (tr, p) in enumerate(run)]
    entries += [waiting(n, p, tr) for n, (tr, p) in enumerate(wait, len(run))]
    assert starts(*entries) == schedule(queue).starts
