"""What was written is brought to the disk, and what the disk says is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adaptor.daemon import timers
from adaptor.errors import JournalError


class FakeJournal:
    def __init__(self, written: list[bool]) -> None:
        self.written = written
        self.synced = 0

    def check_files(self) -> None:
        """They are there."""

    def is_to_sync(self) -> bool:
        return self.written.pop(0)

    def sync(self) -> None:
        self.synced += 1
        if self.synced == 2:
            raise JournalError("Input/output error")


def test_it_is_synced_where_something_was_written_and_a_failure_stalls_the_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timers, "PAUSE", 0.0)
    journal: Any = FakeJournal([False, True, False, True])
    told: list[Exception] = []

    async def run() -> None:
        task = asyncio.create_task(timers.keep_synced(journal, lambda: not told, told.append))
        while not (told or task.done()):
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(run())
    assert journal.synced == 2
    assert [str(error) for error in told] == ["Input/output error"]
