"""The broker's state: bags, workers, leases and learned runtimes, with the operations that change them.

Every operation records what the journal must write (`changes`) and what the daemon must send to the
workers (`orders`). Pure: the time is an argument, and nothing is read or written here.
"""

from __future__ import annotations

import math
from collections import defaultdict

import msgspec

from adaptor.budget.estimation.experience import Experience
from adaptor.budget.estimation.runtime_sample import RuntimeSample
from adaptor.crafting.learning import LearnedRuntimes, RuntimeLearner
from adaptor.donation.idleness import Hazard
from adaptor.donation.situation import DonationRules
from adaptor.model import TaskState
from adaptor.protocol.messages import LAST_SECONDS, AttemptKey
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.changes import AttemptRevived, AttemptStart, Changes, TaskChange
from adaptor.scheduling.donation_facts import UNLEARNED, DonatedNode
from adaptor.scheduling.losses import LostAttempt
from adaptor.scheduling.orders import Grant, PendingOrders
from adaptor.scheduling.workers import HeldLease, Worker, WorkerTable

RESERVE_SECONDS = 0.5
"""Seconds of work that a worker holds in reserve, beside the work done while messages travel."""
_EXPERIENCE = 2000
"""The most runtimes of a bag at a site that the broker keeps one by one."""


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


_NO_RULES = DonationRules()


class Meter(msgspec.Struct, frozen=True):
    """The charging of a pilot."""

    started: float
    """Epoch seconds."""
    unit: float
    """The charging unit, seconds."""
    spare: float
    """Seconds before the end of a unit at which work must end, so that the pilot leaves within the unit."""

    def paid_until(self, now: float) -> float:
        """Until when work is free (epoch seconds): the site charges a started unit as a whole."""
        units = math.floor(max(0.0, now - self.started) / self.unit) + 1
        return self.started + units * self.unit - self.spare


class PaidCopy(msgspec.Struct, frozen=True):
    """A replica of a bag that pays for its pilots."""

    worker: str
    until: float | None
    """Its slot is paid until then (epoch seconds); None after a restart, until its pilot has a meter."""


def _new_learner(terms: SiteTerms, learned: LearnedRuntimes | None = None) -> RuntimeLearner:
    return RuntimeLearner(
        initial=terms.initial_tr, factor=terms.growth_factor, longest=terms.longest, learned=learned
    )


class SchedulingState:
    """All that the broker knows between two calls; the journal can rebuild it (`journal.recovery`)."""

    def __init__(self, sites: dict[str, SiteTerms]) -> None:
        self.sites = sites
        self.bags: dict[int, Bag] = {}
        """The bags with unfinished tasks or with attempts that a worker still holds."""
        self.workers = WorkerTable()
        self.learners: dict[tuple[int, str], RuntimeLearner] = {}
        self.shares: dict[tuple[int, str], int] = defaultdict(int)
        """Processors that each bag holds at each site."""
        self.reserved: dict[int, str] = {}
        """By bag without processors: the worker that gets no other task until one of this bag fits."""
        self.alone: set[int] = set()
        """Bags that run only in their own pilots, because each pays for itself."""
        self.owners: dict[int, int] = {}
        """By pilot: the only bag that it serves; all other pilots serve all other bags."""
        self.donated: dict[int, DonatedNode] = {}
        """By pilot: the donated node on which it runs."""
        self.hazards: dict[str, Hazard] = {}
        """By site: for how long nodes stay idle."""
        self.starts: dict[str, dict[int | None, float]] = {}
        """By site, and by the only bag that they are for: when the next request is predicted to start."""
        self.meters: dict[int, Meter] = {}
        """By running pilot that serves one bag: its charging."""
        self.copies: dict[AttemptKey, PaidCopy] = {}
        """Replicas of bags that pay for their pilots."""
        self.lost: dict[int, dict[AttemptKey, LostAttempt]] = {}
        """By pilot in the system: its lost attempts, until its end says more of them."""
        self.looked: dict[int, float] = {}
        """By bag: the last search for tasks to replicate (epoch seconds)."""
        self._experiences: dict[tuple[int, str], Experience] = {}
        self._samples: dict[int, RuntimeSample] = {}
        self.touched: dict[int, Bag] = {}
        """Bags whose counts changed since the last write of the journal."""
        self.changes = Changes()
        self.orders = PendingOrders()

    def learner(self, bag: int, site: str) -> RuntimeLearner:
        learner = self.learners.get((bag, site))
        if learner is None:
            learner = self.learners[bag, site] = _new_learner(self.sites[site])
            sampled = self.bags[bag].spec.runtimes.get(site) if bag in self.bags else None
            if sampled is not None:
                learner.suppose(sampled)
        if learner.mean is None and len(self.sites) > 1:
            known = [other.estimate for other in self._learners_of(bag) if other.mean is not None]
            if known:
                learner.suppose(max(known))
        return learner

    def finished(self, bag: Bag, site: str, task: int, wall: float) -> None:
        """Learn from a result."""
        self.learner(bag.id, site).finished(wall, task=task)
        self._experiences.setdefault((bag.id, site), Experience(_EXPERIENCE)).add(wall)
        self.note_runtime(bag.id, task, wall)

    def note_runtime(self, bag: int, task: int, wall: float) -> None:
        """Keep a runtime for forecasts, even of a site that is no longer configured."""
        self._samples.setdefault(bag, RuntimeSample()).add(task, wall)

    def sample(self, bag: int) -> RuntimeSample:
        """Runtimes of a bag's finished tasks, at all sites."""
        return self._samples.get(bag) or RuntimeSample()

    def experience(self, bag: Bag, site: str) -> Experience:
        """A bag's runtimes at a site; before the first, those of the site with the most finished tasks."""
        mine = self._experiences.get((bag.id, site))
        if mine is not None:
            return mine
        others = [each for (owner, _), each in self._experiences.items() if owner == bag.id]
        return max(others, key=len, default=Experience())

    def _learners_of(self, bag: int) -> list[RuntimeLearner]:
        return [self.learners[bag, site] for site in self.sites if (bag, site) in self.learners]

    def needs(self, bag: Bag, site: str, task: int) -> float:
        """Seconds that a pilot must have left when the task starts in it."""
        return self.estimate_of(bag, site, task) + self.sites[site].last

    def estimate_of(self, bag: Bag, site: str, task: int) -> float:
        """The estimated runtime of the task, seconds: not less than it ran before a preemption."""
        return max(self.learner(bag.id, site).estimate_of(task), bag.preempted_of(task).ran)

    def rules(self, site: str) -> DonationRules:
        """The rules for the use of a site's idle nodes."""
        return self.sites[site].donation or _NO_RULES

    def hazard(self, site: str) -> Hazard:
        return self.hazards.get(site, UNLEARNED)

    def next_start(self, bag: Bag) -> float | None:
        """When the next request for a bag is predicted to start, at any site; None: none waits to."""
        own = bag.id if bag.id in self.alone else None
        starts = [of[own] for site, of in self.starts.items() if own in of and bag.spec.allows(site)]
        return min(starts, default=None)

    def set_longest(self, site: str, longest: float) -> None:
        """Correct the longest task of a site, in its terms and in its learners."""
        terms = self.sites[site] = msgspec.structs.replace(self.sites[site], longest=longest)
        for (bag, where), learner in list(self.learners.items()):
            if where == site:
                self.learners[bag, site] = _new_learner(terms, learner.learned)

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

    def processors(self, site: str) -> int:
        """Processors of all workers at a site."""
        return self.workers.processors(site)

    def lease(self, worker: Worker, bag: Bag, task: int, needs: float, now: float) -> AttemptKey:
        """Lease a task (off the queue, or a replica) to a worker; returns the new attempt."""
        key = AttemptKey(bag.id, task, bag.lease(task))
        self.hold(worker, key, bag, now)
        self.orders.of(worker.id).grants.append(Grant(key, needs))
        self.changes.attempts.append(AttemptStart(key, worker.pilot, worker.node, worker.id, now))
        self.note(bag, task)
        return key

    def hold(self, worker: Worker, key: AttemptKey, bag: Bag, now: float) -> None:
        worker.take(key, bag.spec.cpus, bag.spec.memory or 0, now, suspect=key.task in bag.losses)
        self.shares[bag.id, worker.site] += bag.spec.cpus

    def suspect(self, bag: Bag, key: AttemptKey) -> None:
        """Count an attempt that ran when its worker died. Where its task runs too, nothing joins it."""
        bag.suspect(key.task, key.attempt)
        for attempt in bag.live.get(key.task, ()):
            for worker in self.workers.values():
                held = worker.held.get(AttemptKey(bag.id, key.task, attempt))
                if held is not None:
                    held.suspect = True

    def let_go(self, worker: Worker, key: AttemptKey) -> HeldLease | None:
        held = worker.held.pop(key, None)
        self.copies.pop(key, None)
        if held is not None:
            self.shares[key.bag, worker.site] -= held.cpus
        return held

    def revive(self, worker: Worker, key: AttemptKey, now: float) -> None:
        """Take back or abort an attempt that a worker holds and that the broker gave up or does not know."""
        bag = self.bags.get(key.bag)
        if bag is None or not bag.expects(key.task, key.attempt) or bag.state(key.task).ended:
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
            self.orders.of(worker.id).abort.append(key)

    def put_back(self, bag: Bag, task: int, *, first: bool) -> None:
        bag.put_back(task, first=first)
        self.note(bag, task)

    def end_task(self, bag: Bag, key: AttemptKey, state: TaskState, error: str | None = None) -> None:
        """End the task with this attempt as its result, and abort its other attempts."""
        bag.release(key.task, key.attempt)
        others = bag.end(key.task, state)
        for (owner, _), learner in self.learners.items():
            if owner == bag.id:
                learner.forget(key.task)
        self.note(bag, key.task, result=key.attempt, error=error)
        if not others:
            return
        for worker in self.workers.values():
            for attempt in others:
                self.abort(worker, AttemptKey(key.bag, key.task, attempt))

    def note(self, bag: Bag, task: int, result: int | None = None, error: str | None = None) -> None:
        """Record the task's state for the journal."""
        charged = bag.charged.get(task, 0)
        change = TaskChange(bag.id, task, bag.state(task), bag.attempts(task), charged, result, error)
        self.changes.tasks.append(change)
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
        self._samples.pop(bag.id, None)
        for table in (self.learners, self.shares, self._experiences):
            for key in [key for key in table if key[0] == bag.id]:
                del table[key]
