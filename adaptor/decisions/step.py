"""One step of a site: its order, and what its actions do. A generator without I/O.

It yields what its driver is to ask, to do or to write down, and is sent the answers. The daemon drives it
with `await`, the simulation with calls; neither knows the order. Times are epoch seconds.
"""

from __future__ import annotations

import enum
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Protocol, TypeAlias

import msgspec

from adaptor.budget.accounting.ledger import Ledger
from adaptor.crafting.situation import Reshape, ShapeAt, Withdraw, Withhold
from adaptor.decisions.actions import (
    Action,
    End,
    Explain,
    GiveBack,
    GiveUp,
    LengthenPad,
    Remark,
    SubmitRequest,
    Wake,
    WithdrawStuck,
    WithholdNodes,
)
from adaptor.decisions.decide import Decision
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilots import Pilot, miss, observe
from adaptor.decisions.site_memory import SiteMemory
from adaptor.model import Limits, PilotState, QueueState
from adaptor.protocol.messages import Result
from adaptor.reports import JobReport, NodeReport
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.workers import Worker
from adaptor.units import counted, format_duration


class Ask(enum.Enum):
    """What a step asks for; the field of `Reply` with this name has the answer."""

    LIMITS = enum.auto()
    PILOTS = enum.auto()
    NODES = enum.auto()
    QUEUE = enum.auto()
    DECISION = enum.auto()
    """`decide`, by a snapshot that is taken for it."""


class Cancel(msgspec.Struct, frozen=True):
    """Order the scheduler to end these jobs."""

    jobs: tuple[str, ...]


class UseNodes(msgspec.Struct, frozen=True):
    """Submit pilots for donated nodes, several at a time where that helps."""

    submits: tuple[SubmitRequest, ...]


class PilotChanged(msgspec.Struct, frozen=True):
    """Write the state of a pilot down."""

    pilot: Pilot
    lost: tuple[Worker, ...] = ()
    """The workers that ended with it."""


class PilotsObserved(msgspec.Struct, frozen=True):
    """All pilots were observed: write down what became of their tasks, and charge those that ended."""

    ended: tuple[int, ...]


class PilotNews(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler says of a pilot, and what its workers left behind."""

    pilot: int
    report: JobReport | None
    """None: the scheduler does not name it."""
    results: Sequence[Result] = ()
    complaints: str | None = None
    """Of workers that could not reach the daemon; None: its folder was not read."""
    last_words: str = ""
    """Of its log."""


class Answer(enum.Enum):
    """What became of a request, of a change, or of an order to cancel."""

    TAKEN = enum.auto()
    REFUSED = enum.auto()
    """By the scheduler, or because a budget does not hold it: another request may be taken."""
    NONE = enum.auto()
    """The scheduler failed."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question; None: the scheduler does not answer."""

    now: float
    limits: Limits | None = None
    pilots: Sequence[PilotNews] | None = None
    """Those of which something is known now."""
    nodes: Sequence[NodeReport] | None = None
    midnight: float = 0.0
    """Some local midnight, of an answer with nodes."""
    queue: QueueState | None = None
    decision: Decision | None = None
    answer: Answer = Answer.TAKEN
    problem: str = ""
    """Why a donated node could not be used; empty: all could."""


Question: TypeAlias = Ask | Cancel | UseNodes | PilotChanged | PilotsObserved | Action
Steps = Generator[Question, Reply, None]


class Common(Protocol):
    """What all sites of a driver share."""

    decided: Memory
    """What the last decision of any site leaves for the next one."""

    @property
    def broker(self) -> Broker: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def sites(self) -> Mapping[str, SiteMemory]: ...


class Step:
    """One step of one site."""

    def __init__(self, common: Common, site: SiteMemory, now: float) -> None:
        self._common, self._site, self._now = common, site, now
        self._refused: set[ShapeAt] = set()
        """The shapes of tasks for which no formal request was taken, with the partition."""
        self._failed = False  # whether the scheduler failed at a formal request
        self._node_problem = ""

    def run(self) -> Steps:
        """The whole step: observe, decide, act. A scheduler that does not answer changes nothing."""
        site, broker = self._site, self._common.broker
        site.keep_failures(broker)
        if not (site.pilots or broker.has_work_for(site.name)):
            site.read(None)
            return
        yield from self._observe()
        decision = (yield from self._ask(Ask.DECISION)).decision
        assert decision is not None
        self._common.decided = decision.memory
        site.submits(decision.submits)
        yield from self.act(decision.actions)

    def _ask(self, question: Question) -> Generator[Question, Reply, Reply]:
        reply = yield question
        self._now = reply.now
        return reply

    # --- observing ---------------------------------------------------------------------------------

    def _observe(self) -> Steps:
        """Limits, pilots, nodes and queue, as far as the decision needs them."""
        site, broker = self._site, self._common.broker
        if not site.limits_known:
            yield from self._learn_limits()
        yield from self.observe_pilots()
        yield from self.cancel_unwanted()
        site.expect_requests(broker)
        if site.wants_nodes(broker, self._now):
            reply = yield from self._ask(Ask.NODES)
            site.saw_nodes(broker, reply.nodes, reply.now, reply.midnight)
        waits = any(demand.waiting for demand in broker.demands(site.name))
        site.read((yield from self._ask(Ask.QUEUE)).queue if waits else None)

    def _learn_limits(self) -> Steps:
        limits = (yield from self._ask(Ask.LIMITS)).limits
        if limits is None:
            return
        self._site.know_limits(limits)
        self._site.set_longest(self._common.broker)
        known = (
            f"its limits are known now: {limits.max_pending_requests} requests of {limits.max_proc} "
            f"processors for {format_duration(limits.max_tr)}"
        )
        yield from self._ask(Explain("state", known))

    def observe_pilots(self) -> Steps:
        """What became of the pilots: one bulk question."""
        if not self._site.pilots:
            return
        reply = yield from self._ask(Ask.PILOTS)
        if reply.pilots is None:
            return
        ended = []
        for news in reply.pilots:
            yield from self._observe_pilot(self._site.pilots[news.pilot], news)
            if news.pilot not in self._site.pilots:
                ended.append(news.pilot)
        self._site.watch(self._common.broker, self._now)
        yield from self._ask(PilotsObserved(tuple(ended)))

    def _observe_pilot(self, pilot: Pilot, news: PilotNews) -> Steps:
        site, broker = self._site, self._common.broker
        if news.report is None:
            settle_time = 2 * site.settings.command_timeout + 60
            alive = bool(broker.of_pilot(pilot.id))
            seen = miss(pilot, self._now, alive=alive, settle_time=settle_time)
        else:
            seen = observe(pilot, news.report, self._now)
        if news.complaints is not None and not seen.notes:
            seen = seen.but(unheard=news.complaints)
        seen = site.learn_wait(site.keep(seen))
        site.meter(broker, seen, self._common.ledger)
        if not seen.state.in_system:
            yield from self._ended(seen, news)
        elif (seen.state, seen.job, seen.started) != (pilot.state, pilot.job, pilot.started):
            yield from self._ask(PilotChanged(seen))

    def _ended(self, pilot: Pilot, news: PilotNews) -> Steps:
        """Take in what a pilot left behind, and put its tasks back."""
        site, broker = self._site, self._common.broker
        if news.results:
            broker.left_behind(pilot.id, site.name, news.results, self._now)
        words = news.complaints or news.last_words
        if pilot.state is PilotState.FAILED and words not in pilot.end_reason:
            pilot = pilot.but(end_reason=f"{pilot.end_reason}: {words}" if pilot.end_reason else words)
        lost = site.ended(broker, pilot, self._now)
        site.judge(broker, pilot, self._now)
        yield from self._ask(PilotChanged(pilot, tuple(lost)))
        yield from self._ask(Wake(site.name))

    # --- acting ------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> Steps:
        """Do as was decided, as long as the scheduler takes requests."""
        try:
            for for_nodes, together in groupby(
                actions, lambda action: isinstance(action, SubmitRequest) and bool(action.node)
            ):
                if for_nodes:
                    yield from self._use_nodes(together)
                    continue
                for action in together:
                    yield from self._do(action)
        finally:
            self._site.submits(())
        yield from self.cancel_unwanted()

    def cancel_unwanted(self) -> Steps:
        """Cancel the pilots that have a reason to go and are still there."""
        site, now = self._site, self._now
        pilots = [pilot for pilot in site.pilots.concerned if pilot.to_cancel(now)]
        unwanted = {pilot.job: pilot for pilot in pilots if pilot.job is not None}
        if unwanted and (yield from self._ask(Cancel(tuple(unwanted)))).answer is Answer.TAKEN:
            for pilot in unwanted.values():
                site.change(pilot, cancel_sent=now)
            yield from self._ask(Wake(site.name))

    def _do(self, action: Action) -> Steps:
        match action:
            case SubmitRequest():
                yield from self._submit(action)
            case Reshape():
                yield from self._reshape(action)
            case Withhold():
                if not self._refused and not self._failed:
                    yield from self._ask(action)
            case WithholdNodes():  # a step without a reason forgets it
                donation, reason = self._site.donation, self._node_problem or action.reason
                if donation is not None and reason != donation.reason:
                    donation.reason = reason
                    yield from self._ask(WithholdNodes(reason))
            case GiveUp():
                yield from self._give_up(action)
            case _:
                if self._changes(action):
                    yield from self._ask(action)

    def _changes(self, action: Action) -> bool:
        """Let an action change what is remembered of the site; whether that is to be written down."""
        match action:
            case Withdraw() | WithdrawStuck() | End():
                return self._site.withdraw(action, self._now) is not None
            case GiveBack():
                return self._site.give_back(self._common.broker, action) is not None
            case Remark():
                return self._site.remark(action) is not None
            case LengthenPad(pad):
                self._site.lengthen_pad(self._common.broker, pad)
        return True

    def _submit(self, action: SubmitRequest) -> Steps:
        yield from self.cancel_unwanted()
        shape = (action.demand.shape, action.crafted.partition)
        if not self._failed and shape not in self._refused:
            answer = (yield from self._ask(action)).answer
            self._failed = answer is Answer.NONE
            if answer is Answer.REFUSED:
                self._refused.add(shape)
        self._site.not_submitting([action])

    def _use_nodes(self, actions: Iterable[Action]) -> Steps:
        submits = tuple(action for action in actions if isinstance(action, SubmitRequest))
        yield from self.cancel_unwanted()
        self._node_problem = (yield from self._ask(UseNodes(submits))).problem or self._node_problem
        self._site.not_submitting(submits)

    def _reshape(self, action: Reshape) -> Steps:
        """Change a queued request, unless it has started meanwhile."""
        yield from self.cancel_unwanted()
        pilot = self._site.reshapable(action)
        if pilot is None:
            return
        answer = (yield from self._ask(action)).answer
        if answer is Answer.TAKEN:
            pilot = self._site.change(pilot, predicted_start=action.crafted.predicted_start)
            self._site.keep(pilot.reshaped_to(action.crafted.request, self._now))
        elif answer is Answer.REFUSED:
            self._site.change(pilot, fixed=True)

    def _give_up(self, action: GiveUp) -> Steps:
        if not (tasks := self._common.broker.give_up(action.bag, action.reason, action.task)):
            return
        yield from self._ask(action)
        told = f"bag {action.bag}: gave {counted(tasks, 'task')} up: {action.reason}"
        yield from self._ask(Explain("problem", told))
        for name in self._common.sites:
            yield from self._ask(Wake(name))
