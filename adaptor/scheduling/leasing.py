"""Which waiting task goes to which worker: eager scheduling with fair shares between bags.

Eager: a worker with room is given the next task at once (De Rose §1). Leasing ahead keeps a short
reserve of tasks with the worker, so that no slot waits for a round trip.
"""

from __future__ import annotations

import math
from itertools import islice

from adaptor.donation.fitting import held
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.donated_nodes import odd_tasks, take_for_donated
from adaptor.scheduling.endgame import feed_the_end
from adaptor.scheduling.state import Books
from adaptor.scheduling.workers import Worker

RESERVE_LIMIT = 256
"""Leases held in reserve, at most."""


def dispatch(books: Books, now: float) -> None:
    """Offer what waits to every worker that has room."""
    for worker in list(books.workers.values()):
        if not worker.awaited and worker.free_processors > 0:
            feed(books, worker, now)


def feed(books: Books, worker: Worker, now: float) -> None:
    """Give a worker what fits into its free processors, then its reserve."""
    while _lease_next(books, worker, worker.free_processors, worker.free_memory, now):
        pass
    bags = _waiting_bags(books, worker)
    if bags:
        depth = max(_reserve(books, bag, worker) for bag in bags)
        while worker.queued < depth and _lease_next(books, worker, worker.processors, worker.memory, now):
            pass
    elif worker.free_processors > 0:
        feed_the_end(books, worker, now)


def _waiting_bags(books: Books, worker: Worker) -> list[Bag]:
    return [bag for bag in books.bags.values() if bag.waiting and books.serves(worker, bag)]


def _lease_next(books: Books, worker: Worker, processors: int, memory: int, now: float) -> bool:
    """Lease one task of the bag that holds the fewest processors here (the older one where equal)."""
    bags = _waiting_bags(books, worker)
    bags.sort(key=lambda bag: (books.shares[bag.id, worker.site], bag.id))
    for bag in bags:
        if bag.fits(processors, memory):
            taken = _take_fitting(books, bag, worker, now)
            if taken is not None:
                books.reserved.pop(bag.id, None)
                books.lease(worker, bag, *taken, now)
                return True
        elif _keep_for(books, bag, worker):
            return False
    return False


def _take_fitting(books: Books, bag: Bag, worker: Worker, now: float) -> tuple[int, float] | None:
    """Take the first waiting task that can finish before the pilot ends: (task, seconds it needs).

    In a pilot of a formal request, tasks that are held for it go first: the others may run on donated
    nodes too. Only tasks that were cut or preempted before need more than the others, so only those are
    looked past.
    """
    if worker.pilot in books.donated:
        return take_for_donated(books, bag, worker, now)
    rules, time_left, other = books.rules(worker.site), worker.time_left(now), None
    for position, task in enumerate(islice(bag.waiting, odd_tasks(books, bag, worker.site) + 1)):
        first = not bag.preempted or held(bag.preempted_of(task).times, rules)
        if other is not None and not first:
            continue
        needs = books.needs(bag, worker.site, task)
        if needs <= time_left and needs < worker.too_long:
            if first:
                return bag.take(position), needs
            other = position, needs
    return None if other is None else (bag.take(other[0]), other[1])


def _keep_for(books: Books, bag: Bag, worker: Worker) -> bool:
    """Whether this worker is kept for a bag that holds nothing and needs more than is free."""
    if books.shares[bag.id, worker.site] or not bag.fits(worker.processors, worker.memory):
        return False
    keeper = books.reserved.get(bag.id)
    if keeper not in books.workers:
        keeper = books.reserved[bag.id] = worker.id
    return keeper == worker.id


def _reserve(books: Books, bag: Bag, worker: Worker) -> int:
    """How many leases a worker should hold beyond those that it runs.

    Enough for the site's `reserve` seconds of work and at least one, but never more than half of its fair
    part of what waits (guided self-scheduling), so that the end of a bag does not sit in one worker's queue.
    """
    mean = books.learner(bag.id, worker.site).mean
    terms = books.sites[worker.site]
    if mean is None or not terms.reserve:
        return 0
    slots = max(1, worker.processors // bag.spec.cpus)
    seconds = terms.reserve + 2 * terms.latency
    wanted = min(RESERVE_LIMIT, max(1, math.ceil(slots * seconds / max(mean, 1e-4))))
    part = len(bag.waiting) * worker.processors / max(1, books.processors(worker.site))
    return min(wanted, int(part / 2))
