"""One site's part of the daemon: its scheduler, its pilots, and what stands in the way."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from adaptor.backoff import Backoff
from adaptor.config.schema import SiteConfig
from adaptor.crafting.situation import Issue
from adaptor.daemon.core import Core
from adaptor.daemon.donation.memory import Lender
from adaptor.daemon.evidence import pilot_directory
from adaptor.daemon.learned_waits import learn_wait, recall_waits
from adaptor.daemon.pilots import Pilot
from adaptor.model import Limits, QueueState
from adaptor.protocol.access import worker_access
from backends.agents.agents import grace_of as grace_of_agents
from backends.base import Backend, SchedulerError
from backends.machines.base import Machine
from backends.machines.here import HERE

if TYPE_CHECKING:
    from adaptor.daemon.multisite import Peers
    from adaptor.daemon.remote.folder import RemoteFolder
    from adaptor.daemon.spool.endpoint import SpoolEndpoint

log = logging.getLogger(__name__)

T = TypeVar("T")

GRACE_OF_LEASES = 3.0
"""Seconds; less than what schedulers usually give a job that they preempt."""


class Withheld(msgspec.Struct):
    """The last reason for not making a request, so that it is told once."""

    text: str = ""
    row: int | None = None
    """Where it stands in the journal."""


class SiteState:
    def __init__(
        self,
        name: str,
        config: SiteConfig,
        backend: Backend,
        limits: Limits,
        core: Core,
        machine: Machine = HERE,
        *,
        limits_known: bool = True,
    ) -> None:
        """`limits_known`: False where `limits` only stand for some that could not be asked yet."""
        self.name = name
        self.config = config
        self.backend = backend
        self.limits = limits
        self.limits_known = limits_known
        self.core = core
        self.tag_prefix = f"adaptor-{core.journal.instance}.{name}."
        """What the tags of its pilots begin with, and of no other site's."""
        self.machine = machine
        """Where its scheduler's commands run and its pilots' files lie."""
        self.remote_folder: RemoteFolder | None = None
        """Of a site behind ssh: its folder there."""
        self.spool: SpoolEndpoint | None = None
        """The daemon's end of its spool, if its workers use one."""
        self.pilots: dict[int, Pilot] = {}
        """Those in the system."""
        self.queue: QueueState | None = None
        """As last seen; None while nothing waits, or while the scheduler does not answer."""
        self.seen: QueueState | None = None
        """As last seen, however long ago that was."""
        self.problem = ""
        """Why the scheduler does not answer; empty: it does."""
        self.problem_since: float | None = None
        """Since when it has not answered; None: it does."""
        self.asked: float | None = None
        """When the question was asked that it has not answered yet; None: there is none."""
        self.wake = asyncio.Event()
        self.pad = float(config.pad)
        """As configured, or more where the start-up of pilots was seen to take longer."""
        self.withheld = Withheld()
        self.refusals = Backoff(first=30, most=900)
        self.fruitless = Backoff(first=60, most=3600, tolerated=2)
        """Pilots in a row that never ran a task."""
        self.paused: dict[int | None, str] = {}
        """By bag: why its budget, or that of the site, holds no request; None: for all that share pilots."""
        self.intended: tuple[Issue, ...] = ()
        """Requests that are decided and not yet submitted."""
        self.waits = recall_waits(core.journal, name)
        self.lender = Lender(core.journal, name, config.donation) if config.donation else None
        """Where idle nodes are lent: what is known of them."""
        self.peers: Peers | None = None
        """The other sites that serve the same bags; None: it is alone."""
        self._one_question = asyncio.Lock()

    @property
    def leases(self) -> list[Pilot]:
        """The pilots by which nodes are lent."""
        return [pilot for pilot in self.pilots.values() if pilot.node]

    @property
    def requests(self) -> list[Pilot]:
        """The pilots of formal requests."""
        return [pilot for pilot in self.pilots.values() if not pilot.node]

    @property
    def active(self) -> bool:
        """Whether there is anything to observe or to decide."""
        return bool(self.pilots) or self.core.broker.has_work_for(self.name)

    def refusals_of(self, pilot: Pilot) -> Backoff:
        """The failures of formal requests, or of leases: one does not stand in the way of the other."""
        return self.lender.refusals(pilot.node) if pilot.node and self.lender is not None else self.refusals

    def fruitless_of(self, pilot: Pilot) -> Backoff:
        """As `refusals_of`, for pilots in a row that never ran a task."""
        return self.lender.fruitless if pilot.node and self.lender is not None else self.fruitless

    def grace_of(self, pilot: Pilot) -> float:
        """Seconds that its workers have for ending their tasks; for a lease's a local job waits."""
        grace, donation = float(self.config.grace_time), self.config.donation
        if not pilot.node or donation is None:
            return grace
        return min(grace, grace_of_agents(donation) if donation.mode == "agent" else GRACE_OF_LEASES)

    def heard_until(self, now: float) -> float:
        """Epoch seconds up to which all that its workers have sent has been heard."""
        if self.spool is not None:
            return self.spool.heard_until
        return now if self.remote_folder is None else self.remote_folder.heard_until(now)

    def load_pilots(self) -> None:
        """The pilots in the system, as the journal has them."""
        now = time.time()
        rows = self.core.journal.pilots_in_system()
        self.pilots = {row.id: Pilot.from_row(row, now) for row in rows if row.site == self.name}

    async def ask(self, question: Callable[[], T]) -> T | None:
        """The answer of the scheduler, in a thread; None if it has none, and then `problem` says why."""
        async with self._one_question:
            asked = self.asked = time.time()
            try:
                answer = await asyncio.to_thread(question)
            except SchedulerError as error:
                self._unanswered(str(error), asked)
                return None
            finally:
                self.asked = None
        self.problem, self.problem_since = "", None
        return answer

    def _unanswered(self, problem: str, asked: float) -> None:
        if problem != self.problem:
            self.explain("problem", problem)
        self.problem = problem
        self.problem_since = self.problem_since or asked

    def silence(self, now: float) -> float:
        """Seconds for which the scheduler has owed an answer."""
        since = [each for each in (self.problem_since, self.asked) if each is not None]
        return now - min(since) if since else 0.0

    async def cancel(self, jobs: Collection[str]) -> bool:
        """End these jobs; whether the scheduler took the order."""

        def cancel() -> bool:
            self.backend.cancel(jobs)
            return True

        return await self.ask(cancel) is not None

    @property
    def home(self) -> Path:
        """What holds the folders of its pilots, on its machine."""
        return self.core.directory if self.remote_folder is None else self.remote_folder.folder

    @property
    def access(self) -> Path:
        """Where its workers find how to reach the daemon."""
        folder = self.remote_folder
        return self.home / worker_access(self.name) if folder is None else folder.access

    def folder(self, pilot: Pilot) -> Path:
        return pilot_directory(self.home, pilot.id)

    def note_change(self, pilot: Pilot) -> None:
        """Write a pilot's state down, and learn from its wait. Raises JournalError."""
        learn_wait(self.waits, pilot)
        self.core.journal.update_pilot(
            pilot.id,
            state=pilot.state,
            job=pilot.job,
            started=pilot.started,
            ended=pilot.ended,
            end_reason=pilot.end_reason,
            yielded=pilot.yielded,
        )
        log.info("pilot %d (%s) is %s %s", pilot.id, pilot.job, pilot.state.value, pilot.end_reason)

    def explain(self, kind: str, text: str, pilot: Pilot | None = None, replacing: int | None = None) -> int:
        """Keep a decision or an event for `adaptor why`; its row in the journal."""
        if replacing is None:
            log.info("%s: %s%s: %s", self.name, kind, f" pilot {pilot.id}" if pilot else "", text)
        about = pilot.id if pilot else None
        return self.core.journal.explain(time.time(), self.name, kind, text, pilot=about, replacing=replacing)
