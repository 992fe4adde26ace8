"""What is free for us next to what jobs may hold together, and where a request needs several nodes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import Availability
from adaptor.crafting.bounded import BoundedProfile
from adaptor.crafting.profile import Profile
from adaptor.model import Allowed, PendingJob, QueueState, RunningJob, SharedBound
from adaptor.resources import Need, Part
from tests.alike import alike

from .crafting_strategies import profiles

UNIT = Need(chunks=1, processors=1)


@given(profiles(), profiles(), st.integers(0, 12), st.integers(1, 20), st.integers(0, 30))
def test_it_is_the_least_of_both_at_each_instant(
    inner: Profile, bound: Profile, processors: int, duration: int, begin: int
) -> None:
    free = BoundedProfile(inner.copy(), bound.copy())
    for second in range(60):
        assert free.free_at(second) == min(inner.free_at(second), bound.free_at(second))
    least = min(inner.minimum(begin, begin + duration), bound.minimum(begin, begin + duration))
    assert free.minimum(begin, begin + duration) == least
    start = free.earliest_start(processors, duration, begin)
    assert start == math.inf or free.minimum(start, start + duration) >= processors
    if start < math.inf:
        steps = free.steps()
        free.take(start, duration, processors)
        free.give(start, duration, processors)
        assert free.steps() == steps


def test_more_than_may_be_held_is_not_taken() -> None:
    free = BoundedProfile(Profile(0.0, 8), Profile(0.0, 4))
    with pytest.raises(ValueError, match="fewer may be held"):
        free.take(0, 10, 5)
    copy = free.copy()
    copy.take(0, 10, 4)
    assert (copy.free_at(0), free.free_at(0)) == (0, 4)


def queue(*bounds: SharedBound, min_parts: int = 1, **given: object) -> QueueState:
    allowed = Allowed(together=bounds, min_parts=min_parts)
    return QueueState(now=0.0, processors=16, nodes=alike(4, 4), allowed=allowed, **given)  # type: ignore[arg-type]


def test_what_our_group_holds_elsewhere_counts_and_jobs_of_others_do_not() -> None:
    """Two processors of the group are on nodes that this site does not use."""
    other = RunningJob("1", 3, 100.0, (Part(node="n1", processors=3),))
    bound = SharedBound(most=4, held=((50.0, 2),))
    assert Availability(queue(bound, running=(other,))).profile(UNIT).steps() == [(0.0, 2), (50.0, 4)]


def test_our_waiting_and_new_requests_count_from_their_planned_starts() -> None:
    known, new, others = (
        PendingJob("7", 1, 20.0, planned_start=10.0),
        PendingJob("pilot 8", 2, 20.0, planned_start=20.0, new=True),
        PendingJob("9", 4, 20.0, planned_start=10.0),
    )
    found = Availability(queue(SharedBound(most=4, waiting=frozenset("7")), pending=(known, new, others)))
    assert found.profile(UNIT).steps() == [(0.0, 4), (10.0, 3), (20.0, 1), (30.0, 2), (40.0, 4)]


def test_no_hole_lies_on_fewer_nodes_than_a_request_gets() -> None:
    """Three of four nodes are full until 100 s."""
    held = tuple(RunningJob(f"{n}", 4, 100.0, (Part(node=f"n{n}", processors=4),)) for n in range(1, 4))
    assert Availability(queue(running=held)).profile(UNIT).free_at(0) == 4
    assert Availability(queue(min_parts=2, running=held)).profile(UNIT).steps() == [(0.0, 0), (100.0, 16)]
