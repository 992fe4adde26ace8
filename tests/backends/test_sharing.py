"""Two questions of the same moment are answered by one look at the scheduler."""

from __future__ import annotations

import itertools
import math

import pytest

from backends.base import SchedulerError
from backends.observed import backend as observed
from backends.observed.backend import FRESH, SharedLook


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> SharedLook[int]:
    """Sees 1, then 2, … and nothing grows old while a busy machine does something else."""
    monkeypatch.setattr(observed, "FRESH", math.inf)
    return SharedLook(itertools.count(1).__next__)


def test_the_other_question_is_answered_from_what_was_seen(look: SharedLook[int]) -> None:
    assert [look.take(asker) for asker in ("nodes", "queue", "nodes", "queue")] == [1, 1, 2, 2]


def test_who_asks_again_sees_anew(look: SharedLook[int]) -> None:
    assert [look.take(asker) for asker in ("nodes", "nodes", "queue", "queue")] == [1, 2, 2, 3]


def test_after_a_change_nothing_is_known(look: SharedLook[int]) -> None:
    look.take("nodes")
    look.forget()
    assert look.take("queue") == 2


def test_what_is_old_is_not_used(look: SharedLook[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed, "FRESH", FRESH)
    monkeypatch.setattr(observed.time, "monotonic", itertools.count(0, FRESH).__next__)
    assert [look.take("nodes"), look.take("queue")] == [1, 2]


def test_a_failed_look_leaves_nothing_behind() -> None:
    answers = iter(["seen"])

    def ask() -> str:
        for answer in answers:
            return answer
        raise SchedulerError("no answer")

    look = SharedLook(ask)
    look.take("nodes")
    for asker in ("nodes", "queue"):
        with pytest.raises(SchedulerError):
            look.take(asker)
