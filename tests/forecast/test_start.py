"""When a request would start: properties of the plan, of the interval and of what is offered instead."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.forecast.start import KnownQueue, QueueFutures, StartRequest, processors_for, unplanned
from adaptor.model import Estimate, PendingJob, QueueState, RunningJob
from adaptor.resources import Need, Node, Part
from tests.examples import examples

NOW = 1000.0
QUEUE = QueueState(
    now=NOW,
    processors=8,
    running=(RunningJob("1", 6, NOW + 600), RunningJob("2", 2, NOW + 3600)),
    pending=(PendingJob("3", 4, 1800.0), PendingJob("reservation maint", 8, 600.0, NOW + 7200)),
)
TWO_NODES = QueueState(
    now=NOW,
    processors=8,
    nodes=(Node(name="a", processors=4, memory=8), Node(name="b", processors=4, memory=8)),
    running=(RunningJob("1", 1, NOW + 600, (Part(node="a", processors=1, memory=2),)),),
)
LIMITS = (1.0,)


def futures(queue: QueueState, **more: object) -> QueueFutures:
    return QueueFutures(KnownQueue(queue=queue, look=10.0, **more))  # type: ignore[arg-type]


def request(processors: int, tr: float, unit: Need | None = None) -> StartRequest:
    return StartRequest(processors=processors, tr=tr, unit=unit)


jobs = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 500)), max_size=8)


@st.composite
def queues(draw: st.DrawFn) -> QueueState:
    """A queue of one or a few nodes, or counted in processors, whose running jobs fit."""
    sizes = draw(st.lists(st.integers(1, 8), max_size=3))
    running, free = [], list(sizes) or [8]
    for number, (p, left) in enumerate(draw(jobs)):
        place = next((at for at, there in enumerate(free) if there >= p), None)
        if place is not None:
            free[place] -= p
            parts = (Part(node=f"n{place}", processors=p),) if sizes else ()
            running.append(RunningJob(f"r{number}", p, NOW + left, parts))
    return QueueState(
        now=NOW,
        processors=sum(sizes) or 8,
        nodes=tuple(Node(name=f"n{at}", processors=size) for at, size in enumerate(sizes)),
        running=tuple(running),
        pending=tuple(PendingJob(f"p{at}", p, float(tr)) for at, (p, tr) in enumerate(draw(jobs))),
    )


@examples(30)
@given(
    queue=queues(),
    p=st.integers(1, 8),
    tr=st.integers(1, 500),
    less=st.integers(0, 7),
    at=st.integers(0, 300),
)
def test_a_request_within_another_is_never_planned_later(
    queue: QueueState, p: int, tr: int, less: int, at: int
) -> None:
    found = futures(queue)
    unit = Need(chunks=1, processors=1) if queue.nodes else None
    whole = found.request(request(p, tr, unit), NOW + at)
    part = found.request(request(max(1, p - less), max(1, tr - 37 * less), unit), NOW + at)
    assert part.planned <= whole.planned


@examples(30)
@given(queue=queues(), p=st.integers(1, 8), tr=st.integers(1, 500))
def test_the_interval_holds_the_expected_start_and_begins_by_the_planned_one(
    queue: QueueState, p: int, tr: int
) -> None:
    found = futures(queue).request(request(p, tr))
    if found.start is None:
        assert math.isinf(found.planned)
        return
    assert NOW <= found.start.low <= found.start.value <= found.start.high
    assert found.start.low <= found.planned
    assert (found.before is None) == (found.planned <= NOW + 1)


@examples(30)
@given(queue=queues(), p=st.integers(1, 8), tr=st.integers(1, 500))
def test_where_all_jobs_run_to_their_limits_the_interval_holds_the_planned_start(
    queue: QueueState, p: int, tr: int
) -> None:
    found = futures(queue, run_shares=LIMITS).request(request(p, tr))
    assert found.start is None or found.start.holds(found.planned)


@given(p=st.integers(1, 8), tr=st.floats(1, 1e6))
def test_on_an_empty_cluster_all_that_fits_starts_now(p: int, tr: float) -> None:
    found = futures(QueueState(now=NOW, processors=8)).request(request(p, tr))
    assert (found.planned, found.before) == (NOW, None)
    assert found.start is not None
    assert (found.start.low, found.start.value) == (NOW, NOW)
    assert found.start.high <= NOW + 60, "soon, by the looks of the scheduler"


@examples(30)
@given(queue=queues(), p=st.integers(1, 8), tr=st.integers(1, 500))
def test_what_fits_now_by_the_limits_starts_now(queue: QueueState, p: int, tr: int) -> None:
    """Although jobs that wait may take its processors sooner, when others end early."""
    found = futures(queue).request(request(p, tr))
    if found.planned == NOW:
        assert found.start is not None
        assert found.start.value == NOW


def test_a_job_fits_a_hole_by_its_limit_however_long_it_runs() -> None:
    """Four processors are free until job 2 takes all; job 3 would run 200 s of its 2,000 s."""
    queue = QueueState(
        now=NOW,
        processors=8,
        running=(RunningJob("1", 4, NOW + 1000),),
        pending=(PendingJob("2", 8, 1000.0), PendingJob("3", 4, 2000.0)),
    )
    found = futures(queue, run_shares=(0.1,), own={"1"})
    assert found.plan.starts == {"2": NOW + 1000, "3": NOW + 2000}
    job = found.job("3")
    before = msgspec.structs.replace(queue, pending=queue.pending[:1])
    asked = futures(before, run_shares=(0.1,), own={"1"}).request(request(4, 2000.0))
    assert job.raw is not None
    assert job.raw.ends == Estimate(NOW + 1100, NOW + 1100, NOW + 1100)
    assert job.raw == asked.raw, "as a request behind the jobs that wait before it"


@examples(30)
@given(queue=queues())
def test_a_job_starts_no_later_than_planned_and_its_record_costs_a_bounded_number(queue: QueueState) -> None:
    found = futures(queue)
    assert found.jobs_beside >= 1
    for job in queue.pending:
        raw = found.job(job.id).raw
        assert raw is None or raw.ends.high <= found.plan.starts[job.id]


@examples(30)
@given(queue=queues(), parts=st.integers(1, 8), each=st.integers(1, 3), tr=st.integers(1, 500))
def test_what_is_offered_is_smaller_and_starts_sooner(
    queue: QueueState, parts: int, each: int, tr: int
) -> None:
    p, unit = parts * each, None if each == 1 else Need(chunks=1, processors=each)
    found, asked = futures(queue), request(p, tr, unit)
    whole = found.request(asked)
    for offered in found.alternatives(asked, whole):
        smaller, forecast = offered.request, offered.forecast
        assert (smaller.processors, smaller.tr) != (p, tr)
        assert smaller.processors <= p
        assert smaller.processors % each == 0
        assert smaller.tr <= tr
        assert forecast.planned < whole.planned
        assert forecast.start is not None
        assert whole.start is None or forecast.start.value < whole.start.value


def test_a_narrower_request_is_made_of_whole_parts() -> None:
    """Five processors are free for an hour."""
    queue = msgspec.structs.replace(QUEUE, running=(RunningJob("1", 3, NOW + 3600),), pending=())
    found, asked = futures(queue), request(8, 1800.0, Need(chunks=1, processors=2))
    (narrower,) = found.alternatives(asked, found.request(asked))
    assert (narrower.request.processors, narrower.request.tr) == (4, 1800.0)


def test_a_request_waits_behind_those_that_wait_and_before_a_reservation() -> None:
    found = futures(QUEUE, run_shares=LIMITS)
    four = found.request(request(2, 1800.0))
    assert four.planned == NOW + 600
    assert four.before is not None
    assert (four.before.waiting, four.before.job, four.before.processors, four.before.runs) == (
        1,
        "1",
        6,
        True,
    )
    late = found.request(request(8, 7000.0))
    assert late.planned == NOW + 7800, "the reservation begins before it could end"
    assert late.before is not None
    assert late.before.job == "reservation maint"


def test_a_hole_that_is_too_short_is_named_with_what_ends_it() -> None:
    queue = QueueState(now=NOW, processors=8, pending=(PendingJob("reservation x", 8, 600.0, NOW + 900),))
    found = futures(queue).request(request(4, 3600.0))
    assert found.planned == NOW + 1500
    assert found.before is not None
    assert (found.before.hole, found.before.then) == (NOW + 900, "reservation x")
    (shorter,) = futures(queue).alternatives(request(4, 3600.0), found)
    assert (shorter.request.tr, shorter.forecast.planned) == (900.0, NOW)


def test_a_later_time_of_the_request_is_the_earliest_start() -> None:
    found = futures(QUEUE).request(request(1, 60.0), NOW + 50_000)
    assert found.start is not None
    assert found.planned == NOW + 50_000
    assert found.start.low >= NOW + 50_000


def test_more_than_there_is_never_starts() -> None:
    found = futures(QUEUE).request(request(9, 60.0))
    assert found.start is None
    assert math.isinf(found.planned)


def test_jobs_without_an_end_let_nothing_start_that_needs_them() -> None:
    queue = QueueState(now=NOW, processors=8, running=(RunningJob("hidden", 6, math.inf),))
    assert futures(queue).request(request(4, 60.0)).start is None
    two = futures(queue).request(request(2, 60.0))
    assert two.start is not None
    assert two.start.value == NOW


def test_a_job_that_waits() -> None:
    found = futures(QUEUE, run_shares=LIMITS).job("3")
    assert found.planned == NOW + 600
    assert found.start is not None
    assert found.start.holds(NOW + 600)
    with pytest.raises(KeyError):
        futures(QUEUE).job("4")


def test_the_starts_that_a_scheduler_has_planned_are_left_out_but_for_reservations() -> None:
    planned = msgspec.structs.replace(QUEUE.pending[0], planned_start=NOW + 4000)
    queue = msgspec.structs.replace(QUEUE, pending=(planned, QUEUE.pending[1]))
    assert futures(queue).job("3").planned == NOW + 4000
    assert futures(unplanned(queue)).job("3").planned == NOW + 600
    assert unplanned(queue).pending[1].planned_start == NOW + 7200


def test_what_keeps_new_requests_waiting_does_not_keep_jobs_that_wait() -> None:
    waits = RunningJob("licence matlab", 8, NOW + 9000)
    queue = msgspec.structs.replace(QUEUE, running=(*QUEUE.running, waits))
    assert futures(unplanned(queue)).job("3").planned == NOW + 600
    kept = msgspec.structs.replace(waits, id="reservation old")
    queue = msgspec.structs.replace(QUEUE, running=(*QUEUE.running, kept))
    assert futures(unplanned(queue)).job("3").planned == NOW + 9000


def test_parts_lie_on_one_node() -> None:
    found = futures(TWO_NODES, run_shares=LIMITS)
    assert found.request(request(4, 60.0, Need(chunks=1, processors=4))).planned == NOW
    both = Need(chunks=1, processors=4, scatter=True)
    assert found.request(request(8, 60.0, both)).planned == NOW + 600
    large = Need(chunks=1, processors=1, memory=8)
    assert found.request(request(2, 60.0, large)).planned == NOW + 600
    assert processors_for(large, TWO_NODES) == 2


def test_free_processors_that_change_their_nodes_are_no_hole() -> None:
    """Four are free all the time, and after ten minutes on the other node."""
    queue = msgspec.structs.replace(
        TWO_NODES,
        running=(RunningJob("1", 4, NOW + 600, (Part(node="b", processors=4),)),),
        pending=(PendingJob("2", 4, 6000.0, NOW + 600, (Part(node="a", processors=4),)),),
    )
    found = futures(queue).request(request(4, 1200.0, Need(chunks=1, processors=1)))
    assert found.planned == NOW + 600
    assert found.before is not None
    assert (found.before.hole, found.before.job) == (None, "1")


def test_counted_in_processors_only_the_nodes_that_hold_a_part_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptor.forecast.start._MOST_ON_NODES", -1)
    monkeypatch.setattr("adaptor.forecast.start.has_numba", lambda: False)
    found = futures(TWO_NODES, run_shares=LIMITS).request(
        request(2, 60.0, Need(chunks=1, processors=1, memory=8))
    )
    assert found.start is not None
    assert found.start.value == NOW + 600, "one processor of each node, and one of the two is held"


def test_real_waits_count_where_enough_are_known() -> None:
    plain = futures(QUEUE, run_shares=LIMITS).request(request(2, 1800.0))
    late = futures(QUEUE, run_shares=LIMITS, wait_shares=(2.0,) * 5).request(request(2, 1800.0))
    few = futures(QUEUE, run_shares=LIMITS, wait_shares=(2.0,) * 4).request(request(2, 1800.0))
    assert few == plain
    assert late.start is not None
    assert plain.start is not None
    assert late.start.high > plain.start.high + 600


def test_what_earlier_starts_have_shown_makes_the_interval() -> None:
    """At a site whose starts come as foreseen it is narrow, at one whose starts come late it is wide."""
    new, sure, late = (
        futures(QUEUE, run_shares=LIMITS, scores=scores).request(request(2, 1800.0)).start
        for scores in ({}, {"start": [0.0] * 400}, {"start": [2.0] * 400})
    )
    assert new is not None
    assert sure is not None
    assert late is not None
    assert sure.high - sure.low < new.high - new.low < late.high - late.low


def test_no_start_is_forecast_before_a_reservation_lets_it() -> None:
    """Jobs may end early; a reservation does not."""
    held = RunningJob("reservation maint", 8, NOW + 7200)
    queue = QueueState(now=NOW, processors=8, running=(held,), pending=(PendingJob("3", 8, 36_000.0),))
    found = futures(queue).request(request(8, 600.0))
    assert found.start is not None
    assert found.start.low >= NOW + 7200
    assert found.planned > NOW + 7200
