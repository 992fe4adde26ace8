"""Donated nodes in one step: which to use, for which bag and how long, who pays, and which to leave."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.budget.accounting.allowance import Allowance, afford
from adaptor.budget.accounting.ledger import Ledger
from adaptor.crafting.situation import Demand, SubmitRequest
from adaptor.decisions.actions import Action, End, WithholdNodes
from adaptor.decisions.caps import too_dear, useful_tr
from adaptor.decisions.memory import Memory, MemoryDraft, donated_nodes
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.shares import shares_of, why_not_donated
from adaptor.decisions.snapshot import DonationFacts, SiteFacts, Snapshot
from adaptor.donation.deciding import decide
from adaptor.donation.fitting import demanded_probability, room, slots_on
from adaptor.donation.situation import LeaveNodes, NodeUse, NodeView, UseNodes, UseNoMore
from adaptor.model import CraftedRequest, PilotState, QueueState, Request, RunningJob
from adaptor.resources import PerProcessor
from adaptor.scheduling.demand import BagDonationDemand
from adaptor.units import format_duration, round_down, round_up

QUEUED_TOO_LONG = 90.0
"""Seconds that a pilot for a donated node may wait in the scheduler's queue, which looks at it every half a
minute or so."""
SUSPENDED = 60.0
"""Seconds for which a pilot may be on a node that a local job has: longer, and it was only suspended."""
WITHOUT_WORKER = 60.0
"""Seconds without a worker after which a donated node is given up: no other sign of its end may come."""


def use_and_leave(snapshot: Snapshot, draft: MemoryDraft, ledger: Ledger) -> Iterator[Action]:
    """Use idle nodes, leave nodes that a local job wants.

    `ledger` holds what is reserved so far. The caller reserves the cost of a `SubmitRequest` there before it
    takes the next action.
    """
    donation = snapshot.here.donation
    if donation is None:
        return
    if not donation.asked:
        yield WithholdNodes("")
        return
    distribution = _Distribution(snapshot, draft.memory, donation, ledger)
    reason = snapshot.here.unusable or _why_none(donation, snapshot.now)
    may_use = not reason
    wanted = tuple(demand.wanted for demand in snapshot.donation_demands)
    state = msgspec.structs.replace(donation, demands=wanted)
    for decision in decide(state, donation.hazard):
        match decision:
            case LeaveNodes():
                yield from _leave(snapshot, donation, decision)
            case UseNodes() if may_use:
                yield from distribution.submits(decision)
                draft.pause(donated_nodes(snapshot.site), distribution.too_dear)
            case UseNoMore():
                reason = reason or distribution.reason or decision.reason
    yield from _of_no_use(snapshot)
    yield WithholdNodes(reason or distribution.reason)


def beside_donated(snapshot: Snapshot, demand: Demand, coming: Sequence[SubmitRequest]) -> Demand:
    """The demand for formal requests, without the tasks that donated nodes will take.

    `coming`: the nodes that this step is to use, besides those that wait for their workers already.
    """
    tasks = _coming(snapshot, demand.bag, demand.task.processors)
    tasks += sum(
        submit.crafted.request.p // demand.task.processors
        for submit in coming
        if submit.demand.bag == demand.bag
    )
    if not tasks:
        return demand
    same = [
        other.wanted
        for other in snapshot.donation_demands
        if other.pilots_of == demand.bag and other.wanted.task.processors == demand.task.processors
    ]
    mixed = sum(other.waiting for other in same if other.allocation == "mixed")
    both = sum(other.waiting for other in same)
    taken = min(mixed, tasks * mixed // both) if both else 0
    return msgspec.structs.replace(demand, waiting=demand.waiting - taken)


def beside_held_nodes(site: SiteFacts, queue: QueueState, coming: Sequence[SubmitRequest] = ()) -> QueueState:
    """The queue, with the nodes that agents use counted as busy, so that formal requests avoid them.

    The scheduler shows what preemptible jobs hold by itself.
    """
    if site.donation is None or site.donation.preemptible:
        return queue
    uses = [
        (pilot.node, pilot.request, queue.now if pilot.started is None else pilot.started)
        for pilot in site.donated
    ]
    uses += [(submit.node, submit.crafted.request, queue.now) for submit in coming]
    partitions = {}
    for name, partition in queue.partitions.items():
        names = {node.name for node in partition.nodes}
        there = [use for use in uses if use[0] in names or not names]
        partitions[name] = _beside_uses(partition, there)
    return msgspec.structs.replace(_beside_uses(queue, uses), partitions=partitions) if uses else queue


def _beside_uses(queue: QueueState, uses: Sequence[tuple[str, Request, float]]) -> QueueState:
    """The queue with pilots on donated nodes. `uses`: `(node, request, start)` of these."""
    whole = {node.name: (node.whole,) for node in queue.nodes}
    held = [
        RunningJob(f"node {node}", request.p, start + request.tr, whole.get(node, ()))
        for node, request, start in uses
    ]
    if not whole:  # then only how many are held until when counts
        ends = Counter[float]()
        for job in held:
            ends[job.end] += job.processors
        held = [RunningJob(f"nodes until {end:g}", processors, end) for end, processors in ends.items()]
    return msgspec.structs.replace(queue, running=(*queue.running, *held))


def _why_none(donation: DonationFacts, now: float) -> str:
    """Why the site uses no node for a while after failures; empty: it may."""
    for failures, what in (
        (donation.fruitless, "ended without running a task"),
        (donation.failing, "could not be used"),
    ):
        if failures.waiting(now):
            return (
                f"{failures.failures} donated nodes in a row {what} ({failures.reason}); "
                f"next try in {format_duration(failures.until - now)}"
            )
    return ""


def _leave(snapshot: Snapshot, donation: DonationFacts, decision: LeaveNodes) -> Iterator[End]:
    by_node = {pilot.node: pilot for pilot in snapshot.here.donated}
    taken = {node.name for node in donation.nodes or () if node.use is NodeUse.TAKEN}
    for name in decision.nodes:
        pilot = by_node[name]
        preempted = name in taken and _is_being_preempted(donation, pilot, snapshot.now)
        if not preempted and not pilot.leaving:
            yield End(pilot.id, decision.reason)


def _is_being_preempted(donation: DonationFacts, pilot: Pilot, now: float) -> bool:
    """Whether the scheduler preempts the pilot by itself, with its own grace time."""
    if not donation.preemptible or pilot.state is not PilotState.RUNNING:
        return False
    return now - (pilot.wanted_since if pilot.wanted_since is not None else now) < SUSPENDED


def _of_no_use(snapshot: Snapshot) -> Iterator[End]:
    """End pilots that wait in the queue for too long, as their node is taken or a limit holds them, and those
    that hold a node without a worker."""
    for pilot in snapshot.here.unsettled:
        waited, since = snapshot.now - pilot.submitted, pilot.without_worker_since
        if pilot.leaving:
            continue
        if pilot.state is PilotState.QUEUED and waited > QUEUED_TOO_LONG:
            told = f"the scheduler has not started it on node {pilot.node} for {format_duration(waited)}"
            yield End(pilot.id, told, avoid_node=True)
        elif since is not None and snapshot.now - since > WITHOUT_WORKER:
            yield End(pilot.id, f"none of its workers has answered for {format_duration(WITHOUT_WORKER)}")


def _coming(snapshot: Snapshot, bag: int | None, processors_per_task: int) -> int:
    """Tasks of a shape that donated nodes will take once their workers call, at all sites."""
    return sum(
        pilot.request.p // processors_per_task
        for site in snapshot.sites.values()
        for pilot in site.unsettled
        if pilot.bag == bag and pilot.first_hello is None and not pilot.leaving
    )


class _Wanted(msgspec.Struct, frozen=True):
    """Tasks for which one node is used."""

    demands: tuple[BagDonationDemand, ...]
    """Demands of one bag with pilots of its own, or of all bags that share theirs."""
    tasks: int
    """Number of tasks that the node can run at the same time."""

    @property
    def bag(self) -> int | None:
        return self.demands[0].pilots_of


class _Distribution:
    """Assigns nodes to bags: the next node goes to the payer with the most tasks without a place."""

    def __init__(self, snapshot: Snapshot, memory: Memory, donation: DonationFacts, ledger: Ledger) -> None:
        together: dict[int | None, list[BagDonationDemand]] = {}
        self.reason = ""  # why a bag's tasks get no node; empty: nothing prevents it
        self.too_dear: dict[int, str] = {}  # by bag: why the budgets hold no node for it
        for demand in snapshot.donation_demands:
            if why := why_not_donated(memory, demand.pilots_of, snapshot.site):
                self.reason = why
            else:
                together.setdefault(demand.pilots_of, []).append(demand)
        self._snapshot, self._donation, self._ledger, self._memory = snapshot, donation, ledger, memory
        self._parts: dict[int | None, tuple[int, int]] = {}
        """Number of nodes in this step by payer, and amount that each may cost, millionths of a credit."""
        self._payers = {bag: tuple(of_bag) for bag, of_bag in together.items()}
        self._left = {
            bag: sum(demand.wanted.waiting for demand in of_bag)
            - _coming(snapshot, bag, min(demand.wanted.task.processors for demand in of_bag))
            for bag, of_bag in self._payers.items()
        }

    def submits(self, decision: UseNodes) -> Iterator[SubmitRequest]:
        """A pilot for each node for which a task is left that its bag can pay for."""
        nodes = {node.name: node for node in self._donation.nodes or ()}
        for number, name in enumerate(decision.nodes):
            found = self._submit(nodes[name], decision, len(decision.nodes) - number)
            if found is not None:
                yield found

    def _submit(self, node: NodeView, decision: UseNodes, nodes: int) -> SubmitRequest | None:
        """The request of a pilot on a node; None: no payable task is left that is likely to finish there.

        `nodes`: this one and those that come after it.
        """
        while (wanted := self._next(node, decision.until)) is not None:
            found = self._pilot(node, wanted, decision, nodes)
            if isinstance(found, SubmitRequest):
                self._left[wanted.bag] -= wanted.tasks
                return found
            # Who cannot pay, or needs more time than there is, must not stand in the way of the others.
            self.reason = self.reason or found
            del self._payers[wanted.bag]
        if any(self._left[bag] > 0 for bag in self._payers):
            self.reason = self.reason or f"no waiting task fits into {node.name}"
        return None

    def _next(self, node: NodeView, until: float) -> _Wanted | None:
        for bag in sorted(self._payers, key=lambda bag: -self._left[bag]):
            if self._left[bag] <= 0:
                return None
            demands = tuple(
                demand
                for demand in self._payers[bag]
                if _slots(node, demand) and self._fits(node, demand, until)
            )
            if demands:
                return _Wanted(demands, max(_slots(node, demand) for demand in demands))
        return None

    def _fits(self, node: NodeView, demand: BagDonationDemand, until: float) -> bool:
        """Whether the shortest of the tasks is likely to finish there, as when the node was chosen."""
        donation, wanted, now = self._donation, demand.wanted, self._snapshot.now
        probability = demanded_probability(wanted, donation.rules, now)
        return room(donation.hazard, now - node.since, until - now, probability) >= wanted.needs

    def _pilot(self, node: NodeView, wanted: _Wanted, decision: UseNodes, nodes: int) -> SubmitRequest | str:
        """The pilot as it may be submitted, or why it may not."""
        now, rules = self._snapshot.now, self._snapshot.here.rules
        needs = min(demand.wanted.needs for demand in wanted.demands)
        resolution = rules.time_resolution
        least = Request(node.processors, max(resolution, round_up(needs + rules.pad, resolution)))
        tr = round_down(min(self._donation.longest, decision.until - now), resolution)
        if tr < least.tr:
            return (
                f"the shortest waiting task needs a donated node for {format_duration(least.tr)}, and "
                f"{node.name} can be used for {format_duration(tr)}"
                f"{' (max_tr)' if tr == self._donation.longest else ''}"
            )
        demand = _demand(wanted)
        gpus = 0.0
        if any(demand.wanted.task.gpus for demand in wanted.demands):  # all of the node's are charged
            gpus = sum(count for _, count in node.gpus) / node.processors
        per = PerProcessor(gpus)
        allowance = self._ledger.allowance(self._snapshot.site, "donated", demand.payers, now, per)
        wish, allowance = Request(node.processors, tr), self._in_step(wanted, allowance, least, nodes)
        slots = wanted.tasks * self._parts.get(wanted.bag, (1, 0))[0]
        useful = useful_tr(self._snapshot, self._ledger, demand, allowance, wish, slots)
        found = afford(allowance, wish, least, useful)
        if found.request is None:
            why = too_dear(self._ledger, allowance, found, demand)
            self.too_dear |= dict.fromkeys(demand.payers, why)
            return why
        request = Request(node.processors, max(least.tr, round_down(found.request.tr, resolution)))
        crafted = CraftedRequest(request, None, wanted.tasks, f"node {node.name}: {decision.reason}")
        return SubmitRequest(crafted=crafted, demand=demand, node=node.name, per=per)

    def _in_step(self, wanted: _Wanted, allowance: Allowance, least: Request, nodes: int) -> Allowance:
        """Amount that a node may cost: the nodes of a step share what their payer may spend on them.

        Else the first node would reserve for its longest use what pays for all of them. The smallest
        request is within every part.
        """
        if allowance.amount is None:
            return allowance
        if wanted.bag not in self._parts:
            shares = None if wanted.bag is None else shares_of(self._memory, wanted.bag)
            mine = 1.0 if shares is None else shares.part(donated_nodes(self._snapshot.site))
            together = min(nodes, math.ceil(self._left[wanted.bag] / wanted.tasks))
            self._parts[wanted.bag] = together, int(allowance.amount * mine / together)
        some = allowance.tariff.reservation(allowance.kind, least.p, least.tr)
        amount = min(allowance.amount, max(some, self._parts[wanted.bag][1]))
        return msgspec.structs.replace(allowance, amount=amount)


def _slots(node: NodeView, demand: BagDonationDemand) -> int:
    return slots_on(node, node.processors, demand.wanted.task)


def _demand(wanted: _Wanted) -> Demand:
    first, payers = wanted.demands[0], Counter[int]()
    for demand in wanted.demands:
        payers[demand.bag] += demand.wanted.waiting
    return Demand(
        task=first.wanted.task,
        waiting=sum(demand.wanted.waiting for demand in wanted.demands),
        runtime=max(1.0, first.wanted.needs),
        shortest=first.wanted.needs,
        bag=wanted.bag,
        payers={bag: float(tasks) for bag, tasks in payers.items()},
    )
