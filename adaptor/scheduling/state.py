"""The broker's state: bags, workers, leases and learned runtimes, with the operations that change them.

Every operation records what the journal must write (`changes`) and what the daemon must send to the
workers (`orders`). Pure: the time is an argument, and nothing is read or written here.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from adaptor.donation.idleness import Hazard
from adaptor.donation.situation import DonationRules
from adaptor.model import QueueState, TaskState
from adaptor.protocol.messages import LAST_SECONDS, AttemptKey, Lease, Orders
from adaptor.resources import TaskSize
from adaptor.runtimes.known import EarlierTasks
from adaptor.runtimes.learner import SHORTEST, RuntimeLearner
from adaptor.runtimes.sample import RuntimeSample
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.changes import AttemptRevived, AttemptStart, Changes, TaskChange
from adaptor.scheduling.donation_facts import UNLEARNED, DonatedNode
from adaptor.scheduling.lines import Line
from adaptor.scheduling.losses import LostAttempt
from adaptor.scheduling.workers import HeldLease, Worker, WorkerTable

RESERVE_SECONDS = 0.5
"""Seconds of work that a worker holds in reserve, in addition to the work done while messages travel."""
TOGETHER = ","  # between the names of the nodes, and of the workers, of one attempt in the journal


class SiteTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a site that learning and leasing need (De Rose §4.3.1)."""

    initial_tr: float
    growth_factor: int
    longest: float
    """The longest task that one request of the site can hold, seconds."""
    last: float = LAST_SECONDS
    """A worker ends its tasks this many seconds before its pilot's end."""
    latency: float = 0.0
    """Seconds that a message between the daemon and a worker may take; about 0 over a socket."""
    reserve: float = RESERVE_SECONDS
    """Seconds of work that a worker holds in reserve; 0: it holds only running tasks."""
    donation: DonationRules | None = None
    """The rules for the use of its idle nodes; None: no donation."""
    remember: bool = True
    """Whether its bags are remembered by the kinds of their tasks."""
    even_odds: bool = False
    """Whether a task may start that is as likely as not to be cut, while more wait than run."""


_NO_RULES = DonationRules()


class Meter(msgspec.Struct, frozen=True):
    """The charging of a pilot."""

    started: float
    """Epoch seconds."""
    unit: float
    """The charging unit, seconds."""
    spare: float
    """Seconds before the end of a unit at which work must end, so that the pilot leaves within the unit."""
    unpaid: float = 0.0
    """Seconds at the end of the pilot's walltime that are not paid for."""

    def paid_until(self, now: float) -> float:
        """Epoch seconds until which work is free: the site charges a started unit as a whole."""
        units = math.floor(max(0.0, now - self.started) / self.unit) + 1
        return self.started + units * self.unit - self.spare


class PaidCopy(msgspec.Struct, frozen=True):
    """A replica of a bag that pays for its pilots."""

    worker: str
    until: float | None
    """Epoch seconds until which its slot is paid; None after a restart, until its pilot has a meter."""


def _learner(terms: SiteTerms, before: RuntimeLearner | None = None) -> RuntimeLearner:
    """A learner by the terms of a site that goes on from what another one knew."""
    learner = RuntimeLearner(
        initial=terms.initial_tr,
        factor=terms.growth_factor,
        longest=terms.longest,
        even_odds=terms.even_odds,
    )
    if before is not None:
        learner.seen, learner.cuts = before.seen, before.cuts
    return learner


class SchedulingState:
    """All that the broker knows between two calls; the journal can rebuild it (`journal.recovery`)."""

    def __init__(self, sites: dict[str, SiteTerms]) -> None:
        self.sites = sites
        self.bags: dict[int, Bag] = {}
        """The bags with unfinished tasks or with attempts that a worker still holds."""
        self.workers = WorkerTable()
        self.learners: dict[tuple[int, str], RuntimeLearner] = {}
        self.class_learners: dict[tuple[int, str, int], RuntimeLearner] = {}
        """Learners of bags whose tasks have several sizes: by bag, site and class."""
        self.held_processors: dict[tuple[int, str], int] = defaultdict(int)
        """Processors that each bag holds at each site."""
        self.leases: Counter[tuple[int, int, str]] = Counter()
        """Leases of each bag by class of sizes and by site."""
        self.reserved: dict[int, tuple[int, str]] = {}
        """A class that holds nothing by bag, and the worker that gets no other task until one of it fits."""
        self.alone: set[int] = set()  # bags that run only in their own pilots, because each pays for itself
        self.owners: dict[int, int] = {}
        """Only bag that a pilot serves, by pilot; all other pilots serve all other bags."""
        self.made_for: dict[int, TaskSize] = {}
        """Size of the tasks for which a pilot was requested, by pilot since the last restart."""
        self.donated: dict[int, DonatedNode] = {}  # by pilot: the donated node on which it runs
        self.hazards: dict[str, Hazard] = {}  # by site: for how long nodes stay idle
        self.starts: dict[str, dict[int | None, float]] = {}
        """Predicted start of the next request, by site, and by the only bag that it is for; epoch seconds."""
        self.meters: dict[int, Meter] = {}  # by running pilot that serves one bag: its charging
        self.copies: dict[AttemptKey, PaidCopy] = {}  # replicas of bags that pay for their pilots
        self.lost: dict[int, dict[AttemptKey, LostAttempt]] = {}
        """Lost attempts of each pilot in the system, until its end says more of them."""
        self.deaths_at: dict[tuple[str, str], set[tuple[int, int]]] = {}
        """Bags and tasks whose workers died at a node since a task was last done there, by site and node."""
        self.queues: dict[str, QueueState] = {}
        """Last seen queue of each site, whose nodes say how much memory a task can get."""
        self.told_growth: set[tuple[int, str]] = set()
        """Remarks by bag on tasks that ran out of memory, which were reported."""
        self.looked: dict[int, float] = {}  # by bag: the last search for tasks to replicate (epoch seconds)
        self._affordable: dict[tuple[int, str], tuple[float, bool]] = {}
        """Seconds of a task that the budget of a bag pays for, by bag and site."""
        self._samples: dict[int, RuntimeSample] = {}
        self._site_samples: dict[tuple[int, str], RuntimeSample] = {}
        self.ended_parents: deque[tuple[Bag, int]] = deque()
        """Tasks that have ended and for which others wait."""
        self.followers: dict[int, set[int]] = {}  # by bag that has not ended: the bags that run after it
        self.roots: dict[tuple[int, int], int] = {}
        """First task to end of those that ended with their parents, by bag and task."""
        self.touched: dict[int, Bag] = {}  # bags whose counts changed since the last write of the journal
        self.changes = Changes()
        self.orders: dict[str, Orders] = defaultdict(Orders)
        """Orders that the daemon has not sent yet, by worker; it adds bags, and the commands of leases."""

    def enter(self, bag: Bag) -> None:
        """Enter a bag, which may run after others."""
        self.bags[bag.id] = bag
        for other in bag.awaits:
            self.followers.setdefault(other, set()).add(bag.id)

    def learner(self, bag: int, site: str) -> RuntimeLearner:
        learner = self.learners.get((bag, site))
        if learner is None:
            learner = self.learners[bag, site] = self._learner_with(bag, site)
        if not learner.seen.finished and len(self.sites) > 1:
            others = (self.learners.get((bag, other)) for other in self.sites)
            known = [other.estimate for other in others if other is not None and other.seen.finished]
            if known:
                learner.initial, learner.freely = max(known), None
        return learner

    def _learner_with(self, bag: int, site: str, before: RuntimeLearner | None = None) -> RuntimeLearner:
        """A learner that knows what is assumed of a bag before any of its tasks has finished."""
        learner = _learner(self.sites[site], before)
        assumed = self.bags[bag].assumed_at(site) if bag in self.bags else None
        if assumed is not None:
            learner.initial = assumed
        else:
            paid, in_parts = self._affordable.get((bag, site), (math.inf, False))
            if paid < learner.initial:
                learner.freely, learner.in_parts = learner.initial, in_parts
                learner.initial = max(SHORTEST, paid)
        return learner

    def afford(self, bag: int, site: str, seconds: float, *, in_parts: bool) -> None:
        """Lower the first estimate of a bag to what its budget pays for each task, in seconds.

        What is assumed while nothing is known does not keep a small budget from being spent.

        Args:
            in_parts: whether requests may last longer, and be paid for while they run.
        """
        paid = seconds, in_parts
        if self._affordable.get((bag, site)) != paid:
            self._affordable[bag, site] = paid
            self.learners[bag, site] = self._learner_with(bag, site, self.learner(bag, site))

    def know_earlier(self, bag: Bag, earlier: Mapping[str, EarlierTasks]) -> None:
        """Set what is known of earlier bags of the same kinds, by site."""
        bag.earlier = earlier
        for site in self.sites:
            if (learner := self.learners.get((bag.id, site))) is not None:
                self.learners[bag.id, site] = self._learner_with(bag.id, site, learner)

    def learner_of(self, bag: Bag, site: str, line: Line) -> RuntimeLearner:
        """Learner of the runtimes of a class; before it knows any, that of the bag."""
        if len(bag.lines) > 1:
            mine = self.class_learners.get((bag.id, site, line.number))
            if mine is not None and mine.knows:
                return mine
        return self.learner(bag.id, site)

    def _learners_for(self, bag: Bag, site: str, task: int) -> Iterator[RuntimeLearner]:
        """Learners that learn from a task: those of its bag and of its class."""
        yield self.learner(bag.id, site)
        if len(bag.lines) > 1:
            where = bag.id, site, bag.lines.of(task).number
            yield self.class_learners.setdefault(where, _learner(self.sites[site]))

    def cut(self, bag: Bag, site: str, task: int, ran: float) -> None:
        """Learn that a task was unfinished after `ran` seconds, when its pilot ended."""
        for learner in self._learners_for(bag, site, task):
            learner.cut(task, ran)

    def finished(self, bag: Bag, site: str, task: int, wall: float) -> None:
        """Learn from a result."""
        for learner in self._learners_for(bag, site, task):
            learner.finished(wall, task=task)
        self._site_samples.setdefault((bag.id, site), RuntimeSample()).add(task, wall)
        self.note_runtime(bag.id, task, wall)

    def note_runtime(self, bag: int, task: int, wall: float) -> None:
        """Keep a runtime for forecasts, even of a site that is no longer configured."""
        self._samples.setdefault(bag, RuntimeSample()).add(task, wall)

    def sample(self, bag: int) -> RuntimeSample:
        """Runtimes of a bag's finished tasks, at all sites."""
        return self._samples.get(bag) or RuntimeSample()

    def sample_at(self, bag: int, site: str) -> RuntimeSample:
        """Runtimes of a bag at a site; before the first, those at all sites."""
        return self._site_samples.get((bag, site)) or self.sample(bag)

    def rules(self, site: str) -> DonationRules:
        """The rules for the use of a site's idle nodes."""
        return self.sites[site].donation or _NO_RULES

    def hazard(self, site: str) -> Hazard:
        return self.hazards.get(site, UNLEARNED)

    def next_start(self, bag: Bag) -> float | None:
        """Epoch seconds at which the next request for a bag is predicted to start, at any site; None: none
        waits."""
        own = bag.id if bag.id in self.alone else None
        starts = [of[own] for site, of in self.starts.items() if own in of and bag.spec.allows(site)]
        return min(starts, default=None)

    def set_longest(self, site: str, longest: float) -> None:
        """Correct the longest task of a site, in its terms and in its learners."""
        if longest != self.sites[site].longest:
            self._new_terms(site, msgspec.structs.replace(self.sites[site], longest=longest))

    def suppose_at_most(self, site: str, seconds: float) -> None:
        """Lower the first estimate at a site that starts no longer requests: else no task would start in them
        before one has finished."""
        terms = self.sites[site]
        if seconds < terms.initial_tr:
            self._new_terms(site, msgspec.structs.replace(terms, initial_tr=max(SHORTEST, seconds)))

    def _new_terms(self, site: str, terms: SiteTerms) -> None:
        self.sites[site] = terms
        for (bag, where), learner in list(self.learners.items()):
            if where == site:
                self.learners[bag, site] = self._learner_with(bag, site, learner)
        for (bag, where, line), learner in list(self.class_learners.items()):
            if where == site:
                self.class_learners[bag, site, line] = _learner(terms, learner)

    def serves(self, worker: Worker, bag: Bag) -> bool:
        """True if the tasks of a bag may run on this worker, regardless of free processors and time."""
        return self.serves_in(worker.pilot, worker.site, bag)

    def serves_in(self, pilot: int, site: str, bag: Bag) -> bool:
        """True if the tasks of a bag may run in a pilot, regardless of free processors and time."""
        own = bag.id if bag.id in self.alone else None
        unwanted = "explicit" if pilot in self.donated else "transparent"
        return bag.spec.allows(site) and bag.spec.allocation != unwanted and self.owners.get(pilot) == own

    def concerns(self, bag: Bag, site: str) -> bool:
        """True if the tasks of a bag may run at a site."""
        donates = self.sites[site].donation is not None
        return bag.spec.allows(site) and (donates or bag.spec.allocation != "transparent")

    def lease(
        self,
        workers: Sequence[Worker],
        bag: Bag,
        task: int,
        needs: float,
        now: float,
        *,
        behind: bool = False,
    ) -> AttemptKey:
        """Lease a task (off the queue, or a replica) to a worker; returns the new attempt.

        Args:
            workers: several, whose nodes it takes wholly, if it needs several; the first runs its command.
            behind: of a bag with `max-running`, it starts in the place of one that has ended there.
        """
        key, suspect = AttemptKey(bag.id, task, bag.lease(task)), task in bag.losses
        ids, nodes = [other.id for other in workers], [other.node for other in workers]
        size = bag.sizes.of(task)
        own, limit = (None if size == bag.task else size), _own_limit(bag, task)
        if len(workers) == 1:
            among = 0
            if bag.max_running is not None:
                among = workers[0].held.at_once(bag.id) + (not behind)
            self.hold(workers[0], key, bag, now, among=among, behind=behind)
            self.orders[ids[0]].leases.append(Lease(key, [], needs, task=own, timeout=limit, among=among))
        else:
            for worker in workers:
                worker.take_part(key, tuple(ids), now, suspect=suspect)
                self.held_processors[bag.id, worker.site] += worker.processors
                part = worker is not workers[0]
                lease = Lease(key, [], needs, nodes=nodes, takes_part=part, task=own, timeout=limit)
                self.orders[worker.id].leases.append(lease)
            self._count_lease(workers[0], key, bag)
        names = TOGETHER.join(nodes), TOGETHER.join(ids)
        held = own.total_processors if own is not None else None
        self.changes.attempts.append(AttemptStart(key, workers[0].pilot, *names, now, held))
        self.note(bag, task)
        return key

    def hold(
        self, worker: Worker, key: AttemptKey, bag: Bag, now: float, *, among: int = 0, behind: bool = False
    ) -> None:
        size = bag.sizes.of(key.task)
        worker.take(key, size, now, suspect=key.task in bag.losses, among=among, behind=behind)
        self.held_processors[bag.id, worker.site] += size.processors
        self._count_lease(worker, key, bag)

    def _count_lease(self, worker: Worker, key: AttemptKey, bag: Bag) -> None:
        line = worker.held[key].line = bag.lines.of(key.task).number
        self.leases[bag.id, line, worker.site] += 1

    def end_elsewhere(self, held: HeldLease, key: AttemptKey) -> None:
        """An attempt on several nodes has ended on one: the others end it too."""
        for id in held.group:
            if id in self.workers:
                self.abort(self.workers[id], key)

    def suspect(self, bag: Bag, key: AttemptKey) -> None:
        """Count an attempt that ran when its worker died. Where its task runs too, nothing joins it."""
        bag.suspect(key.task, key.attempt)
        for attempt in bag.live.get(key.task, ()):
            for worker in self.workers.values():
                held = worker.held.get(AttemptKey(bag.id, key.task, attempt))
                if held is not None:
                    held.suspect = True

    def let_go(self, worker: Worker, key: AttemptKey) -> HeldLease | None:
        held = worker.held.get(key)
        self.copies.pop(key, None)
        if held is not None:
            del worker.held[key]
            self.held_processors[key.bag, worker.site] -= held.cpus
            if held.line is not None:
                self.leases[key.bag, held.line, worker.site] -= 1
        return held

    def revive(self, worker: Worker, key: AttemptKey, now: float) -> None:
        """Take back or abort an attempt that a worker holds and that the broker gave up or does not know."""
        bag = self.bags.get(key.bag)
        # Without its other nodes, a task that takes several cannot go on.
        if (
            bag is None
            or bag.sizes.of(key.task).nodes > 1
            or not bag.expects(key.task, key.attempt)
            or bag.state(key.task).ended
        ):
            worker.held[key] = HeldLease(leased=now, cpus=0)
            self.abort(worker, key)
            return
        bag.revive(key.task, key.attempt)
        self.lost.get(worker.pilot, {}).pop(key, None)
        self.hold(worker, key, bag, now)
        self.changes.attempts.append(AttemptRevived(key))
        self.note(bag, key.task)

    def abort(self, worker: Worker, key: AttemptKey) -> None:
        held = worker.held.get(key)
        if held is not None and not held.abort_sent:
            held.abort_sent = True
            self.orders[worker.id].abort.append(key)

    def put_back(self, bag: Bag, task: int, *, first: bool) -> None:
        bag.put_back(task, first=first)
        self.note(bag, task)

    def end_task(self, bag: Bag, key: AttemptKey, state: TaskState, error: str | None = None) -> None:
        """End the task with this attempt as its result, and abort its other attempts."""
        bag.release(key.task, key.attempt)
        others = bag.end(key.task, state)
        for (owner, *_), learner in (*self.learners.items(), *self.class_learners.items()):
            if owner == bag.id:
                learner.forget(key.task)
        self.note(bag, key.task, result=key.attempt, error=error)
        if not others:
            return
        for worker in self.workers.values():
            for attempt in others:
                self.abort(worker, AttemptKey(key.bag, key.task, attempt))

    def note(
        self, bag: Bag, task: int, result: int | None = None, error: str | None = None, *, again: bool = False
    ) -> None:
        """Record the task's state for the journal.

        `again`: its user has put it back. That, and its end, are events that clients get.
        """
        charged, event, state = bag.charged.get(task, 0), None, bag.state(task)
        if again or state.ended:
            event = bag.events = bag.events + 1
        if state.ended and bag.dependencies.has_children(task):
            self.ended_parents.append((bag, task))
        change = TaskChange(bag.id, task, state, bag.attempts(task), charged, result, error, event)
        self.changes.note(change)
        self.touched[bag.id] = bag

    def forget_if_over(self, bag: Bag) -> None:
        """Drop a bag whose tasks have ended, once no worker holds an attempt of it."""
        if not bag.ended or bag.live or bag.id not in self.bags:
            return
        if any(key.bag == bag.id for worker in self.workers.values() for key in worker.held):
            return
        del self.bags[bag.id]
        self.reserved.pop(bag.id, None)
        self.looked.pop(bag.id, None)
        self.told_growth = {each for each in self.told_growth if each[0] != bag.id}
        self._samples.pop(bag.id, None)
        for root in [root for root in self.roots if root[0] == bag.id] if self.roots else ():
            del self.roots[root]
        tables: tuple[dict[Any, Any], ...] = (self.learners, self.held_processors, self._site_samples)
        for table in (*tables, self.class_learners, self.leases, self._affordable):
            for key in [key for key in table if key[0] == bag.id]:
                del table[key]


def _own_limit(bag: Bag, task: int) -> float | None:
    """Seconds after which a task is ended, where that is a part of a time that it has of its own."""
    limit, expected = bag.spec.timeout, bag.sizes.time(task)
    if limit is None or limit.part is None or expected is None:
        return None
    return limit.of(expected, 0, 0.0)
