"""The life cycles: ends are ends, everything can be reached, and nothing is stuck for ever."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.model import (
    PILOT_TRANSITIONS,
    TASK_TRANSITIONS,
    FreeSlot,
    Limits,
    PilotState,
    Request,
    TaskState,
)

State = TypeVar("State", bound=enum.Enum)

PILOT_ENDS = [state for state in PilotState if not state.in_system]
IN_SYSTEM = [state for state in PilotState if state.in_system]


def reachable(start: State, transitions: Mapping[State, frozenset[State]]) -> set[State]:
    seen, waiting = {start}, [start]
    while waiting:
        for following in transitions[waiting.pop()] - seen:
            seen.add(following)
            waiting.append(following)
    return seen


def test_every_state_has_its_line_in_the_table() -> None:
    assert set(PILOT_TRANSITIONS) == set(PilotState)
    assert set(TASK_TRANSITIONS) == set(TaskState)


def test_every_pilot_state_can_be_reached() -> None:
    assert reachable(PilotState.SUBMITTING, PILOT_TRANSITIONS) == set(PilotState)


def test_every_task_state_can_be_reached() -> None:
    assert reachable(TaskState.WAITING, TASK_TRANSITIONS) == set(TaskState)


@pytest.mark.parametrize("end", PILOT_ENDS)
def test_nothing_follows_the_end_of_a_pilot(end: PilotState) -> None:
    assert PILOT_TRANSITIONS[end] == frozenset()


@pytest.mark.parametrize("state", IN_SYSTEM)
def test_every_pilot_in_the_system_can_end_at_once(state: PilotState) -> None:
    """It may have started and ended between two looks at the queue, or be gone without a record."""
    assert PilotState.VANISHED in PILOT_TRANSITIONS[state]
    assert PilotState.WALLTIME in PILOT_TRANSITIONS[state]
    assert PILOT_TRANSITIONS[state] & set(PILOT_ENDS)


def test_a_pilot_that_ran_was_neither_refused_nor_withdrawn() -> None:
    following = PILOT_TRANSITIONS[PilotState.RUNNING]
    assert not following & {PilotState.REFUSED, PilotState.WITHDRAWN, PilotState.SUBMITTING}


def test_only_a_request_whose_submit_was_open_can_turn_out_refused() -> None:
    before = [state for state, following in PILOT_TRANSITIONS.items() if PilotState.REFUSED in following]
    assert before == [PilotState.SUBMITTING]


@given(st.lists(st.integers(0, 11), max_size=30))
def test_no_walk_through_the_table_leaves_an_end(choices: list[int]) -> None:
    state, ended = PilotState.SUBMITTING, False
    for choice in choices:
        following = sorted(PILOT_TRANSITIONS[state], key=lambda each: each.value)
        if not following:
            break
        assert not ended
        state = following[choice % len(following)]
        ended = not state.in_system


def test_a_done_task_stays_done() -> None:
    assert TASK_TRANSITIONS[TaskState.DONE] == frozenset()


@pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.CANCELLED])
def test_a_task_without_a_result_can_be_put_back(state: TaskState) -> None:
    assert state.ended
    assert TaskState.WAITING in TASK_TRANSITIONS[state]
    assert TaskState.LEASED not in TASK_TRANSITIONS[state], "it has to wait for its turn first"


@pytest.mark.parametrize("state", [state for state in TaskState if not state.ended])
def test_a_result_counts_wherever_the_task_stands(state: TaskState) -> None:
    """The worker of a lost attempt may still bring its result."""
    assert TaskState.DONE in TASK_TRANSITIONS[state]


def test_areas_and_ends() -> None:
    assert Request(p=4, tr=60).area == 240
    assert FreeSlot(start=10.0, duration=5.0, processors=2).end == 15.0


@pytest.mark.parametrize(
    ("least", "seconds", "expected"),
    [
        (1, 60, (4, 900)),  # both lose the same share
        (1, 1800, (2, 1800)),
        (1, 7200, (1, 3600)),
        (8, 60, (8, 450)),
        (32, 60, (16, 225)),
    ],
)
def test_a_request_within_a_bound_on_processors_times_time(
    least: int, seconds: float, expected: tuple[int, int]
) -> None:
    limits = Limits(max_pending_requests=1, max_proc=16, max_tr=3600, max_work=3600)
    found = limits.for_work(least, seconds)
    assert (found.max_proc, found.max_tr) == expected


def test_a_bound_on_processors_times_time_that_does_not_bind() -> None:
    limits = Limits(max_pending_requests=1, max_proc=16, max_tr=3600, max_work=16 * 3600)
    assert limits.for_work(1, 60) == limits
