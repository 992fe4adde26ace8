"""Serving clients: one question, one answer."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec

from adaptor import __version__, api
from adaptor.advice import SeenQueue, advise
from adaptor.api.question import A, decode_question
from adaptor.daemon.client import bags, credits, keys, pictures, plans, site_views, starts, steering
from adaptor.daemon.client.admission import Admission
from adaptor.daemon.client.credits import forecast_view, why_paused
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.core import Background
from adaptor.daemon.removed_sites import removed_pilots, view_of
from adaptor.daemon.server import ClientIdentity, PeerMessage
from adaptor.decisions.pilots import expected_start
from adaptor.errors import AdaptorError, JournalError, UsageError
from adaptor.journal.queries import answer
from adaptor.journal.views import Live
from adaptor.scheduling.demand import waiting_shapes

HANDLING = (bags, credits, keys, pictures, plans, site_views, starts, steering)
"""Modules whose functions answer what the journal does not."""
_LARGE = 250_000  # bytes that take some 10 ms to decode
_AT_ONCE = 8  # questions of one key with a grant that are answered at a time, at most
USER = ClientIdentity()


def understood(data: bytes, *, same: bool = True) -> api.Question[Any] | api.Failure:
    """The question that a client has sent; `same`: whether the client speaks our `PROTOCOL`."""
    try:
        return decode_question(data, same=same)
    except msgspec.DecodeError as error:
        if same:
            return api.Failure(f"the daemon does not understand this question: {error}", usage=True)
        return api.Failure(
            f"the daemon has version {__version__}, and this command another one: use the adaptor of that"
            " version, or end the daemon: adaptor daemon stop"
        )


async def serve(
    running: RunningDaemon,
    question: api.Question[Any],
    who: ClientIdentity = USER,
    admission: Admission | None = None,
) -> object:
    """The answer to one question, or its Failure. Raises JournalError.

    `admission` of clients with a grant; None: there are none.
    """
    try:
        if not who.key:
            if isinstance(question, api.Open):
                question = msgspec.structs.replace(question, owner="")
            return await _answered(running, question)
        assert admission is not None
        key, question = admission.admit(who.key, question)
        return admission.shown(key, question, await _answered(running, question))
    except UsageError as error:
        return api.Failure(str(error), usage=True)


async def _answered(running: RunningDaemon, question: api.Question[A]) -> A:
    handler = answers.of(type(question))
    if handler is None:
        return _read(running, question)
    if question.writes and running.stalled:
        raise AdaptorError(f"the daemon cannot write its journal now: {running.stalled}")
    answered = handler(running, question)
    found: A = await answered if inspect.isawaitable(answered) else answered
    return found


def _read(running: RunningDaemon, question: api.Question[A]) -> A:
    """Answer by the journal, with the facts that only the daemon knows."""
    core = running.core
    return answer(core.journal.connection, question, core.now(), core.treasury.ledger, LiveDaemon(running))


class LiveDaemon(Live):
    """The running daemon's facts for the views of one answer."""

    priced = True

    def __init__(self, running: RunningDaemon) -> None:
        self._core, self._sites = running.core, running.sites
        self._started: dict[int, Mapping[int, float | None]] = {}

    def bag(self, view: api.BagView) -> api.BagView:
        """A task that a worker holds in reserve still waits, as its user sees it."""
        started = min(view.running, len(self._core.broker.started(view.id)))
        paused, forecast = why_paused(self._core, view), forecast_view(self._core, view)
        waiting = view.waiting + view.running - started
        now, shapes = self._core.now(), waiting_shapes(self._core.broker.state, view.id)
        found = {
            f"{site.name}: {why}": None
            for site in self._sites.values()
            for shape in shapes.get(site.name, ())
            if (why := site.memory.problem or site.memory.why_failed(shape, now))
        }
        held_off = "; ".join(found)
        return msgspec.structs.replace(
            view, running=started, waiting=waiting, paused=paused, held_off=held_off, forecast=forecast
        )

    def task(self, view: api.TaskView) -> api.TaskView:
        """The view of a task, with facts that only the daemon knows while the task runs."""
        if view.state != "running":
            return view
        if view.bag not in self._started:
            self._started[view.bag] = self._core.broker.started(view.bag)
        started = self._started[view.bag]
        if view.task not in started:
            return msgspec.structs.replace(view, state="waiting", attempts=max(0, view.attempts - 1))
        return msgspec.structs.replace(view, started=started[view.task])

    def pilot(self, record: api.PilotRecord) -> api.PilotRecord:
        site = self._sites.get(record.site)
        pilot = site.pilots.get(record.id) if site else None
        workers, now = self._core.broker.of_pilot(record.id), self._core.now()
        expected = expected_start(pilot, site.memory.seen, now) if site and pilot else None
        running = min(record.wasted, sum(worker.held.running_seconds(now) for worker in workers))
        return msgspec.structs.replace(
            record,
            running=running,
            wasted=record.wasted - running,
            workers=len(workers),
            note=pilot.note if pilot else "",
            expected=expected,
        )

    def removed(self) -> list[api.RemovedPilotView]:
        return [view_of(pilot) for pilot in removed_pilots(self._core)]


@answers(api.GetAdvice)
async def _advice(running: RunningDaemon, question: api.GetAdvice) -> api.AdviceView:
    """Advice by the free slots of the queues as they were last read."""
    told = _read(running, question)
    queues = [
        SeenQueue(site.memory.rules, site.memory.seen)
        for name, site in running.sites.items()
        if site.memory.seen is not None and (not told.measured.sites or name in told.measured.sites)
    ]
    return msgspec.structs.replace(told, lines=await asyncio.to_thread(advise, told.measured, queues))


@answers(api.GetDaemon)
def _daemon(running: RunningDaemon, _: api.GetDaemon) -> api.DaemonView:
    return running.view()


@answers(api.GetUpkeep)
def _upkeep(running: RunningDaemon, _: api.GetUpkeep) -> api.UpkeepView:
    return running.upkeep()


@answers(api.Stop)
def _stop(running: RunningDaemon, question: api.Stop) -> None:
    running.stop(pilots=question.pilots)


@answers(api.Reload)
async def _reload(running: RunningDaemon, _: api.Reload) -> api.Reloading:
    return await running.reload()


@answers(api.Forget)
def _forget(running: RunningDaemon, question: api.Forget) -> int:
    return running.retention.forget(question.bags)


log = logging.getLogger(__name__)


class ClientEndpoint:
    def __init__(
        self,
        running: RunningDaemon,
        stall: Callable[[Exception], None],
        send: Callable[[bytes, bytes], None],
        connected: Callable[[bytes], bool],
        reads: Callable[[bytes], Awaitable[bool]],
    ) -> None:
        """`reads`: waits until a client has read what was sent; returns whether it is connected."""
        self._running = running
        self._stall = stall
        self._send = send
        self._connected = connected
        self._reads = reads
        self._background = Background()  # questions that are answered while others are
        self._admission = Admission(running.core)
        self._at_once: Counter[str] = Counter()
        """Questions of each key with a grant that are not answered yet."""
        self._followers: Counter[tuple[bytes, int]] = Counter()
        """Questions that follow a bag, by program and bag."""

    @property
    def followed(self) -> set[int]:
        """The bags that a connected program follows; one that has ended may have a question left."""
        return {bag for identity, bag in self._followers if self._connected(identity)}

    async def receive(self, batch: list[PeerMessage]) -> None:
        for identity, data in batch:
            who = ClientIdentity.of(identity)
            if len(data) > _LARGE:  # a new bag
                self._background.start(self._take_in(identity, who, data))
                continue
            question = understood(data, same=who.same)
            if isinstance(question, api.Failure):
                self._tell(identity, question)
            elif question.takes_time:
                self._background.start(self._answer(identity, who, question))
            else:
                await self._answer(identity, who, question)

    async def _take_in(self, identity: bytes, who: ClientIdentity, data: bytes) -> None:
        question = await asyncio.to_thread(understood, data, same=who.same)
        if isinstance(question, api.Failure):
            self._tell(identity, question)
        else:
            await self._answer(identity, who, question)

    async def _answer(self, identity: bytes, who: ClientIdentity, question: api.Question[Any]) -> None:
        self._at_once[who.key] += 1
        following: api.Question[Any] | None = question
        bags = question.since if isinstance(question, api.GetEvents) and question.follow else ()
        followed = [(identity, bag) for bag in bags]
        self._followers.update(followed)
        try:
            while following is not None:
                answer = await self._attempt(who, following)
                self._tell(identity, answer)
                following = await self._following(identity, following, answer)
        finally:
            self._at_once[who.key] -= 1
            self._followers.subtract(followed)
            self._followers = +self._followers

    async def _attempt(self, who: ClientIdentity, question: api.Question[Any]) -> object:
        """The answer; any failure is one too."""
        try:
            if who.key and self._at_once[who.key] > _AT_ONCE:
                raise AdaptorError(f"this key has asked {_AT_ONCE} questions that are not answered yet")
            return await serve(self._running, question, who, self._admission)
        except JournalError as error:
            self._stall(error)
            return api.Failure(str(error))
        except AdaptorError as error:
            return api.Failure(str(error))
        except Exception as error:
            log.exception("a question could not be served")
            if question.writes:  # its changes so far may not be written
                self._stall(error)
            return api.Failure(f"internal error in the daemon: {error!r}; see daemon.log")

    async def _following(
        self, identity: bytes, question: api.Question[Any], answer: object
    ) -> api.Question[Any] | None:
        """The next question of a client that follows bags, once it has read the answer; None: none."""
        if not (isinstance(question, api.GetEvents) and question.follow) or isinstance(answer, api.Failure):
            return None
        following = question.after(cast("list[api.BagEvents]", answer))
        return following if following is not None and await self._reads(identity) else None

    def _tell(self, identity: bytes, answer: object) -> None:
        self._send(identity, api.encode_answer(answer))
