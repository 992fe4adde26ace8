"""Which waiting task goes to which worker: eager scheduling with fair shares between bags.

Eager: a worker with free processors gets the next task at once (De Rose §1). Each worker also holds a short
reserve of tasks, so that no slot waits for a round trip. When no task waits, idle workers get unstarted
tasks back from other workers, then suspects (`suspects`), then replicas of running tasks: the first result of
a task wins.
"""

from __future__ import annotations

import math
from itertools import islice

from adaptor.donation.fitting import held
from adaptor.model import TaskState
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.donated_nodes import odd_tasks, take_for_donated
from adaptor.scheduling.state import PaidCopy, SchedulingState
from adaptor.scheduling.suspects import feed_suspects
from adaptor.scheduling.tail_replication import copies
from adaptor.scheduling.workers import Worker

RESERVE_LIMIT = 256
"""The most leases that a worker holds in reserve."""
_PAUSE = 0.1
"""Seconds between two searches for tasks to replicate, for each hundred workers."""


def dispatch(state: SchedulingState, now: float) -> None:
    """Lease waiting tasks to every worker with free processors."""
    for worker in list(state.workers.values()):
        if not worker.awaited and worker.free_processors > 0:
            feed(state, worker, now)


def feed(state: SchedulingState, worker: Worker, now: float) -> None:
    """Lease tasks to a worker: first for its free processors, then for its reserve."""
    if worker.runs_suspects:
        feed_suspects(state, worker, now)
        return
    while _lease_next(state, worker, worker.free_processors, worker.free_memory, now):
        pass
    bags = _waiting_bags(state, worker)
    if bags:
        depth = max(_reserve(state, bag, worker) for bag in bags)
        while worker.queued < depth and _lease_next(state, worker, worker.processors, worker.memory, now):
            pass
        if not worker.held:  # nothing that waits fits there, and it may leave as idle
            feed_suspects(state, worker, now)
    elif worker.free_processors > 0:
        feed_idle(state, worker, now)


def _waiting_bags(state: SchedulingState, worker: Worker) -> list[Bag]:
    return [bag for bag in state.bags.values() if bag.waiting and state.serves(worker, bag)]


def _lease_next(state: SchedulingState, worker: Worker, processors: int, memory: int, now: float) -> bool:
    """Lease one task of the bag that holds the fewest processors at this site (of equals, the older bag)."""
    bags = _waiting_bags(state, worker)
    bags.sort(key=lambda bag: (state.shares[bag.id, worker.site], bag.id))
    for bag in bags:
        if bag.fits(processors, memory):
            taken = _take_fitting(state, bag, worker, now)
            if taken is not None:
                state.reserved.pop(bag.id, None)
                state.lease(worker, bag, *taken, now)
                return True
        elif _keep_for(state, bag, worker):
            return False
    return False


def _take_fitting(state: SchedulingState, bag: Bag, worker: Worker, now: float) -> tuple[int, float] | None:
    """Take the first waiting task that can finish before the pilot ends: (task, seconds it needs).

    In a pilot of a formal request, tasks held for formal requests (`fitting.held`) go first, since the
    other tasks may run on donated nodes too. Only tasks that were cut or preempted need more time than the
    others, so the search ends after as many tasks as there are of those.
    """
    if worker.pilot in state.donated:
        return take_for_donated(state, bag, worker, now)
    rules, time_left, other = state.rules(worker.site), worker.time_left(now), None
    for position, task in enumerate(islice(bag.waiting, odd_tasks(state, bag, worker.site) + 1)):
        first = not bag.preempted or held(bag.preempted_of(task).times, rules)
        if other is not None and not first:
            continue
        needs = state.needs(bag, worker.site, task)
        if needs <= time_left and needs < worker.too_long:
            if first:
                return bag.take(position), needs
            other = position, needs
    return None if other is None else (bag.take(other[0]), other[1])


def _keep_for(state: SchedulingState, bag: Bag, worker: Worker) -> bool:
    """True if this worker must keep its free processors for a bag that holds none here and needs more."""
    if state.shares[bag.id, worker.site] or not bag.fits(worker.processors, worker.memory):
        return False
    keeper = state.reserved.get(bag.id)
    if keeper not in state.workers:
        keeper = state.reserved[bag.id] = worker.id
    return keeper == worker.id


def _reserve(state: SchedulingState, bag: Bag, worker: Worker) -> int:
    """The number of leases that a worker should hold beyond its running tasks.

    Enough for the site's `reserve` seconds of work and at least one, but at most half of the worker's fair
    part of the waiting tasks (guided self-scheduling), so that the last tasks do not wait in one worker.
    """
    mean = state.learner(bag.id, worker.site).mean
    terms = state.sites[worker.site]
    if mean is None or not terms.reserve:
        return 0
    slots = max(1, worker.processors // bag.spec.cpus)
    seconds = terms.reserve + 2 * terms.latency
    wanted = min(RESERVE_LIMIT, max(1, math.ceil(slots * seconds / max(mean, 1e-4))))
    part = len(bag.waiting) * worker.processors / max(1, state.processors(worker.site))
    return min(wanted, int(part / 2))


def feed_idle(state: SchedulingState, worker: Worker, now: float) -> None:
    """Use an idle worker when no task waits but suspects: its processors are already paid for (De Rose §1).

    Call unstarted tasks back for it, else start suspects, else replicate running tasks.
    """
    if _call_back(state, worker):
        return
    if not worker.held:
        feed_suspects(state, worker, now)
        if worker.held:
            return
    for bag in list(state.bags.values()):
        if _may_replicate(bag) and state.serves(worker, bag) and _is_due(state, bag, now):
            for copy in copies(state, bag, now):
                key = state.lease(copy.worker, bag, copy.task, copy.needs, now)
                if bag.id in state.alone:
                    state.copies[key] = PaidCopy(copy.worker.id, copy.until)


def _call_back(state: SchedulingState, idle: Worker) -> bool:
    """Ask other workers to return half of their unstarted tasks; True if it asked for any."""
    asked = False
    for other in state.workers.values():
        if other is idle or other.awaited or other.site != idle.site:
            continue
        unstarted = [key for key in other.unstarted if not other.held[key].give_back_sent]
        for key in unstarted[len(unstarted) // 2 :]:
            if other.queued and _could_run(state, idle, key):
                other.held[key].give_back_sent = asked = True
                state.orders.of(other.id).give_back.append(key)
    return asked


def _could_run(state: SchedulingState, idle: Worker, key: AttemptKey) -> bool:
    bag = state.bags.get(key.bag)
    return bag is not None and bag.spec.cpus <= idle.free_processors and state.serves(idle, bag)


def _is_due(state: SchedulingState, bag: Bag, now: float) -> bool:
    """True if the last search is old enough: each search visits all workers (1000 workers: 20 ms)."""
    last = state.looked.get(bag.id)
    if last is not None and 0 <= now - last < len(state.workers) // 100 * _PAUSE:
        return False
    state.looked[bag.id] = now
    return True


def _may_replicate(bag: Bag) -> bool:
    return bag.spec.replicas > 0 and not bag.count(TaskState.WAITING) and bag.count(TaskState.LEASED) > 0
