"""No hour ever holds more submissions than a site allows, and the time told is when they go on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.submissions import HOUR, SubmissionCount, Submissions
from adaptor.model import CraftedRequest, Request
from adaptor.resources import TaskSize

times = st.lists(st.integers(0, 20_000), max_size=60).map(sorted)


@given(times, st.integers(1, 6))
def test_who_asks_first_never_sends_more_in_any_hour(asked: list[int], most: int) -> None:
    known, sent = Submissions(most), []
    for now in asked:
        allowance = known.left_at(now)
        assert allowance.left is not None
        if allowance.left:
            known.note(now)
            sent.append(now)
        else:
            assert allowance.again > now
            again = known.left_at(allowance.again)
            assert again.left
    for first in sent:
        assert sum(first <= each < first + HOUR for each in sent) <= most


@given(times, st.integers(1, 6), st.integers(1, 4))
def test_what_is_decided_counts_before_it_is_sent(asked: list[int], most: int, coming: int) -> None:
    now = float(max(asked, default=0))
    known = Submissions(most, asked)
    free, kept = known.left_at(now).left, known.left_at(now, coming).left
    assert free is not None
    assert kept == max(0, free - coming)


def test_without_a_bound_nothing_is_counted() -> None:
    known = Submissions(None, [1.0] * 1000)
    known.note(2.0)
    assert known.left_at(2.0).left is None


def test_a_clock_that_was_set_back_blocks_for_an_hour_at_most() -> None:
    known = Submissions(1, [1_000_000.0])
    assert known.left_at(500.0).left == 0
    assert known.left_at(500.0).again == 500.0 + HOUR
    assert known.left_at(500.0 + HOUR).left == 1


def test_equal_neighbours_are_one_submission_as_far_as_arrays_go() -> None:
    narrow, wide = (CraftedRequest(Request(p, 600), None, 1, "because") for p in (1, 8))
    shape = (TaskSize(), None)
    count = SubmissionCount(2, most_in_array=3)
    assert [count.holds(narrow, shape) for _ in range(7)] == [True] * 6 + [False]
    count = SubmissionCount(2, most_in_array=3)
    assert [count.holds(each, shape) for each in (narrow, wide, narrow, wide)] == [True, True, False, True]
    count = SubmissionCount(2, most_in_array=1)
    assert [count.holds(narrow, shape) for _ in range(3)] == [True, True, False]
    count = SubmissionCount(2, most_in_array=9)
    assert count.holds(narrow, shape)
    count.interrupt()
    assert count.holds(narrow, shape)
    count.interrupt()
    assert not count.holds(narrow, shape)
    assert SubmissionCount(None, most_in_array=1).holds(narrow, shape)


def test_what_was_withdrawn_before_it_started_does_not_count() -> None:
    known = Submissions(1)
    known.note(100.0)
    assert known.why_none(101.0).startswith("max_submissions is 1 an hour and used up: no request until ")
    known.take_back(100.0)
    assert known.left_at(101.0).left == 1
    assert known.why_none(101.0) == ""
    known.take_back(100.0)
