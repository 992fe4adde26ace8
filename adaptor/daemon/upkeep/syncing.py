"""The journal reaches the disk soon after it was written, so that a power cut takes no more than a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adaptor.errors import JournalError
from adaptor.journal.journal import Journal

PAUSE = 1.0
"""Seconds between two looks."""


async def keep_synced(
    journal: Journal, may_write: Callable[[], bool], stall: Callable[[Exception], None]
) -> None:
    """Until cancelled. A thread waits for the disk, which may be slow; `stall` gets its message."""
    while True:
        await asyncio.sleep(PAUSE)
        if may_write() and journal.is_to_sync():
            try:
                await asyncio.to_thread(journal.sync)
            except JournalError as error:
                stall(error)
