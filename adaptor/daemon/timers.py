"""Periodic work: by APScheduler, whose times are times of day; and the journal's way to the disk."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from adaptor.errors import JournalError
from adaptor.journal.journal import Journal


class Every(BaseTrigger):  # type: ignore[misc, unused-ignore]  # APScheduler has no types
    """An interval like APScheduler's that leaves out passed times at once instead of one by one.

    After a step of the clock by 400 days, a job of every second would keep the daemon busy for minutes.
    """

    def __init__(self, seconds: float) -> None:
        self._interval = datetime.timedelta(seconds=seconds)

    def get_next_fire_time(
        self, previous_fire_time: datetime.datetime | None, now: datetime.datetime
    ) -> datetime.datetime:
        """The next time after `now` for a job that was due at `previous_fire_time`; None: never before."""
        following = (now if previous_fire_time is None else previous_fire_time) + self._interval
        return following if following > now else now + self._interval


def new_scheduler() -> AsyncIOScheduler:
    """One that runs a job once, however late, and never twice at a time."""
    return AsyncIOScheduler(job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None})


PAUSE = 1.0  # seconds between two looks


async def keep_synced(
    journal: Journal, may_write: Callable[[], bool], stall: Callable[[Exception], None]
) -> None:
    """Bring what was written to the disk, so that a power cut takes no more than a moment, until cancelled.

    A thread waits for the disk, which may be slow; `stall` gets its message, and that of a journal which is
    not in its place any more.
    """
    while True:
        await asyncio.sleep(PAUSE)
        if not may_write():
            continue
        try:
            journal.check_files()
            if journal.is_to_sync():
                await asyncio.to_thread(journal.sync)
        except JournalError as error:
            stall(error)
