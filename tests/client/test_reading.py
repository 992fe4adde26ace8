"""Questions go to the daemon, to the journal where none runs, or to a daemon that starts meanwhile."""

from __future__ import annotations

import time
from typing import Any

import pytest

from adaptor import api
from adaptor.client import reading
from adaptor.client.reading import Reader
from adaptor.errors import JournalError, NoDaemonError
from tests.cli.fake_control import DEADLINE

QUESTION = api.GetBags("all")


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process holds the journal."""

    def refuse(*_: object) -> None:
        raise JournalError("journal.sqlite: database is locked")

    monkeypatch.setattr(Reader, "kept", refuse)
    monkeypatch.setattr(reading, "SETTLING", DEADLINE)


def starting(monkeypatch: pytest.MonkeyPatch, after: int) -> list[api.Question[Any]]:
    """A daemon that answers after so many questions in vain."""
    asked: list[api.Question[Any]] = []

    def ask(question: api.Question[Any], timeout: float) -> api.Bags:
        asked.append(question)
        if len(asked) <= after:
            raise NoDaemonError("no daemon")
        return api.Bags([])

    monkeypatch.setattr(reading, "ask", ask)
    return asked


@pytest.mark.usefixtures("locked")
def test_a_daemon_that_starts_meanwhile_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = starting(monkeypatch, after=3)
    reader = Reader(time.time)
    assert reader.get(QUESTION) == api.Bags([])
    assert (len(asked), reader.offline) == (4, False)


@pytest.mark.usefixtures("locked")
def test_a_journal_that_stays_locked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SETTLING", 0.1)
    starting(monkeypatch, after=10**6)
    with pytest.raises(JournalError, match="database is locked"):
        Reader(time.time).get(QUESTION)


def test_the_journal_of_a_new_state_directory_is_empty() -> None:
    assert Reader(time.time).kept(api.GetBags()).bags == []
