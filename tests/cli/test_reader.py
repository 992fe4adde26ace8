"""Questions go to the daemon, to the journal where none runs, or to a daemon that starts meanwhile."""

from __future__ import annotations

import pytest

from adaptor.cli import reader
from adaptor.cli.reader import Reader
from adaptor.errors import JournalError, NoDaemonError
from adaptor.protocol import control

QUESTION = control.GetBags("all")


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process holds the journal."""

    def refuse(*_: object) -> None:
        raise JournalError("journal.sqlite: database is locked")

    monkeypatch.setattr(reader, "ask_journal", refuse)
    monkeypatch.setattr(reader, "_BETWEEN_LOOKS", 0.0)


def starting(monkeypatch: pytest.MonkeyPatch, after: int) -> list[control.Question]:
    """A daemon that answers after so many questions in vain."""
    asked: list[control.Question] = []

    def ask(question: control.Question, kind: type[control.Bags]) -> control.Bags:
        asked.append(question)
        if len(asked) <= after:
            raise NoDaemonError("no daemon")
        return kind([])

    monkeypatch.setattr(reader, "ask", ask)
    return asked


@pytest.mark.usefixtures("locked")
def test_a_daemon_that_starts_meanwhile_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = starting(monkeypatch, after=3)
    reading = Reader()
    assert reading.get(QUESTION, control.Bags) == control.Bags([])
    assert (len(asked), reading.offline) == (4, False)


@pytest.mark.usefixtures("locked")
def test_a_journal_that_stays_locked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    starting(monkeypatch, after=10**6)
    with pytest.raises(JournalError, match="database is locked"):
        Reader().get(QUESTION, control.Bags)
