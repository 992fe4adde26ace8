"""Memory of one site between its steps: pilots, failures, waits, the pad. Pure.

The daemon and the simulation keep the same: both tell it what happened and when, and take snapshots of it.
Times are epoch seconds, and arguments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from adaptor.budget.accounting.ledger import Ledger
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.futures.run_shares import RunShares
from adaptor.crafting.multisite.waits import WaitLearner
from adaptor.crafting.nodes.schedule import why_by_processors
from adaptor.crafting.situation import Reshape, SiteRules, SubmitRequest, TaskShape, Withdraw
from adaptor.crafting.submissions import Submissions
from adaptor.decisions.actions import WAITS, End, Remark, WithdrawStuck
from adaptor.decisions.donation_memory import DonationMemory, Workers
from adaptor.decisions.failures.shape_backoffs import Failures, ShapeBackoffs
from adaptor.decisions.failures.size_memory import KeptSizes, SizeMemory
from adaptor.decisions.failures.tried_sizes import KEPT
from adaptor.decisions.held_off import why_failed
from adaptor.decisions.pilot_rules import covering_processors
from adaptor.decisions.pilots import LOSS_WORDS, Pilot, PilotTable, limited
from adaptor.decisions.requests import billed, is_least, smallest_to_try
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.decisions.site_settings import SiteSettings
from adaptor.decisions.snapshot import DonationFacts, SiteFacts
from adaptor.model import AttemptOutcome, Limits, PilotState, QueueState
from adaptor.reports import NodeReport, Remedy
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.losses import PilotEnd
from adaptor.scheduling.state import Meter
from adaptor.scheduling.workers import Worker

SLACK = 10.0
"""Seconds that a worker takes to hear that it is not needed and to leave, at most, besides its idle time."""
_OF_ITS_OWN = frozenset({PilotState.COMPLETED, PilotState.FAILED, PilotState.VANISHED, PilotState.WALLTIME})
"""Ends without a cause from outside."""


WITHDRAWN, WITHDRAWN_EACH = 1000, 20
"""Requests that are withdrawn in an hour at most where nothing is configured: in all, or for each that may
be in the system. Many narrow pilots are withdrawn as tasks finish in others; more than this helps no bag."""


class SiteMemory:
    def __init__(
        self,
        settings: SiteSettings,
        now: float,
        *,
        waits: WaitLearner | None = None,
        nodes: SeenNodes | None = None,
        limits_known: bool = True,
        submitted: Iterable[float] = (),
        withdrawn: Iterable[float] = (),
        jobs: RunShares | None = None,
        sizes: Iterable[KeptSizes] = (),
    ) -> None:
        """`waits`, `nodes`, `jobs` and `sizes`: what was learned before; `limits_known`: False where the
        limits only stand for some that could not be asked yet; `submitted` and `withdrawn`: when requests
        were sent and withdrawn before."""
        self.settings = settings
        self.name = settings.name
        self.rules = settings.rules
        """Rules by which requests are shaped, by present knowledge: the pad is longer than configured if the
        start-up of pilots was seen to take longer."""
        self.limits_known = limits_known
        self.pilots = PilotTable()  # pilots in the system
        self.queue: QueueState | None = None
        """The queue as read for this step; None: nothing waits, or the scheduler does not answer."""
        self.seen: QueueState | None = None  # last reading, however long ago that was
        self._doubts: set[str] = set()  # doubts that were explained already
        self.problem = ""  # why the scheduler does not answer; empty: it does
        self.problem_since: float | None = None  # since when it has not answered; None: it does
        self.asked_since: float | None = None
        """Epoch seconds of the start of the pending scheduler question; None: none is pending."""
        self.unreachable = ""  # why workers could not reach the daemon; empty: they can
        self.unreachable_because = ""
        """A likely reason why workers do not reach the daemon, as a question to the user; empty: none."""
        self.refusals = ShapeBackoffs(first=30, most=900)
        """Formal requests in a row that the scheduler did not take."""
        self.stuck = ShapeBackoffs(first=60, most=3600)
        """Pilots in a row that the scheduler took and did not start."""
        self.fruitless = ShapeBackoffs(first=60, most=3600, tolerated=2)
        """Pilots in a row that never ran a task."""
        self.sizes = SizeMemory(sizes)  # of formal requests that the scheduler did not take, or never starts
        self._backoffs = (self.refusals, self.stuck, self.fruitless)
        self.submissions = Submissions(settings.rules.max_submissions, submitted)
        """Submissions of formal requests in the last hour."""
        most = max(WITHDRAWN, WITHDRAWN_EACH * settings.rules.limits.in_system)
        self._withdrawals = Submissions(settings.rules.max_withdrawals or most, withdrawn)
        """Withdrawals of queued formal requests in the last hour."""
        self._submitting: dict[int, SubmitRequest] = {}
        """Requests that are decided and not yet submitted, by `id`."""
        self.waits = waits or WaitLearner()
        self.jobs = RunShares() if jobs is None else jobs  # shares of their time limits that local jobs run
        donation = settings.donation
        self.donation = DonationMemory(donation.rules, nodes or SeenNodes(), now) if donation else None
        """Memory of the donation; None: the site donates no nodes."""

    @property
    def limits(self) -> Limits:
        return self.rules.limits

    @property
    def own_jobs(self) -> set[str]:
        """The scheduler's ids of our pilots in the system."""
        return {pilot.job for pilot in self.pilots.values() if pilot.job is not None}

    def know_limits(self, limits: Limits) -> None:
        """The scheduler has said what its limits are."""
        if self.limits_known and limits != self.rules.limits:
            self.sizes.forget()
        self.rules, self.limits_known = msgspec.structs.replace(self.rules, limits=limits), True

    def know_scheduler(
        self,
        time_resolution: int,
        slot_margin: int,
        *,
        shrink_margin: int | None,
        can_reshape: bool,
        most_in_array: int,
        backfilled: int | None,
    ) -> None:
        """Take over the scheduler's first answer: its roundings, the part of a free slot that it needs,
        whether it starts requests with less, changes them in its queue and takes arrays, and how many it
        backfills."""
        self.rules = msgspec.structs.replace(
            self.rules,
            time_resolution=time_resolution,
            slot_margin=slot_margin,
            shrink_margin=shrink_margin,
            most_in_array=most_in_array,
            backfilled=backfilled,
            may_reshape=can_reshape and self.rules.may_withdraw,
        )

    @property
    def submitting(self) -> tuple[SubmitRequest, ...]:
        """Requests that are decided and not yet submitted."""
        return tuple(self._submitting.values())

    def submits(self, submits: Iterable[SubmitRequest]) -> None:
        """Note that these requests are decided, and that none of earlier steps is left."""
        self._submitting = {id(submit): submit for submit in submits}

    @property
    def requests(self) -> tuple[Pilot, ...]:
        """The pilots of formal requests."""
        return tuple(self.pilots.requests.values())

    @property
    def donated(self) -> tuple[Pilot, ...]:
        """The pilots on donated nodes."""
        return tuple(self.pilots.donated.values())

    def read(self, queue: QueueState | None) -> None:
        """The queue was read for this step; None: the scheduler does not answer, or nothing waits."""
        self.queue = queue
        self.seen = queue or self.seen
        if queue is not None:
            self.jobs.looked(queue, self.own_jobs)

    def doubts(self) -> list[str]:
        """Why the queue may be misread, each reason once: the scheduler has said what its backend does not
        know, or a long one is planned by processors alone."""
        if self.queue is None:
            return []
        reasons = [*self.queue.unknown, *filter(None, [why_by_processors(self.queue)])]
        found = [text for text in reasons if text not in self._doubts]
        self._doubts.update(found)
        return found

    def keep_failures(self, broker: Broker) -> None:
        """Forget what failed for tasks of which none are left."""
        shapes = broker.shapes(self.name)
        for backoffs in self._backoffs:
            backoffs.keep(shapes)

    def next_try(self, now: float) -> float:
        """Epoch seconds of the next try of formal requests that are held off after failures; `math.inf`: none
        are."""
        ends = [end for backoffs in self._backoffs for end in backoffs.ends if end > now]
        return min(ends, default=math.inf)

    @property
    def failures(self) -> Failures:
        return Failures(
            refused=self.refusals.holdoffs, stuck=self.stuck.holdoffs, fruitless=self.fruitless.holdoffs
        )

    def why_failed(self, shape: TaskShape, now: float) -> str:
        """Why no request for tasks of a shape is made now; empty: one may be made."""
        why = why_failed(self.rules, self.failures, limited(self.requests), shape, now)
        return why or self.submissions.why_none(now) or self.sizes.why_smaller(shape[0], now)

    # --- what a decision looks at ----------------------------------------------------------------

    def facts(self, workers: Workers, now: float, midnight: float) -> SiteFacts:
        """The site as it is now. `workers` are by pilot, of any site; `midnight` is some local midnight."""
        for pilot in self.pilots.concerned:
            self.keep(_with_workers(pilot, workers.get(pilot.id, {}).values(), now))
        return SiteFacts(
            now=now,
            name=self.name,
            rules=self._rules_now(now),
            heuristic=self.settings.heuristic,
            queue=self.seen,
            requests=self.requests,
            donated=self.donated,
            unsettled=tuple(self.pilots.unsettled.values()),
            submitting=self.submitting,
            waits=self.waits.copy(),
            jobs=self.jobs.copy(),
            failures=self.failures,
            tried=self.sizes.at(now),
            submissions=self.submissions.left_at(now, self._coming_submissions()),
            unusable=self._unusable(),
            unreachable_because=self.unreachable_because,
            problem_since=self.problem_since,
            asked_since=self.asked_since,
            command_timeout=self.settings.command_timeout,
            poll=self.settings.poll,
            donation=self._donation_facts(workers, now, midnight),
        )

    def _coming_submissions(self) -> int:
        """Number of submissions for the formal requests that are decided."""
        formal = (submit for submit in self.submitting if not submit.node)
        arrays = (sum(1 for _ in alike) for _, alike in groupby(formal, lambda submit: submit.alike))
        return sum(math.ceil(pilots / self.rules.most_in_array) for pilots in arrays)

    def _rules_now(self, now: float) -> SiteRules:
        """The rules with the limits that the scheduler allows now.

        Requests are not withdrawn for better ones where one step could withdraw more than are left.
        """
        rules, left = self.rules, self._withdrawals.left_at(now).left
        if self.seen is not None:
            rules = msgspec.structs.replace(rules, limits=rules.limits.within(self.seen))
        if left is None or left >= sum(pilot.state is PilotState.QUEUED for pilot in self.requests):
            return rules
        return msgspec.structs.replace(rules, may_withdraw=False)

    def _unusable(self) -> str:
        if not self.limits_known:
            return self.problem or "its limits are not known yet"
        return f"its workers could not reach the daemon: {self.unreachable}" if self.unreachable else ""

    def _donation_facts(self, workers: Workers, now: float, midnight: float) -> DonationFacts | None:
        settings, memory = self.settings.donation, self.donation
        if settings is None or memory is None:
            return None
        return DonationFacts(
            now=now,
            rules=settings.rules,
            preemptible=settings.preemptible,
            longest=float(settings.max_tr or self.limits.max_tr),
            hazard=memory.seen.learner.hazard,
            idleness=memory.seen.learner.idleness,
            known=memory.seen.reports,
            asked=memory.asked,
            nodes=memory.views(self.pilots, workers, now),
            midnight=midnight,
            fruitless=memory.fruitless.holdoff,
            failing=memory.failing.holdoff,
        )

    # --- what actions do to it -------------------------------------------------------------------

    def add_pilot(
        self, broker: Broker, id: int, tag: str, submit: SubmitRequest, now: float, array: int | None = None
    ) -> Pilot:
        """A request is about to be submitted; `array`: the first pilot of those that are with it."""
        crafted, bag = submit.crafted, submit.demand.bag
        pilot = self.pilots[id] = Pilot(
            id=id,
            tag=tag,
            state=PilotState.SUBMITTING,
            request=crafted.request,
            granted=crafted.request.tr,
            submitted=now,
            known_since=now,
            predicted_start=crafted.predicted_start,
            bag=bag,
            array=array,
            node=submit.node,
            shape=submit.demand.shape,
            partition=crafted.partition,
        )
        self.not_submitting([submit])
        broker.made_for(id, submit.demand.task)
        if bag is not None:
            broker.own_pilot(id, bag)
        if self.donation is not None and submit.node:
            broker.use_node(id, self.donation.node_of(pilot))
        elif submit.demand.largest_in(crafted.partition) is not None or self._bounds_work:
            broker.state.suppose_at_most(self.name, crafted.request.tr - self.rules.pad)
        return pilot

    @property
    def _bounds_work(self) -> bool:
        """Whether the scheduler bounds processors times time, so that a request is as long as it can be."""
        allowed = self.seen.allowances if self.seen is not None else []
        return any(min(each.max_work, each.work_left.value) < math.inf for each in allowed)

    def not_submitting(self, submits: Iterable[SubmitRequest]) -> None:
        """Note that these requests have pilots from now on, or will have none."""
        for submit in submits:
            self._submitting.pop(id(submit), None)

    def change(self, pilot: Pilot, **fields: Any) -> Pilot:
        """The pilot as it is by now, with other values of these fields; one that has left is not kept."""
        return self.keep(self.pilots.get(pilot.id, pilot).but(**fields))

    def keep(self, pilot: Pilot) -> Pilot:
        """The pilot as it is from now on; one that has left is not kept."""
        known = self.pilots.get(pilot.id)
        if known is not None and known is not pilot:
            self.pilots[pilot.id] = pilot
            if pilot.held is not None and known.held is None and not pilot.node:
                self._learn_rounding(pilot.held / billed(self.rules, pilot.request).p)
        return pilot

    def _learn_rounding(self, held: float) -> None:
        """A pilot holds this number of processors for each that it asked for."""
        if held > self.rules.held_each:
            self.rules = msgspec.structs.replace(self.rules, held_each=held)

    def know_pilots(self, pilots: Iterable[Pilot]) -> None:
        """Take these pilots as those in the system."""
        self.pilots = PilotTable()
        for pilot in pilots:
            self.pilots[pilot.id] = pilot

    def submitted(self, pilot: Pilot, job: str) -> Pilot:
        """Note that the scheduler took a pilot's request."""
        if pilot.node and self.donation is not None:
            self.donation.submitted(pilot.node)
        else:
            self.refusals.succeeded(pilot.asked)
        pilot = self.change(pilot, job=job)
        return self.change(pilot, state=PilotState.QUEUED) if pilot.state is PilotState.SUBMITTING else pilot

    def not_submitted(self, pilot: Pilot, reason: str, now: float) -> None:
        """The scheduler did not take it, or gave no clear answer."""
        if pilot.node and self.donation is not None:
            self.donation.not_submitted(pilot.node, reason, now)
        else:
            self.refusals.failed(None, now, reason)

    def refused(self, pilot: Pilot, submit: SubmitRequest, remedy: Remedy, reason: str, now: float) -> bool:
        """The scheduler was asked and said no, which speaks against the request and not against the site.

        Returns whether a smaller one is to be tried at once.
        """
        if pilot.node:
            self.not_submitted(pilot, reason, now)
            return False
        queue = self.seen and self.seen.in_partition(pilot.partition)
        shape = RequestShape.for_demand(self.rules.in_partition(pilot.partition), queue, submit.demand)
        asked = billed(self.rules, pilot.request)
        self.sizes.failed(pilot, asked, remedy, reason, now + KEPT)
        last = is_least(asked, smallest_to_try(shape, submit.demand), remedy)
        self.refusals.failed(pilot.asked, now, reason, pauses=last)
        return not last

    def forget(self, broker: Broker, pilot: Pilot) -> None:
        """The pilot is no longer in the system, and its results were taken in."""
        if pilot.id in self.pilots:
            del self.pilots[pilot.id]
        broker.forget_pilot(pilot.id)
        if self.donation is not None:
            self.donation.forget(pilot.id)

    def withdraw(self, action: Withdraw | WithdrawStuck | End, now: float) -> bool:
        """Mark a pilot to end; False: it has left, is leaving, or has started meanwhile."""
        pilot = self.pilots.get(action.pilot)
        if pilot is None or pilot.leaving:
            return False
        if pilot.state is PilotState.RUNNING and not isinstance(action, End):
            return False
        if isinstance(action, WithdrawStuck) and not pilot.node:
            asked, until = billed(self.rules, pilot.request), now + action.kept
            self.sizes.failed(pilot, asked, action.remedy, action.reason, until)
            if action.last:
                self.stuck.failed(pilot.asked, now, action.reason)
        if pilot.state is PilotState.QUEUED and not pilot.node:
            self._withdrawals.note(now)
        if isinstance(action, End) and action.avoid_node and self.donation is not None:
            self.donation.waited_in_vain(pilot.node, now)
        self.change(pilot, leaving=action.reason)
        return True

    def reshapable(self, action: Reshape) -> Pilot | None:
        """The pilot to change; None: it has left, is leaving, or has started meanwhile."""
        pilot = self.pilots.get(action.pilot)
        queued = pilot is not None and pilot.state is PilotState.QUEUED and pilot.job is not None
        return pilot if queued and pilot is not None and not pilot.leaving else None

    def remark(self, action: Remark) -> bool:
        """Note the remark; False: it is known, the pilot has left, or a worker has called meanwhile."""
        pilot = self.pilots.get(action.pilot)
        if pilot is None or (not action.about and pilot.first_hello is not None):
            return False
        notes = {about: text for about, text in pilot.notes.items() if about != action.about or action.text}
        if action.text:
            notes[action.about] = action.text
        unheard = None if action.text and not action.about else pilot.unheard
        self.change(pilot, notes=notes, unheard=unheard)
        known = pilot.notes.get(action.about)
        return bool(action.text) and (known is None or (action.about == WAITS and known != action.text))

    def lengthen_pad(self, broker: Broker, pad: float) -> None:
        """Pilots start up more slowly than the pad says."""
        self.rules = msgspec.structs.replace(self.rules, pad=pad)
        self.set_longest(broker)

    def set_longest(self, broker: Broker) -> None:
        """Tell the broker the longest task of this site, which the scheduler may bound at each look."""
        if not self.limits_known:
            return
        limits = self.limits
        if self.seen is not None:
            limits = msgspec.structs.replace(limits, max_tr=limits.longest(self.seen))
        longest = msgspec.structs.replace(self.rules, limits=limits).longest_task
        broker.state.set_longest(self.name, longest)

    # --- donated nodes -----------------------------------------------------------------------------

    def wants_nodes(self, broker: Broker, now: float) -> bool:
        """Whether to ask for the nodes in this step: one is used, or a task may run on one."""
        if self.donation is None:
            return False
        if not self.pilots.donated and not broker.donation_demands(self.name):
            self.donation.look_away()
            return False
        self.donation.before_looking(self.pilots, now)
        return True

    def saw_nodes(
        self, broker: Broker, reports: Sequence[NodeReport] | None, now: float, midnight: float
    ) -> None:
        """Take in what the scheduler says of the nodes, None: it does not answer; and tell the broker.

        `midnight` is some local midnight.
        """
        if self.donation is None:
            return
        workers = broker.state.workers.by_pilot
        for pilot in self.donation.observe(reports, self.pilots, workers, now, midnight):
            self.keep(pilot)
        if reports is not None:
            broker.learn_hazard(self.name, self.donation.seen.learner.hazard)
            for id, node in self.donation.changed_nodes(self.pilots).items():
                broker.use_node(id, node)

    def expect_requests(self, broker: Broker) -> None:
        """Tell the broker when the next formal requests are predicted to start, and what the nodes are."""
        if self.seen is not None:
            broker.state.queues[self.name] = self.seen
        starts: dict[int | None, float] = {}
        for pilot in self.requests:
            at = pilot.predicted_start
            if pilot.started is None and not pilot.leaving and at is not None:
                starts[pilot.bag] = min(at, starts.get(pilot.bag, at))
        broker.expect_requests(self.name, starts)

    # --- what observations do to it --------------------------------------------------------------

    def watch(self, broker: Broker, now: float) -> None:
        """Note which running pilots of formal requests have a worker that reports, or could have one."""
        heard = broker.state.workers.by_pilot
        for pilot in self.requests:
            self.keep(pilot.watched(now, heard=pilot.id in heard or bool(self.unreachable)))
            if pilot.state is PilotState.RUNNING:
                self.stuck.succeeded(pilot.asked)
                self.sizes.started(pilot, billed(self.rules, pilot.request))

    def meter(self, broker: Broker, pilot: Pilot, ledger: Ledger) -> None:
        """Tell the broker since when and in which units a running pilot is charged."""
        reserved = ledger.open_pilots.get(pilot.id)
        if pilot.state is not PilotState.RUNNING or pilot.started is None or reserved is None:
            broker.meter(pilot.id, None)
            return
        unit, spare = float(reserved.tariff.charging_unit), self.settings.idle_timeout + SLACK
        granted = pilot.granted if math.isfinite(pilot.granted) else reserved.tr
        unpaid = 0.0 if reserved.paid is None else max(0.0, granted - reserved.paid)
        broker.meter(pilot.id, Meter(started=pilot.started, unit=unit, spare=spare, unpaid=unpaid))

    def learn_wait(self, pilot: Pilot) -> Pilot:
        """Learn from the wait of a pilot once it is known; one that was refused has not waited."""
        if pilot.wait_known or pilot.predicted_start is None or pilot.state is PilotState.REFUSED:
            return pilot
        known = self.waits.waited(
            pilot.request.p,
            pilot.predicted_start,
            pilot.started,
            pilot.ended,
            pilot.submitted,
            pilot.request.tr,
        )
        return self.change(pilot, wait_known=True) if known else pilot

    def ended(self, broker: Broker, pilot: Pilot, now: float) -> list[Worker]:
        """Put the tasks of a pilot that has ended back; returns the workers that are lost with it."""
        word = LOSS_WORDS.get(pilot.state, AttemptOutcome.LOST)
        at = min(now, pilot.ended or now)
        workers = broker.of_pilot(pilot.id)
        for worker in workers:
            broker.lost(worker.id, word, at, now, pilot.state.value)
        by_us = bool(pilot.leaving)
        end = PilotEnd(pilot.id, self.name, pilot.state, pilot.started, at, by_us)
        broker.explain_losses(end, now)
        if self.donation is not None and pilot.node and pilot.state is PilotState.PREEMPTED:
            self.donation.give_back(pilot.node, now)
        self.forget(broker, pilot)
        return workers

    def _wants_pilots(self, broker: Broker, now: float) -> bool:
        return broker.has_waiting(self.name) or any(
            demand.wants_pilots for demand in broker.demands(self.name, now)
        )

    def judge(self, broker: Broker, pilot: Pilot, now: float) -> None:
        """Count pilots that ran no task, so that they do not follow one another for ever.

        Failures on donated nodes do not stand in the way of formal requests, nor the other way round.
        """
        in_vain = not pilot.worked and pilot.state in _OF_ITS_OWN and self._wants_pilots(broker, now)
        reason = pilot.end_reason or pilot.state.value
        if pilot.node and self.donation is not None:
            if pilot.worked:
                self.donation.fruitless.succeeded()
            elif in_vain:
                self.donation.fruitless.failed(now, reason)
        elif pilot.worked:
            self.fruitless.succeeded(pilot.asked)
        elif in_vain:
            self.fruitless.failed(pilot.asked, now, reason)


def _with_workers(pilot: Pilot, workers: Iterable[Worker], now: float) -> Pilot:
    """The pilot with what its workers are by now."""
    there = [worker for worker in workers if not worker.awaited]
    rooms = tuple(worker.whole for worker in there)
    processors = None
    if pilot.first_hello is not None and there:
        processors = covering_processors(pilot, sum(worker.open_processors for worker in there), now)
    if processors == pilot.processors and rooms == pilot.rooms:
        return pilot
    return pilot.but(processors=processors, rooms=rooms)
