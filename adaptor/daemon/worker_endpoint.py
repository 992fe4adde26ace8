"""Handle what workers send (Hello, Report, Goodbye), and workers that fall silent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial

import msgspec

from adaptor import __version__
from adaptor.crafting.heuristics import is_narrow
from adaptor.daemon.core import Background, Core
from adaptor.daemon.server import PeerMessage
from adaptor.daemon.site import Site
from adaptor.decisions.pilots import Arrival, Pilot
from adaptor.errors import JournalError
from adaptor.model import AttemptOutcome
from adaptor.protocol.messages import (
    BagRemark,
    FromWorker,
    Goodbye,
    Hello,
    Leaving,
    Orders,
    Report,
    ToWorker,
    Welcome,
    decode_from_worker,
    says_goodbye,
)
from adaptor.reports import OwnJob
from adaptor.runtimes.known import ALIKE
from adaptor.scheduling.broker import NO_TIME, NO_WORK
from adaptor.scheduling.changes import AttemptEnd, AttemptStart, Changes
from adaptor.scheduling.lost_workers import SILENT
from adaptor.scheduling.workers import Worker
from adaptor.units import format_duration, shortened
from backends.base import SchedulerError

log = logging.getLogger(__name__)

HEARTBEAT = 5.0  # seconds between a worker's reports, at most
WORKER_PATIENCE = 300.0  # seconds that an idle worker waits for a silent daemon
_DONATED_PATIENCE = 60.0  # the same on a donated node: without a daemon, nothing can free it
STARTED_TOGETHER = 2.0
"""Seconds after the first call from a pilot at which the site is looked at, where polls are rarer: pilots
that started with it have called by then, so fewer tasks wait, and without any the queue is not read."""
LOOKS_FOR_AN_END = (2.0, 5.0)
"""Seconds after the last worker of a pilot has left at which the site is looked at, where polls are rarer and
the end was not seen yet: a scheduler needs a moment to note the end of the job, and its epilog longer."""
_HANGS = (
    "the worker on {worker.node} hangs or was stopped: it has said nothing for {silence}, though its machine"
    " answers; its tasks start elsewhere"
)
_OWN_PAUSE = 10.0
"""Seconds without a look for silent workers, of which there is one each second, after which this daemon did
not run itself: it was stopped, or could not write its journal."""
_MOST_REMARKS, _LONGEST_REMARK = 10, 1000
"""Remarks of one report that are kept, and letters of a remark."""
_ROUND_TRIPS = 6
"""Round trips of a slow transport that are added to the timeout before a worker counts as lost."""


def _look_in(site: Site, seconds: float, pilot: int) -> bool:
    """Look at a site after `seconds` if the pilot is still there; False: a poll comes earlier."""
    if seconds >= site.memory.settings.poll:
        return False
    asyncio.get_running_loop().call_later(seconds, _look_for, site, pilot)
    return True


def _look_for(site: Site, pilot: int) -> None:
    if pilot in site.pilots:
        site.wake.set()


class WorkerEndpoint:
    def __init__(self, core: Core, sites: dict[str, Site], stall: Callable[[JournalError], None]) -> None:
        self._core = core
        self._sites = sites
        self._stall = stall
        self._background = Background()
        self._looked: float | None = None  # epoch seconds of the last look for silent workers
        self._awake_since = float("-inf")
        self._estimates: dict[tuple[int, str], float] = {}
        """Estimated runtime for which the site was woken last, by bag and site."""
        self._remarks = set[tuple[int, str]]()  # those of workers that are written

    async def hear(self, batch: list[PeerMessage]) -> None:
        """Take in what workers say, write it down, then answer."""
        try:
            greetings = [greeting for message in batch if (greeting := self._hear(*message))]
            changes = await self._core.commit()
            for worker, welcome in greetings:
                await self._core.send(worker, welcome)
            await self.follow_up(changes)
        except JournalError as error:
            self._stall(error)

    async def follow_up(self, changes: Changes) -> None:
        """Mark pilots that worked; at rest, wake the sites and dismiss workers. Raises JournalError."""
        for id in {start.pilot for start in changes.attempts if isinstance(start, AttemptStart)}:
            self._change(id, worked=True)
        self._note_estimates({end.key.bag for end in changes.attempts if isinstance(end, AttemptEnd)})
        if changes.at_rest:
            learners = self._core.broker.state.learners
            self._estimates = {key: known for key, known in self._estimates.items() if key in learners}
            self._remarks = {known for known in self._remarks if known[0] in self._core.broker.state.bags}
            for site in self._sites.values():
                site.wake.set()
                self._core.broker.send_home(site.name)
            await self._core.commit()

    def _note_estimates(self, bags: Collection[int]) -> None:
        """Wake the sites at which the estimated runtime of one of these bags has changed: what was requested
        was made for another one."""
        state = self._core.broker.state
        for bag in bags:
            for name, site in self._sites.items():
                if (learner := state.learners.get((bag, name))) is None:
                    continue
                known, estimate = self._estimates.get((bag, name), 0.0), learner.estimate
                if max(known, estimate) > ALIKE * min(known, estimate):
                    self._estimates[bag, name] = estimate
                    site.wake.set()

    async def miss_silent(self, timeout: float) -> None:
        """Workers that have said nothing for `timeout` seconds are lost. Raises JournalError.

        To be called each second. After a pause of the daemon itself, all workers get this time again.
        """
        now = self._core.now()
        looked, self._looked = self._looked, now
        if looked is not None and now - looked > _OWN_PAUSE:
            log.warning("the daemon itself did not run for %.0f s: workers are waited for", now - looked)
            self._awake_since = now
        if now - self._awake_since < timeout:
            return
        silent = [
            worker
            for worker in self._core.broker.silent(now - timeout)
            if worker.seen < self._heard_until(worker.site, now) - timeout
        ]
        for worker in silent:
            log.warning(
                "worker %s has been silent for %.0f s: its tasks go back", worker.id, now - worker.seen
            )
            site = self._sites.get(worker.site)
            how = "" if (site is None or site.heard_until(now) < now - timeout) else SILENT
            hangs = site is not None and self._hangs(site, worker)
            self._core.broker.lost(worker.id, AttemptOutcome.LOST, worker.seen, now, how)
            # Behind a cut network a worker goes on with its tasks, and its pilot is kept longer.
            self._change(worker.pilot, fell_silent=not hangs)
            if site is not None and hangs:
                silence = format_duration(now - worker.seen)
                site.explain("problem", _HANGS.format(worker=worker, silence=silence), worker.pilot)
            if worker.site in self._sites:  # it may have left the configuration
                self._sites[worker.site].wake.set()
        if silent:
            await self.follow_up(await self._core.commit())

    def _hangs(self, site: Site, worker: Worker) -> bool:
        """Whether a silent worker is stopped or hangs, and not behind a cut network.

        Where a tunnel of ours is in between, the machine that answers is this one.
        """
        return site.remote_folder is None and self._core.server.machine_answers(worker.id)

    def _heard_until(self, name: str, now: float) -> float:
        """Epoch seconds before which whatever workers of a site have sent would have been heard by now.

        The silence that is allowed is longer while the daemon itself cannot receive.
        """
        site = self._sites.get(name)
        if site is None:  # it has left the configuration
            return now
        on_the_way = _ROUND_TRIPS * 2 * self._core.terms[name].latency
        return max(site.heard_until(now), now - WORKER_PATIENCE) - on_the_way

    def _hear(self, identity: bytes, data: bytes) -> tuple[str, ToWorker] | None:
        """Take in one message; the greeting, if any, is sent once the journal is written."""
        worker = identity.decode(errors="replace")
        now = self._core.now()
        try:
            message: FromWorker = decode_from_worker(data)
        except msgspec.DecodeError as error:
            log.warning("worker %s sent a message that cannot be decoded: %s", worker, error)
            if says_goodbye(data):
                self._bid_farewell(worker, Goodbye(why=Leaving.TOLD), now)
            return worker, Orders(leave=f"the daemon of version {__version__} cannot decode its messages")
        match message:
            case Hello():
                return (worker, self._greet(worker, message, now))
            case Report():
                self._pass_on(worker, message.remarks)  # the results may end the bag
                self._core.broker.report(worker, message, now)
                if self._core.broker.lacks_time(worker, now):
                    self._core.broker.tell_to_leave(worker, NO_TIME)
                elif self._core.broker.lacks_work(worker) and self._is_narrow(worker):
                    self._core.broker.tell_to_leave(worker, NO_WORK)
            case Goodbye():
                self._bid_farewell(worker, message, now)
        return None

    def _pass_on(self, id: str, remarks: Sequence[BagRemark]) -> None:
        """Keep what a worker says of bags for `adaptor why`; of what several say, the first."""
        worker = self._core.broker.state.workers.get(id)
        site = None if worker is None else self._sites.get(worker.site)
        if site is None:
            return
        for remark in remarks[:_MOST_REMARKS]:
            text = shortened(remark.text) if len(remark.text) > _LONGEST_REMARK else remark.text
            if remark.bag in self._core.broker.state.bags and (remark.bag, text) not in self._remarks:
                self._remarks.add((remark.bag, text))
                site.explain("problem", text, bags=(remark.bag,))

    def _is_narrow(self, worker: str) -> bool:
        """Whether another pilot is made as soon as a task waits again: so none idles until `idle_timeout`."""
        site = self._sites.get(self._core.broker.state.workers[worker].site)
        return site is not None and is_narrow(site.config.heuristic, site.memory.limits.in_system)

    def _greet(self, id: str, hello: Hello, now: float) -> ToWorker:
        site, pilot = self._find(hello.pilot)
        if site is None or pilot is None:
            self._core.hear_late(hello.unacknowledged, now)
            told = [result.key for result in hello.unacknowledged]
            return Orders(acknowledged=told, leave=f"pilot {hello.pilot} is not in the system any more")
        if pilot.first_hello is None and not _look_in(site, STARTED_TOGETHER, pilot.id):
            site.wake.set()
        before = pilot.state
        asked = (short.asked for short in hello.shortfalls if short.resource == "processors")
        pilot = site.memory.keep(
            pilot.heard(now, hello.node, Arrival(max(asked, default=hello.processors), hello.shortfalls))
        )
        if pilot.state is not before:
            site.write_down(pilot)  # the scheduler's word on it comes after all submits of this step
        if hello.holding:
            site.memory.change(pilot, worked=True)
        self._core.forget_worker(id)
        broker = self._core.broker
        site.memory.meter(broker, pilot, self._core.treasury.ledger)
        broker.hello(id, hello, site.name, now)
        broker.send_home_if_useless(id)
        return Welcome(
            heartbeat=HEARTBEAT + 2 * self._core.terms[site.name].latency,
            idle_timeout=float(site.config.idle_timeout),
            grace_time=site.grace_of(pilot),
            patience=_DONATED_PATIENCE if pilot.node else WORKER_PATIENCE,
            acknowledged=[result.key for result in hello.unacknowledged],
            shell=site.config.shell or "",
            node_folder=site.config.node_folder or "",
        )

    def _bid_farewell(self, id: str, goodbye: Goodbye, now: float) -> None:
        worker = self._core.broker.goodbye(id, goodbye.why, goodbye.results, now)
        if worker is None:
            self._core.hear_late(goodbye.results, now)
            return
        log.info("worker %s leaves: %s", id, goodbye.why.value)
        site = self._sites.get(worker.site)
        if site is None:  # it has left the configuration
            return
        pilot = site.pilots.get(worker.pilot)
        if pilot is not None and pilot.node and goodbye.why is Leaving.SIGNAL:
            site.memory.change(pilot, yielded=goodbye.took)
        last = not self._core.broker.of_pilot(worker.pilot)
        looks = [seconds for seconds in LOOKS_FOR_AN_END if last and _look_in(site, seconds, worker.pilot)]
        if not looks or (pilot is not None and pilot.node):
            site.wake.set()  # else the scheduler cannot know yet that the job ends
        told = goodbye.why is Leaving.TOLD and self._core.broker.has_work_in(worker.pilot, worker.site)
        if goodbye.why is Leaving.IDLE or told:
            self._background.start(self._release(site, worker))

    async def _release(self, site: Site, worker: Worker) -> None:
        try:
            await release_node(site, worker)
        except JournalError as error:
            self._stall(error)

    def _find(self, pilot_id: int) -> tuple[Site | None, Pilot | None]:
        for site in self._sites.values():
            if pilot_id in site.pilots:
                return site, site.pilots[pilot_id]
        return None, None

    def _change(self, pilot_id: int, **fields: bool) -> None:
        site, pilot = self._find(pilot_id)
        if site is not None and pilot is not None:
            site.memory.change(pilot, **fields)


async def release_node(site: Site, worker: Worker) -> None:
    """A worker has left its node and its pilot goes on: give the node back where that can be done.

    Raises JournalError: it was given back, and that could not be written down.
    """
    pilot = site.pilots.get(worker.pilot)
    others = any(other.node != worker.node for other in site.core.broker.of_pilot(worker.pilot))
    if not site.backend.can_release or pilot is None or pilot.job is None or not others:
        return
    job = OwnJob(pilot.job, pilot.tag)
    try:
        await asyncio.to_thread(lambda: site.backend.release(job, [worker.node]))
    except SchedulerError as error:
        log.info("node %s of pilot %d was not given back: %s", worker.node, pilot.id, error)
        return
    now, treasury = site.core.now(), site.core.treasury
    gone = round(worker.processors * pilot.holds / pilot.request.p)
    charge = partial(treasury.give_back, pilot=pilot, processors=gone, at=now)
    site.core.journal.note_freed(pilot.id, gone, now, charge)
    site.explain("state", f"gave node {worker.node} back: no task was left for it", pilot.id)
