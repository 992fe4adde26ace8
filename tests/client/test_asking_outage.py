"""The one policy for a daemon that does not answer."""

from __future__ import annotations

from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.client import asking
from adaptor.client.asking import NoAnswerError, Outage
from adaptor.errors import NoDaemonError

GONE = NoDaemonError("none runs")
SILENT = NoAnswerError("it is busy")


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asking, "time", clock)
    return clock


def test_one_that_was_never_there_is_not_waited_for(clock: Clock) -> None:
    with pytest.raises(NoDaemonError):
        Outage().pause(GONE)


def test_one_that_lives_is_waited_for_though_it_never_answered(clock: Clock) -> None:
    away = Outage(5.0)
    assert away.pause(SILENT) > 0
    clock.now += 4
    assert away.pause(GONE) > 0, "it lived at the first question"


def test_after_an_answer_the_next_silence_is_another_outage(clock: Clock) -> None:
    away = Outage(5.0, was_there=True)
    for _ in range(3):
        away.pause(GONE)
        clock.now += 4
        away.answered()
    away.pause(GONE)
    clock.now += 5
    with pytest.raises(NoDaemonError):
        away.pause(GONE)


def test_the_user_is_told_once_in_each_outage(clock: Clock) -> None:
    said: list[str] = []
    away = Outage(60.0, was_there=True, say=said.append)
    for expected in (1, 2):
        for _ in range(10):
            away.pause(SILENT)
            clock.now += 1
        assert said == ["adaptor: the daemon does not answer; waiting up to 60 s"] * expected
        away.answered()


@given(patience=st.floats(0.1, 600), silences=st.lists(st.sampled_from([GONE, SILENT]), min_size=1))
def test_patience_is_met_and_not_exceeded_by_more_than_a_pause(
    patience: float, silences: list[NoDaemonError | NoAnswerError]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock()
        patch.setattr(asking, "time", clock)
        began, away = clock.now, Outage(patience, was_there=True)
        with pytest.raises((NoDaemonError, NoAnswerError)):
            ask_until_patience_ends(away, silences, clock)
        assert patience <= clock.now - began <= patience + 1.0


def ask_until_patience_ends(
    away: Outage, silences: list[NoDaemonError | NoAnswerError], clock: Clock
) -> None:
    for silence in cycle(silences):
        pause = away.pause(silence)
        assert 0 < pause <= 1.0
        clock.now += pause
