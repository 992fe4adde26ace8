"""One site in the daemon: the ways to its scheduler and its workers, and what is remembered of it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from adaptor.api import ExplanationKind
from adaptor.config.schema import SiteConfig
from adaptor.crafting.futures.drawn_queue import ended_by
from adaptor.crafting.futures.run_shares import RunShares
from adaptor.crafting.multisite.waits import WaitLearner
from adaptor.crafting.situation import Demand
from adaptor.crafting.submissions import HOUR
from adaptor.daemon.core import Core
from adaptor.daemon.evidence import KEPT, pilot_directory
from adaptor.daemon.sites import settings_of
from adaptor.decisions.failures.size_memory import KeptSizes
from adaptor.decisions.forecasting.needed import bags_at_work, ends_of_pilots
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.decisions.site_memory import SiteMemory
from adaptor.forecast.starts_seen import StartsSeen
from adaptor.journal.damage import understood
from adaptor.journal.journal import Journal
from adaptor.journal.pilot_rows import (
    PilotRow,
    arrays_of,
    local_runs,
    pilot_waits,
    pilots_in_system,
    submitted_since,
    withdrawn_since,
)
from adaptor.model import Limits, PilotState, QueueState, Request
from adaptor.protocol.access import worker_access
from adaptor.protocol.keys import load_or_make_keys
from adaptor.units import counted
from backends.base import Backend, SchedulerError
from backends.donation import is_agent
from backends.machines.base import Machine
from backends.machines.here import HERE

if TYPE_CHECKING:
    from adaptor.daemon.remote.folder import RemoteFolder
    from adaptor.daemon.spool import SpoolEndpoint

log = logging.getLogger(__name__)

T = TypeVar("T")

_DIGITS = re.compile(r"[\d.]+")
_OUTDATED = "`donation` of its site has changed in the configuration, and no longer allows this pilot"


class Withheld(msgspec.Struct, frozen=True):
    """The last reason for not submitting a request, so that it is said once."""

    text: str = ""
    row: int | None = None  # row in the journal


class Site:
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
        poll: float = 1.0,
    ) -> None:
        """Make a site, as one of the sites of `core`.

        Args:
            limits_known: False: `limits` stand for some that could not be asked yet.
            poll: seconds between two looks at the queue.

        Raises JournalError: what was learned before cannot be read.
        """
        self.name = name
        self.config = config
        self.backend = backend
        self.core = core
        self.machine = machine  # machine of its scheduler's commands and its pilots' files
        self.tag_prefix = f"adaptor-{core.journal.instance}.{name}."
        """Common prefix of the tags of its pilots; pilots of other sites have another."""
        self.remote_folder: RemoteFolder | None = None  # of a site behind ssh: its folder there
        self.spool: SpoolEndpoint | None = None  # the daemon's end of its spool, if its workers use one
        self.withheld: dict[tuple[int, ...], Withheld] = {}  # by bags whose tasks wait
        self._nodes_withheld: int | None = None
        """Row in the journal of the reason for not using more donated nodes; None: no reason is kept."""
        self.memory = SiteMemory(
            settings_of(name, config, backend, limits, poll),
            core.now(),
            waits=recall_waits(core.journal, name),
            nodes=SeenNodes(core.journal.idleness(name)) if config.donation else None,
            limits_known=limits_known,
            jobs=recall_runs(core.journal, core.directory, name),
            sizes=recall_sizes(core.journal, name),
            submitted=core.journal.read(submitted_since, name, core.now() - HOUR),
            withdrawn=core.journal.read(withdrawn_since, name, core.now() - HOUR),
        )
        self.starts = StartsSeen(core.journal.starts_seen(name), self.memory.jobs.hashed)
        """Accuracy of earlier forecasts of starts, and the waits of jobs."""
        core.sites[name] = self.memory
        self.wake = core.wakes[name] = asyncio.Event()
        self.polled = False  # whether it was woken by nothing but the time that has passed
        self.looked = self.stirred = -math.inf
        """Seconds of the loop's clock: when it was last stepped, and when something last happened here."""
        self.queue_asked: float | None = None
        """Seconds of the loop's clock at which its queue was asked for last; None: it was not."""
        self.records_read = core.now()
        """Epoch seconds at which the records of ended jobs were read for last, or at which the site began."""
        self._one_question = asyncio.Lock()
        self._unanswered_questions = 0
        self._ended_in_arrays: list[Path] = []  # the folders of the pilots that ended last, oldest first
        self._told: set[str] = set()  # problems that the journal has, until the scheduler answers

    @property
    def pilots(self) -> Mapping[int, Pilot]:
        """The pilots in the system, by id."""
        return self.memory.pilots

    def grace_of(self, pilot: Pilot) -> float:
        """Seconds that its workers have for ending their tasks; a local job waits for a donated node."""
        grace, donation = float(self.config.grace_time), self.config.donation
        return min(grace, donation.grace) if pilot.node and donation is not None else grace

    def heard_until(self, now: float) -> float:
        """Epoch seconds up to which all that its workers have sent has been heard."""
        if self.spool is not None:
            return self.spool.heard_until
        return now if self.remote_folder is None else self.remote_folder.heard_until(now)

    def load_pilots(self) -> None:
        """The pilots in the system, as the journal has them. Raises JournalError."""
        now = self.core.now()
        rows = self.core.journal.read(pilots_in_system)
        with understood(self.core.journal.path):
            self.memory.know_pilots([_pilot(row, now) for row in rows if row.site == self.name])
        for pilot in self.memory.donated:
            self._end_if_outdated(pilot)

    def _end_if_outdated(self, pilot: Pilot) -> None:
        """A pilot on a donated node that was submitted by another configuration. Raises JournalError."""
        donation = self.memory.settings.donation
        of_agents = pilot.job is not None and is_agent(pilot.job)
        if donation is not None and not (of_agents and donation.preemptible):
            return
        # Only its workers can end an agent's pilot: this site has no agents any more.
        self.memory.change(pilot, leaving=_OUTDATED, job=None if of_agents else pilot.job)
        self.explain("withdrawn", _OUTDATED, pilot.id)

    async def ask(self, question: Callable[[], T], *, patient: bool = True) -> T | None:
        """The answer of the scheduler, in a thread; None: it has none, and `memory.problem` says why.

        `patient`: whether it is asked even if it did not answer the question before this one, for which this
        one has waited: a person need not wait for two.
        """
        memory, unanswered = self.memory, self._unanswered_questions
        async with self._one_question:
            if not patient and self._unanswered_questions > unanswered:
                return None
            asked = memory.asked_since = self.core.now()
            try:
                answer = await asyncio.to_thread(question)
            except SchedulerError as error:
                self._unanswered(str(error), asked)
                return None
            finally:
                memory.asked_since = None
        memory.problem, memory.problem_since = "", None
        self._told.clear()
        return answer

    async def look(self, *, patient: bool = True) -> QueueState | None:
        """The queue as the scheduler shows it; None: it does not answer. `patient`: whether it is asked even
        if it did not answer the question before."""
        self.queue_asked = asyncio.get_running_loop().time()
        queue = await self.ask(self.backend.queue_state, patient=patient)
        backend = self.backend
        self.memory.know_scheduler(
            backend.time_resolution,
            backend.slot_margin,
            shrink_margin=backend.shrink_margin,
            can_reshape=backend.can_reshape,
            most_in_array=backend.most_in_array,
            backfilled=backend.backfilled,
        )
        if queue is not None:
            self.starts.looked(queue)
        return queue

    def with_ends_of_pilots(self, queue: QueueState) -> QueueState:
        """The queue in which our pilots end when no bag needs them any more, at the latest, where that is
        known."""
        sites, bags = self.core.sites, bags_at_work(self.core.broker.state, self.core.decided.forecasts)
        pilots = {name: site.pilots.values() for name, site in sites.items()}
        needed = ends_of_pilots(queue, self.name, pilots, bags, queue.now)
        return ended_by(queue, {job: end.high + sites[at].settings.idle_timeout for at, job, end in needed})

    def _unanswered(self, problem: str, asked: float) -> None:
        memory = self.memory
        self._unanswered_questions += 1
        if problem not in self._told:
            self._told.add(problem)
            self.explain("problem", problem)
        memory.problem = problem
        memory.problem_since = memory.problem_since or asked

    @property
    def home(self) -> Path:
        """The folder that holds the folders of its pilots, on its machine."""
        return self.core.directory if self.remote_folder is None else self.remote_folder.folder

    @property
    def access(self) -> Path:
        """Path of the access file, from which its workers learn how to reach the daemon."""
        folder = self.remote_folder
        return self.home / worker_access(self.name) if folder is None else folder.access

    def folder(self, pilot: Pilot) -> Path:
        return pilot_directory(self.home, pilot.id, pilot.array)

    def ended_in_arrays(self, pilots: Collection[int]) -> list[Path]:
        """The folders of ended pilots that can go, while others of their arrays may be in the system.

        `pilots` have ended now. Those that ended before a restart go with the folders of their arrays.
        """
        arrays = self.core.journal.read(arrays_of, pilots)
        self._ended_in_arrays += [pilot_directory(self.home, *each) for each in arrays.items()]
        gone, self._ended_in_arrays = self._ended_in_arrays[:-KEPT], self._ended_in_arrays[-KEPT:]
        return gone

    def tag_of(self, pilot: int) -> str:
        return f"{self.tag_prefix}{pilot}"

    def write_down(self, pilot: Pilot) -> None:
        """Write what users are shown of a pilot into the journal. Raises JournalError."""
        self.core.journal.update_pilot(
            pilot.id,
            state=pilot.state,
            job=pilot.job,
            started=pilot.started,
            ended=pilot.ended,
            end_reason=pilot.end_reason,
            yielded=pilot.yielded,
            held=pilot.held,
        )
        log.info("pilot %d (%s) is %s %s", pilot.id, pilot.job, pilot.state.value, pilot.end_reason)

    def explain(
        self,
        kind: ExplanationKind,
        text: str,
        pilot: int | None = None,
        bags: tuple[int, ...] = (),
        *,
        replacing: int | None = None,
    ) -> int:
        """Keep a decision or an event for `adaptor why`; its row in the journal."""
        if replacing is None:
            about = f" pilot {pilot}" if pilot is not None else ""
            about += f" bags {bags}" if bags else ""
            log.info("%s: %s%s: %s", self.name, kind, about, text)
        return self.core.journal.explain(
            self.core.now(), self.name, kind, text, pilot=pilot, bags=bags, replacing=replacing
        )

    def withhold(self, reason: str, demand: Demand | None = None) -> None:
        """Keep why no request is made for the bags of a demand, or any; where only its numbers have changed,
        in place of the last reason."""
        bags = () if demand is None else tuple(sorted(demand.payers))
        last = self.withheld.get(bags, Withheld())
        if reason == last.text or (demand is not None and not bags):  # they no longer wait
            return
        same = _DIGITS.sub("", reason) == _DIGITS.sub("", last.text)
        row = self.explain("withheld", reason, bags=bags, replacing=last.row if same else None)
        self.withheld[bags] = Withheld(reason, row)

    def withhold_nodes(self, reason: str) -> None:
        """Keep why no more donated nodes are used, in place of the last reason; empty: there is none."""
        told = f"{counted(len(self.memory.donated), 'donated node')} in use, no more for now: {reason}"
        row = self.explain("withheld", told, replacing=self._nodes_withheld) if reason else None
        self._nodes_withheld = row


def recall_waits(journal: Journal, site: str) -> WaitLearner:
    """Learn the waits of earlier pilots of the site. Raises JournalError."""
    waits = WaitLearner()
    for each in journal.read(pilot_waits, site):
        waits.waited(each.p, each.predicted_start, each.started, each.ended, each.submitted, each.tr)
    return waits


def recall_sizes(journal: Journal, site: str) -> tuple[KeptSizes, ...]:
    """Read the sizes of requests that the scheduler did not take. Raises JournalError."""
    kept = journal.tried_sizes(site)
    return () if kept is None else msgspec.msgpack.decode(kept, type=tuple[KeptSizes, ...])


def recall_runs(journal: Journal, directory: Path, site: str) -> RunShares:
    """Read the known runtimes of a site's local jobs, as shares of their walltimes.

    The salt of users' names comes from the daemon's own key, which is no part of the journal.

    Raises:
        JournalError: the journal cannot be read.
        AccessError: the keys cannot be read.
    """
    secret = load_or_make_keys(directory).server.key.encode()
    salt = hashlib.blake2b(secret, digest_size=32, person=b"job owners").digest()
    return RunShares(journal.read(local_runs, site), salt)


def _pilot(row: PilotRow, now: float) -> Pilot:
    has_started = row.started is not None
    pilot = Pilot(
        id=row.id,
        tag=row.tag,
        request=Request(row.p, row.tr, row.least),
        submitted=min(row.submitted, now),  # the clock may have been set back
        predicted_start=row.predicted_start,
        state=PilotState(row.state),
        job=row.job,
        known_since=now,
        bag=row.bag,
        array=row.array,
        node=row.node,
        partition=row.partition,
        held=row.held,
        seen_running=has_started,
        wait_known=has_started,
    )
    return pilot.but(started=row.started, granted=row.tr)
