"""One site's part of the daemon: its scheduler, its pilots, and what stands in the way."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

import msgspec

from adaptor.config import SiteConfig
from adaptor.daemon.backoff import Backoff
from adaptor.daemon.core import Core
from adaptor.daemon.evidence import pilot_directory
from adaptor.daemon.pilots import Pilot
from adaptor.model import Limits, QueueState
from backends.base import Backend, SchedulerError

log = logging.getLogger(__name__)

T = TypeVar("T")


class Withheld(msgspec.Struct):
    """The last reason for not making a request, so that it is told once."""

    text: str = ""
    row: int | None = None
    """Where it stands in the journal."""


class SiteState:
    def __init__(self, name: str, config: SiteConfig, backend: Backend, limits: Limits, core: Core) -> None:
        self.name = name
        self.config = config
        self.backend = backend
        self.limits = limits
        self.core = core
        self.tag_prefix = f"adaptor-{core.journal.instance}.{name}."
        """What the tags of its pilots begin with, and of no other site's."""
        self.pilots: dict[int, Pilot] = {}
        """Those in the system."""
        self.queue: QueueState | None = None
        """As last seen; None while nothing waits, or while the scheduler does not answer."""
        self.problem = ""
        """Why the scheduler does not answer; empty: it does."""
        self.wake = asyncio.Event()
        self.pad = float(config.pad)
        """As configured, or more where the start-up of pilots was seen to take longer."""
        self.withheld = Withheld()
        self.refusals = Backoff(first=30, most=900)
        self.fruitless = Backoff(first=60, most=3600, tolerated=2)
        """Pilots in a row that never ran a task."""

    @property
    def active(self) -> bool:
        """Whether there is anything to observe or to decide."""
        return bool(self.pilots) or self.core.broker.has_work_for(self.name)

    def load_pilots(self) -> None:
        """The pilots in the system, as the journal has them."""
        now = time.time()
        rows = self.core.journal.pilots_in_system()
        self.pilots = {row.id: Pilot.from_row(row, now) for row in rows if row.site == self.name}

    async def ask(self, question: Callable[[], T]) -> T | None:
        """The answer of the scheduler, in a thread; None if it has none, and then `problem` says why."""
        try:
            answer = await asyncio.to_thread(question)
        except SchedulerError as error:
            if str(error) != self.problem:
                self.explain("problem", str(error))
            self.problem = str(error)
            return None
        self.problem = ""
        return answer

    async def cancel(self, jobs: Collection[str]) -> bool:
        """End these jobs; whether the scheduler took the order."""

        def cancel() -> bool:
            self.backend.cancel(jobs)
            return True

        return await self.ask(cancel) is not None

    def folder(self, pilot: Pilot) -> Path:
        return pilot_directory(self.core.directory, pilot.id)

    def note_change(self, pilot: Pilot) -> None:
        """Write a pilot's state down. Raises JournalError."""
        self.core.journal.update_pilot(
            pilot.id,
            state=pilot.state,
            job=pilot.job,
            started=pilot.started,
            ended=pilot.ended,
            end_reason=pilot.end_reason,
        )
        log.info("pilot %d (%s) is %s %s", pilot.id, pilot.job, pilot.state.value, pilot.end_reason)

    def explain(self, kind: str, text: str, pilot: Pilot | None = None, replacing: int | None = None) -> int:
        """Keep a decision or an event for `adaptor why`; its row in the journal."""
        if replacing is None:
            log.info("%s: %s%s: %s", self.name, kind, f" pilot {pilot.id}" if pilot else "", text)
        about = pilot.id if pilot else None
        return self.core.journal.explain(time.time(), self.name, kind, text, pilot=about, replacing=replacing)
