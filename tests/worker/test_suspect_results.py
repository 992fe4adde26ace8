"""Failures are held back for a moment in which the end of the pilot may explain them."""

from __future__ import annotations

import pytest

from adaptor.protocol.messages import AttemptKey, Ending, Result
from adaptor.worker.suspect_results import MOMENT, Doubts, doubtful

FAILED = Result(AttemptKey(1, 1, 1), Ending.SIGNALLED, signal=15)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (FAILED, True),
        (Result(AttemptKey(1, 1, 1), Ending.EXITED, exit_code=1), True),
        (Result(AttemptKey(1, 1, 1), Ending.EXITED, exit_code=0), False),
        (Result(AttemptKey(1, 1, 1), Ending.ENDED, signal=15), False),
        (Result(AttemptKey(1, 1, 1), Ending.ABORTED, signal=15), False),
    ],
)
def test_only_failures_are_doubted(result: Result, expected: bool) -> None:
    assert doubtful(result) is expected


def test_a_failure_is_believed_after_a_moment() -> None:
    doubts = Doubts()
    assert doubts.due() == float("inf")
    doubts.add(FAILED, 10.0)
    assert doubts.keys() == [FAILED.key]
    assert doubts.due() == 10.0 + MOMENT
    assert doubts.believed(10.0 + MOMENT / 2) == []
    assert doubts.believed(10.0 + MOMENT) == [FAILED]
    assert len(doubts) == 0


def test_the_end_of_the_pilot_explains_it() -> None:
    doubts = Doubts()
    doubts.add(FAILED, 10.0)
    (explained,) = doubts.explained()
    assert (explained.ending, explained.signal) == (Ending.ENDED, 15)
    assert len(doubts) == 0
