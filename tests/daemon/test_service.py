"""The service around one broker and one journal: how it goes on after failures of the journal."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest

from adaptor.daemon.lock import LOCK
from adaptor.daemon.service import Service
from adaptor.errors import JournalError
from adaptor.journal.damage import DamagedJournalError


class Recovering:
    """Counts how often the daemon begins again from the journal."""

    now = staticmethod(lambda: 0.0)

    def __init__(self) -> None:
        self.journal = self
        self.recovered = 0

    def explain(self, *_about: object) -> None:
        """It can be written."""

    def recover(self) -> None:
        self.recovered += 1


@pytest.mark.parametrize(
    ("error", "again"), [(JournalError("the disk is full"), 1), (DamagedJournalError("a page is bad"), 0)]
)
def test_only_what_time_can_mend_is_tried_again(
    error: JournalError, again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service.__new__(Service)
    monkeypatch.setattr(Service, "_load_pilots", lambda _service: None)
    core = Recovering()
    service.core, service.sites = core, {}  # type: ignore[assignment]
    service.stalled, service._damaged = "", False
    service._stall(error)
    for _ in range(2):
        asyncio.run(service._try_journal())
    assert core.recovered == again
    assert service.stalled == ("" if again else str(error))


def test_it_ends_when_its_folder_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service.__new__(Service)
    looks = [True, True, False]
    service.directory = Mock(__truediv__=lambda _, name: Mock(exists=lambda: name == LOCK and looks.pop(0)))
    monkeypatch.setattr("adaptor.daemon.service._LOOK", 0.0)
    asyncio.run(service._watch_folder())
    assert not looks
