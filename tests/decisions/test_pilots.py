"""The life of a pilot as the scheduler's answers tell it."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.decisions.pilot_rules import why_put_back
from adaptor.decisions.pilots import (
    DENIED_FOR,
    LEFT_OUT,
    LEFT_OUT_FOR,
    MISSES_TO_VANISH,
    Absence,
    Arrival,
    Pilot,
    miss,
    observe,
    request_told,
)
from adaptor.model import PilotState, Request
from adaptor.reports import JobReport, JobState

NOW = 1_000_000.0


def pilot(state: PilotState = PilotState.QUEUED, started: float | None = None) -> Pilot:
    asked = Pilot(id=7, state=state, request=Request(4, 600), submitted=NOW - 50, job="99")
    return asked.but(started=started, granted=600, seen_running=started is not None)


def report(state: JobState, start: float | None = None, end: float | None = None) -> JobReport:
    return JobReport(id="99", tag="tag", state=state, start=start, end=end, reason="so it is")


def test_a_submit_is_recognised_by_its_tag() -> None:
    each = pilot(PilotState.SUBMITTING).but(job=None, submitted=NOW)
    each = observe(each, report(JobState.QUEUED), NOW)
    assert (each.state, each.job) == (PilotState.QUEUED, "99")


def test_it_starts_when_the_scheduler_says() -> None:
    each = pilot()
    each = observe(each, report(JobState.RUNNING, start=NOW - 9), NOW)
    assert (each.state, each.started) == (PilotState.RUNNING, NOW - 9)
    assert observe(each, report(JobState.RUNNING, start=NOW - 9), NOW + 1) == each, "nothing new"


@pytest.mark.parametrize(
    ("said", "state"),
    [
        (JobState.COMPLETED, PilotState.COMPLETED),
        (JobState.WALLTIME, PilotState.WALLTIME),
        (JobState.PREEMPTED, PilotState.PREEMPTED),
        (JobState.CANCELLED, PilotState.CANCELLED),
        (JobState.NODE_FAILED, PilotState.NODE_FAILED),
        (JobState.FAILED, PilotState.FAILED),
    ],
)
def test_every_end_has_its_own_word(said: JobState, state: PilotState) -> None:
    each = pilot(PilotState.RUNNING, started=NOW - 20)
    each = observe(each, report(said, start=NOW - 20, end=NOW - 1), NOW)
    assert (each.state, each.ended, each.end_reason) == (state, NOW - 1, "so it is")


def test_one_that_we_take_back_before_it_starts_is_withdrawn() -> None:
    each = pilot().but(leaving="no task waits")
    each = observe(each, report(JobState.CANCELLED), NOW)
    assert (each.state, each.end_reason) == (PilotState.WITHDRAWN, "no task waits")


def test_one_that_someone_else_cancels_in_the_queue_is_cancelled() -> None:
    each = pilot()
    each = observe(each, report(JobState.CANCELLED), NOW)
    assert each.state is PilotState.CANCELLED


def test_one_that_goes_back_into_the_queue_is_queued_again() -> None:
    each = pilot(PilotState.RUNNING, started=NOW - 20)
    each = observe(each, report(JobState.QUEUED), NOW)
    assert (each.state, each.started) == (PilotState.QUEUED, None)


def test_one_that_is_held_after_it_was_put_back_is_not_waited_for() -> None:
    each = observe(pilot(PilotState.RUNNING, started=NOW - 20), report(JobState.QUEUED), NOW)
    assert why_put_back(each, NOW) == "", "it is not held"
    held = msgspec.structs.replace(report(JobState.QUEUED), begins=NOW + 120)
    each = observe(each, held, NOW)
    assert why_put_back(each, NOW) == "it was put back into the queue, where it is held for 2m"
    assert why_put_back(each, NOW + 121) == ""
    assert why_put_back(observe(pilot(), held, NOW), NOW) == "", "somebody wants it to begin later"


def test_a_word_that_we_do_not_know_changes_nothing() -> None:
    each = pilot(PilotState.RUNNING, started=NOW - 20)
    each = observe(each, report(JobState.UNKNOWN), NOW)
    assert (each.state, each.started) == (PilotState.RUNNING, NOW - 20)


def test_a_worker_that_calls_says_that_the_pilot_runs() -> None:
    each = pilot().but(notes={"": "nobody has called"}).heard(NOW, "n1", Arrival(4))
    assert (each.state, each.started, each.note) == (PilotState.RUNNING, NOW, "")


GONE, REPLACED = Absence(denied=True), Absence(other="mine")


def missed_for(each: Pilot, *answers: tuple[float, Absence]) -> Pilot:
    """After answers without it: how many seconds after the first, and what they say of it."""
    for after, absence in answers:
        assert each.state.in_system
        each = miss(each, NOW + after, alive=False, settle_time=60, absence=absence)
    return each


@pytest.mark.parametrize(
    ("absence", "patience"), [(LEFT_OUT, LEFT_OUT_FOR), (GONE, DENIED_FOR), (REPLACED, DENIED_FOR)]
)
def test_missing_never_means_completed_and_vanished_only_after_some_time(
    absence: Absence, patience: float
) -> None:
    each = pilot(PilotState.RUNNING, started=NOW - 20)
    each = missed_for(each, *((after, absence) for after in (0, 5, 10, patience - 1)))
    assert each.state.in_system
    each = missed_for(each, (patience, absence))
    assert (each.state, each.ended) == (PilotState.VANISHED, NOW), "what came later is not charged"


@pytest.mark.parametrize("absence", [LEFT_OUT, GONE, REPLACED])
def test_two_answers_without_it_are_too_few_however_far_apart(absence: Absence) -> None:
    assert missed_for(pilot(), (0, absence), (9999, absence)).state.in_system
    assert missed_for(pilot(), (0, absence), (9998, absence), (9999, absence)).state is PilotState.VANISHED


def test_answers_that_are_wrong_for_a_while_cost_a_queued_pilot_nothing() -> None:
    each = missed_for(pilot(), *((after, LEFT_OUT) for after in range(0, 590, 5)))
    seen = observe(each, report(JobState.QUEUED), NOW + 590)
    assert (seen.state, seen.misses, seen.missing_since) == (PilotState.QUEUED, 0, None)
    assert missed_for(seen, (600, LEFT_OUT), (605, LEFT_OUT), (610, LEFT_OUT)).state.in_system


def test_one_whose_number_has_another_job_says_so_and_leaves_that_alone() -> None:
    each = missed_for(pilot(), (0, REPLACED), (20, REPLACED), (40, REPLACED))
    assert "its number 99 is another job's, 'mine', which is left alone" in each.end_reason


def test_a_clock_that_is_set_back_begins_the_wait_again() -> None:
    each = missed_for(pilot(), (0, GONE), (-5000, GONE), (-4980, GONE))
    assert each.state.in_system
    assert missed_for(each, (-4970, GONE)).state is PilotState.VANISHED


def test_one_whose_workers_are_heard_of_does_not_vanish() -> None:
    each = pilot(PilotState.RUNNING, started=NOW - 20)
    for _ in range(10 * MISSES_TO_VANISH):
        each = miss(each, NOW, alive=True, settle_time=60)
    assert each.state is PilotState.RUNNING


def test_a_single_answer_without_it_is_forgotten_when_it_is_seen_again() -> None:
    each = pilot(PilotState.RUNNING, started=NOW - 20)
    for _ in range(10):
        missed = miss(each, NOW, alive=False, settle_time=60)
        assert missed.state.in_system
        each = observe(missed, report(JobState.RUNNING, start=NOW - 20), NOW)


def test_a_submit_that_left_no_trace_has_not_happened_but_only_after_a_while() -> None:
    each = pilot(PilotState.SUBMITTING).but(job=None, submitted=NOW)
    young = miss(each, NOW + 59, alive=False, settle_time=60)
    assert young.state.in_system, "it counts towards max_pending_requests until that is known"
    assert miss(each, NOW + 61, alive=False, settle_time=60).state is PilotState.REFUSED


def test_the_table_of_transitions_is_enforced() -> None:
    each = pilot(PilotState.RUNNING, started=NOW).over(PilotState.COMPLETED, NOW, "")
    with pytest.raises(ValueError, match="completed does not become running"):
        each.but(state=PilotState.RUNNING)


def take_in(pilot: Pilot, state: JobState, p: int, tr: int, granted: float | None = None) -> Pilot:
    """As a driver does."""
    start = None if state is JobState.QUEUED else NOW - 9
    report = JobReport(
        id="99", tag="tag", state=state, start=start, granted=granted, processors=p, limit=tr
    )  # fmt: skip
    told = request_told(pilot, report, pilot.request, pilot.request)
    if told != pilot.request:
        pilot = pilot.reshaped_to(told, NOW)
    return observe(pilot, report, NOW)


def test_a_request_that_its_owner_alters_in_the_queue_is_what_the_scheduler_has() -> None:
    each = pilot()
    each = take_in(each, JobState.QUEUED, 8, 60)
    assert (each.request, each.granted) == (Request(8, 60), 60)
    each = take_in(each, JobState.RUNNING, 6, 90, granted=90)
    assert (each.request, each.granted) == (Request(6, 90), 90), "altered once more just before it started"


def test_the_processors_of_one_that_runs_are_those_that_it_started_with() -> None:
    """Nodes that its owner gives back later were held until then."""
    each = pilot()
    each = take_in(each, JobState.RUNNING, 4, 600, granted=600)
    each = take_in(each, JobState.RUNNING, 2, 300, granted=300)
    assert (each.request, each.granted) == (Request(4, 300), 300)
    again = pilot(PilotState.RUNNING, started=NOW - 9)
    again = take_in(again, JobState.RUNNING, 2, 600)
    assert again.request == Request(4, 600), "an earlier daemon saw it start"


def test_a_walltime_that_was_cut_at_the_start_leaves_the_request_as_it_was() -> None:
    each = pilot()
    each = take_in(each, JobState.RUNNING, 4, 600, granted=238)
    assert (each.request, each.granted) == (Request(4, 600), 238)
