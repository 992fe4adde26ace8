"""One step of a site: its order, and what its actions do. A generator without I/O.

It yields what its driver is to ask, to do or to write down, and is sent the answers. The daemon drives it
with `await`, the simulation with calls; neither knows the order. Times are epoch seconds.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from itertools import groupby
from typing import Protocol

import msgspec

from adaptor.api import ExplanationKind
from adaptor.budget.accounting.ledger import Ledger
from adaptor.crafting.reasons import shown
from adaptor.crafting.situation import Reshape, ShapeAt, SubmitRequest, Withdraw, Withhold
from adaptor.decisions.actions import (
    Action,
    End,
    Explain,
    GiveUp,
    LengthenPad,
    Prolong,
    Remark,
    Wake,
    WithdrawStuck,
    WithholdNodes,
)
from adaptor.decisions.first_estimates import estimate_by_budgets
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilots import (
    Pilot,
    has_become,
    miss,
    moved_to,
    observe,
    request_told,
    told_end,
    told_ends,
)
from adaptor.decisions.questions import (
    Answer,
    Ask,
    Cancel,
    Commit,
    Intend,
    IntendChange,
    LeftBehind,
    PilotChanged,
    PilotNews,
    PilotsChanged,
    PilotsEnded,
    Question,
    Reply,
    RequestChanged,
    Steps,
    Submit,
    Together,
)
from adaptor.decisions.requests import billed
from adaptor.decisions.site_memory import SiteMemory
from adaptor.model import PilotState, Request
from adaptor.reports import JobReport, OwnJob
from adaptor.scheduling.broker import Broker
from adaptor.units import counted, folded, format_duration


class Common(Protocol):
    """State that all sites of a driver share."""

    decided: Memory
    """Memory that the last decision of any site leaves for the next one."""

    @property
    def broker(self) -> Broker: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def sites(self) -> Mapping[str, SiteMemory]: ...


def _done_with(action: Action) -> object:
    """Key that is equal for actions that are done together: submissions for nodes or of equal pilots,
    withdrawals for one reason, and equal remarks."""
    if isinstance(action, Withdraw):
        return "withdrawn", action.reason
    if isinstance(action, Remark):
        return "remarked", action.text
    if not isinstance(action, SubmitRequest):
        return None
    return "nodes" if action.node else action.alike


LONGEST = 30.0
"""Seconds after which no more donated nodes are used: what was seen of the nodes is old by then."""


class Step:
    """One step of one site."""

    def __init__(self, common: Common, site: SiteMemory, now: float) -> None:
        self._common, self._site, self._now = common, site, now
        self._refused: set[ShapeAt] = set()
        """The shapes of tasks for which no formal request was taken, with the partition."""
        self._failed = False  # whether the scheduler failed at a formal request
        self._ended_in_arrays: list[Pilot] = []  # seen to have ended, and not explained yet
        self._no_more_nodes = False
        self._node_problem = ""  # why a donated node could not be used; empty: all could

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
        waits = any(demand.wants_pilots for demand in broker.demands(site.name, self._now))
        site.read((yield from self._ask(Ask.QUEUE)).queue if waits else None)
        site.set_longest(broker)
        rules = {name: each.rules for name, each in self._common.sites.items()}
        queues = {name: each.seen for name, each in self._common.sites.items()}
        estimate_by_budgets(site.name, rules, queues, broker, self._common.ledger)
        for text in site.doubts():
            yield from self._ask(Explain("problem", text))

    def _learn_limits(self) -> Steps:
        limits = (yield from self._ask(Ask.LIMITS)).limits
        if limits is None:
            return
        self._site.know_limits(limits)
        self._site.set_longest(self._common.broker)
        known = (
            f"its limits are known now: {limits.in_system} requests of {limits.max_proc} "
            f"processors for {format_duration(limits.max_tr)}"
        )
        yield from self._ask(Explain("state", known))

    def observe_pilots(self) -> Steps:
        """Ask the scheduler one bulk question about the pilots, and act on the answer."""
        if not self._site.pilots:
            return
        reply = yield from self._ask(Ask.PILOTS)
        if reply.pilots is None:
            return
        if reply.strays:  # given up for lost, or never known: they must not run on unnoticed
            numbers = ", ".join(stray.id for stray in reply.strays)
            told = f"cancelled job {numbers}, which has a tag of this site and is no pilot any more"
            yield from self._ask(Explain("problem", told))
            yield from self._ask(Cancel(tuple(reply.strays)))
        ended, others = list[int](), list[Pilot]()
        for news in reply.pilots:
            if (pilot := self._site.pilots.get(news.pilot)) is None:
                continue
            changed = yield from self._observe_pilot(pilot, news)
            if news.pilot not in self._site.pilots:
                ended.append(news.pilot)
            elif changed is not None:
                others.append(changed)
        if others:
            yield from self._ask(PilotsChanged(tuple(others)))
        yield from self._explain_ends()
        self._site.watch(self._common.broker, self._now)
        yield from self._ask(Commit())
        if ended:
            yield from self._ask(PilotsEnded(tuple(ended)))

    def _observe_pilot(self, pilot: Pilot, news: PilotNews) -> Generator[Question, Reply, Pilot | None]:
        """Returns the pilot, if it is in the system and its state has yet to be written down."""
        site, broker, left = self._site, self._common.broker, news.left
        if news.report is None:
            settle_time = 2 * site.settings.command_timeout + 60
            alive = bool(broker.of_pilot(pilot.id))
            seen = miss(pilot, self._now, alive=alive, settle_time=settle_time, absence=news.absence)
        else:
            pilot = yield from self._take_in_request(pilot, news.report)
            pilot = yield from self._take_in_place(pilot, news.report)
            seen = observe(pilot, news.report, self._now)
        if left is not None and not seen.notes:
            seen = seen.but(unheard=left.complaints)
        seen = site.learn_wait(site.keep(seen))
        site.meter(broker, seen, self._common.ledger)
        if not seen.state.in_system:
            yield from self._ended(seen, left or LeftBehind())
            return None
        before = pilot.state, pilot.job, pilot.started, pilot.held
        return None if (seen.state, seen.job, seen.started, seen.held) == before else seen

    def _take_in_request(self, pilot: Pilot, report: JobReport) -> Generator[Question, Reply, Pilot]:
        """Take in what the scheduler says that a pilot asks for; returns the pilot as it is then."""
        reserved = self._common.ledger.open_pilots.get(pilot.id)
        if pilot.node or reserved is None:
            return pilot
        rules, held = self._site.rules, Request(reserved.p, reserved.tr)
        known = billed(rules, pilot.request)
        told = request_told(pilot, report, known, held)
        p = told.p if pilot.held is None else pilot.held
        if told != known:
            pilot = self._site.keep(pilot.reshaped_to(told, self._now))
            asked = msgspec.structs.replace(billed(rules, told), p=p)
            yield from self._ask(RequestChanged(pilot, asked))
            yield from self._ask(Explain("state", has_become(report, told, known), pilot.id))
        elif (p, told.tr) != (held.p, held.tr):
            yield from self._ask(RequestChanged(pilot, msgspec.structs.replace(told, p=p)))
        return pilot

    def _take_in_place(self, pilot: Pilot, report: JobReport) -> Generator[Question, Reply, Pilot]:
        """Take in that its owner or an operator has moved a pilot to another partition, where it counts."""
        partition = moved_to(pilot, report)
        if not partition or pilot.node:
            return pilot
        told = f"the scheduler has it in partition {partition}, no longer in {pilot.told_partition}"
        yield from self._ask(Explain("state", told, pilot.id))
        ours = partition in self._site.limits.partitions
        return self._site.change(pilot, partition=partition) if ours else pilot

    def _ended(self, pilot: Pilot, left: LeftBehind) -> Steps:
        """Take in what a pilot left behind, and put its tasks back."""
        site, broker = self._site, self._common.broker
        if left.results:
            time_up = pilot.state is PilotState.COMPLETED
            broker.left_behind(pilot.id, site.name, left.results, self._now, time_up=time_up)
        if pilot.state is PilotState.FAILED:
            pilot = pilot.but(end_reason=_why_failed(pilot, left))
        lost = site.ended(broker, pilot, self._now)
        site.judge(broker, pilot, self._now)
        if pilot.state is PilotState.WITHDRAWN and not pilot.node and pilot.array is None:
            site.submissions.take_back(pilot.submitted)
        yield from self._ask(PilotChanged(pilot, tuple(lost)))
        if pilot.state is not PilotState.WITHDRAWN:  # its end was explained with the decision
            if pilot.array is None:
                yield from self._ask(Explain("ended", told_end(pilot), pilot.id))
            else:
                self._ended_in_arrays.append(pilot)
        yield from self._ask(Wake(site.name))

    def _explain_ends(self) -> Steps:
        """One line for the pilots of an array that have ended in the same way."""
        alike = groupby(self._ended_in_arrays, lambda pilot: (pilot.array, pilot.state, pilot.end_reason))
        for _, pilots in alike:
            found = list(pilots)
            yield from self._ask(Explain("ended", told_ends(found), found[0].id))
        self._ended_in_arrays = []

    # --- acting ------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> Steps:
        """Do as was decided, as long as the scheduler takes requests."""
        try:
            for _, together in groupby(actions, _done_with):
                alike = list(together)
                submits = [action for action in alike if isinstance(action, SubmitRequest)]
                if submits and submits[0].node:
                    yield from self._use_nodes(submits)
                elif isinstance(alike[0], Remark):
                    yield from self._remark([action for action in alike if isinstance(action, Remark)])
                elif isinstance(alike[0], Withdraw):
                    yield from self._withdraw([action for action in alike if isinstance(action, Withdraw)])
                elif submits:
                    most = self._site.rules.most_in_array
                    for begin in range(0, len(submits), most):
                        yield from self._submit(submits[begin : begin + most])
                else:
                    for action in alike:
                        yield from self._do(action)
        finally:
            self._site.submits(())
        yield from self.cancel_unwanted()

    def cancel_unwanted(self) -> Steps:
        """Cancel the pilots that have a reason to go and are still there."""
        site, broker, now = self._site, self._common.broker, self._now
        pilots = [pilot for pilot in site.pilots.concerned if pilot.to_cancel(now)]
        unwanted = {OwnJob(pilot.job, pilot.tag): pilot for pilot in pilots if pilot.job is not None}
        if unwanted and (yield from self._ask(Cancel(tuple(unwanted)))).answer is Answer.TAKEN:
            for pilot in unwanted.values():
                site.change(pilot, cancel_sent=now)
            yield from self._ask(Wake(site.name))
        # What the scheduler cannot end, as it has no job of it, ends when its workers leave.
        leaving = {pilot.id: pilot.leaving for pilot in pilots if pilot.job is None}
        workers = [worker for id in leaving for worker in broker.of_pilot(id)]
        for worker in workers:
            broker.tell_to_leave(worker.id, leaving[worker.pilot])
        if workers:
            yield from self._ask(Commit())

    def _do(self, action: Action) -> Steps:
        match action:
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
            case Prolong():
                yield from self._prolong(action)
            case _:
                yield from self._change(action)

    def _change(self, action: Action) -> Steps:
        """Change what is remembered of the site, and say so."""
        match action:
            case WithdrawStuck() | End():
                if self._site.withdraw(action, self._now):
                    yield from self._ask(Explain("withdrawn", action.reason, action.pilot))
            case LengthenPad(pad):
                self._site.lengthen_pad(self._common.broker, pad)
            case _:
                yield from self._ask(action)

    def _remark(self, actions: Sequence[Remark]) -> Steps:
        """Note the same with pilots."""
        pilots = [action.pilot for action in actions if self._site.remark(action)]
        if pilots:
            of = "" if len(pilots) == 1 else f"{len(pilots)} pilots ({folded(pilots)}): "
            yield from self._ask(Explain("problem", f"{of}{actions[0].text}", pilots[0]))

    def _withdraw(self, actions: Sequence[Withdraw]) -> Steps:
        """Withdraw pilots for the same reason."""
        pilots = [action.pilot for action in actions if self._site.withdraw(action, self._now)]
        if pilots:
            of = "" if len(pilots) == 1 else f"{len(pilots)} pilots ({folded(pilots)}): "
            yield from self._ask(Explain("withdrawn", f"{of}{actions[0].reason}", pilots[0]))

    def _submit(self, array: Sequence[SubmitRequest]) -> Steps:
        """Submit equal pilots."""
        yield from self.cancel_unwanted()
        shape = (array[0].demand.shape, array[0].crafted.partition)
        if not self._failed and shape not in self._refused:
            answer = yield from self._submitted(array)
            self._failed = answer in (Answer.FAILED, Answer.UNCERTAIN)
            if answer is Answer.REFUSED:
                self._refused.add(shape)
        self._site.not_submitting(array)

    def _submitted(self, array: Sequence[SubmitRequest]) -> Generator[Question, Reply, Answer]:
        """Submit equal pilots, and take in what became of them. Their intent is written down first."""
        submit = array[0]
        pilots, problem = yield from self._intended(array)
        if not pilots:
            return Answer.REFUSED
        taken, tried, reply = yield from self._sent(pilots, submit)
        if taken:
            reason = submit.crafted.reason
            if len(taken) > 1:
                asked = shown(submit.crafted.request)
                reason = (
                    f"{len(taken)} pilots of {reason if reason.startswith(asked) else f'{asked}: {reason}'}"
                )
            yield from self._ask(Explain("issued", reason, taken[0].id, tuple(submit.demand.payers)))
        if tried:
            yield from self._not_submitted(pilots[len(taken) :], tried, submit, reply)
        return Answer.REFUSED if problem else reply.answer

    def _intended(
        self, array: Sequence[SubmitRequest]
    ) -> Generator[Question, Reply, tuple[list[Pilot], str]]:
        """The pilots that the budgets hold, and why they hold no more."""
        site, submit = self._site, array[0]
        asked = billed(site.rules, submit.crafted.request)
        intent = yield from self._ask(Intend(tuple(array), asked))
        if intent.problem:  # another site has spent it since this was decided
            yield from self._ask(Withhold(intent.problem, submit.demand))
        together = intent.pilot if len(intent.tags) > 1 else None
        pilots = [
            site.add_pilot(self._common.broker, intent.pilot + place, tag, each, self._now, together)
            for place, (tag, each) in enumerate(zip(intent.tags, array, strict=False))
        ]
        return pilots, intent.problem

    def _sent(
        self, pilots: Sequence[Pilot], submit: SubmitRequest
    ) -> Generator[Question, Reply, tuple[list[Pilot], list[Pilot], Reply]]:
        """The pilots that the scheduler has taken, those of the last submission that it has not, its answer.

        They are one submission. If the scheduler refuses it, one pilot is submitted alone. If that is taken,
        there were too many, and fewer of the others are submitted each time, until it refuses a single one.
        """
        site, taken = self._site, list[Pilot]()
        refused: int | None = None  # the size of the last submission that was refused
        while True:
            most = len(pilots) if refused is None else max(1, refused // 2) if taken else 1
            tried = list(pilots[len(taken) : len(taken) + most])
            if not submit.node:
                site.submissions.note(self._now)
            reply = yield from self._ask(Submit(tuple(tried), submit.demand))
            if reply.answer is Answer.TAKEN:
                found = [site.submitted(*each) for each in zip(tried, reply.jobs, strict=True)]
                taken += found
                yield from self._ask(PilotsChanged(tuple(found)))
                if len(taken) == len(pilots):
                    return taken, [], reply
            elif reply.answer is Answer.REFUSED and len(tried) > 1:
                refused = len(tried)
            else:
                return taken, tried, reply

    def _not_submitted(
        self, pilots: Sequence[Pilot], tried: Sequence[Pilot], submit: SubmitRequest, reply: Reply
    ) -> Steps:
        """The scheduler has not taken some pilots, or it is not known of those that were tried last."""
        site, payers = self._site, tuple(submit.demand.payers)
        refused, uncertain = reply.answer is Answer.REFUSED, reply.answer is Answer.UNCERTAIN
        if not refused:
            site.not_submitted(pilots[0], reply.problem, self._now)
        elif site.refused(pilots[0], submit, reply.remedy, reply.problem, self._now):
            yield from self._ask(Wake(site.name))
        if uncertain:
            note = f"whether the scheduler has it is not yet known: {reply.problem}"
            for pilot in tried:
                site.change(pilot, notes={"": note})
            yield from self._ask(Explain("problem", note, pilots[0].id))
        gone = pilots[len(tried) :] if uncertain else pilots
        for pilot in gone:
            site.forget(self._common.broker, pilot)
        if gone:
            over = (pilot.over(PilotState.REFUSED, self._now, reply.problem) for pilot in gone)
            yield from self._ask(PilotsChanged(tuple(over)))
        if not uncertain:
            kind: ExplanationKind = "refused" if refused else "problem"
            told = reply.problem if len(gone) == 1 else f"{len(gone)} pilots: {reply.problem}"
            yield from self._ask(Explain(kind, told, gone[0].id, payers))

    def _use_nodes(self, submits: Sequence[SubmitRequest]) -> Steps:
        yield from self.cancel_unwanted()
        until = self._now + LONGEST
        yield from self._ask(Together(tuple(self._use_node(submit, until) for submit in submits)))
        self._site.not_submitting(submits)

    def _use_node(self, action: SubmitRequest, until: float) -> Steps:
        """Submit a pilot for a node.

        What a scheduler says of one node it most likely says of all; agents fail one by one.
        """
        donation, settings = self._site.donation, self._site.settings.donation
        if self._no_more_nodes or donation is None or settings is None:
            return
        if self._now >= until:
            self._no_more_nodes = True
            yield from self._ask(Wake(self._site.name))
        elif (yield from self._submitted([action])) is not Answer.TAKEN:
            self._node_problem = f"{action.node} could not be used: {donation.refusals(action.node).reason}"
            self._no_more_nodes |= settings.preemptible or donation.failing.waiting(self._now)

    def _reshape(self, action: Reshape) -> Steps:
        """Change a queued request, unless it has started meanwhile."""
        yield from self.cancel_unwanted()
        site, crafted, pilot = self._site, action.crafted, self._site.reshapable(action)
        if pilot is None:
            return
        asked = billed(site.rules, crafted.request)
        intent = yield from self._ask(IntendChange(action, asked))
        if intent.problem:  # another site has spent it since this was decided
            yield from self._ask(Withhold(intent.problem, action.demand))
            return
        reply = yield from self._ask(action)
        if reply.answer is Answer.TAKEN:
            pilot = site.change(pilot, predicted_start=crafted.predicted_start)
            pilot = site.keep(pilot.reshaped_to(crafted.request, self._now))
            yield from self._ask(RequestChanged(pilot, asked, crafted.reason))
            yield from self._ask(Explain("reshaped", crafted.reason, pilot.id))
            return
        if reply.answer is Answer.REFUSED:
            site.change(pilot, fixed=True)
        told = f"its request is not changed as far as known: {reply.problem}"
        yield from self._ask(Explain("problem", told, pilot.id))
        yield from self._ask(Wake(site.name))

    def _prolong(self, action: Prolong) -> Steps:
        """Pay for more time of a pilot, unless another site has spent it since this was decided."""
        pilot = self._site.pilots.get(action.pilot)
        if pilot is None or pilot.leaving or (yield from self._ask(action)).problem:
            return
        self._site.meter(self._common.broker, pilot, self._common.ledger)
        yield from self._ask(Commit())

    def _give_up(self, action: GiveUp) -> Steps:
        if not (tasks := self._common.broker.give_up(action.bag, action.reason, action.task)):
            return
        yield from self._ask(Commit())
        told = f"gave {counted(tasks, 'task')} up: {action.reason}"
        yield from self._ask(Explain("problem", told, bags=(action.bag,)))
        for name in self._common.sites:
            yield from self._ask(Wake(name))


def _why_failed(pilot: Pilot, left: LeftBehind) -> str:
    """The scheduler's reason, the pilot's own words, and a way out if none of its workers has called."""
    words = left.complaints or left.last_words
    said = [pilot.end_reason] if words in pilot.end_reason else [pilot.end_reason, words]
    reason = ": ".join(filter(None, said))
    called = pilot.first_hello is not None or pilot.worked
    return reason if called else "; ".join(filter(None, (reason, left.way_out)))
