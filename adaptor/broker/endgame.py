"""The end of a bag: nothing waits and a worker has room that is already paid for.

First the tasks that other workers hold unstarted are called back, then stragglers are replicated
(WQR, Paranhos et al. 2003; De Rose §1): the first result wins.
"""

from __future__ import annotations

from adaptor.broker.bag import Bag
from adaptor.broker.books import Books
from adaptor.broker.lent import replica_for_lent
from adaptor.broker.workers import Worker
from adaptor.link.messages import AttemptKey
from adaptor.model import TaskState


def feed_the_end(books: Books, worker: Worker, now: float) -> None:
    if _call_back(books, worker):
        return
    for bag in list(books.bags.values()):
        while books.serves(worker, bag) and bag.fits(worker.free_processors, worker.free_memory):
            chosen = _straggler(books, bag, worker, now)
            if chosen is None:
                break
            books.lease(worker, bag, *chosen, now)


def _call_back(books: Books, idle: Worker) -> bool:
    """Ask other workers for half of what they hold unstarted; whether any was asked for."""
    asked = False
    for other in books.workers.values():
        if other is idle or other.awaited or other.site != idle.site:
            continue
        unstarted = [key for key in other.unstarted if not other.held[key].give_back_sent]
        for key in unstarted[len(unstarted) // 2 :]:
            if other.queued and _could_have(books, idle, key):
                other.held[key].give_back_sent = asked = True
                books.outbox.of(other.id).give_back.append(key)
    return asked


def _could_have(books: Books, idle: Worker, key: AttemptKey) -> bool:
    bag = books.bags.get(key.bag)
    return bag is not None and bag.spec.cpus <= idle.free_processors and books.serves(idle, bag)


def _straggler(books: Books, bag: Bag, worker: Worker, now: float) -> tuple[int, float] | None:
    """The running task that a replica here is likeliest to finish sooner: (task, seconds it needs).

    WQR replicates any running task. Here it must have run longer than the bag's mean, which is what a
    fresh attempt is expected to take; the one that has run longest comes first.
    """
    learner = books.learner(bag.id, worker.site)
    if bag.spec.replicas < 1 or bag.count(TaskState.WAITING) or learner.mean is None:
        return None
    late = [
        (start, task)
        for task, start in _starts(books, bag).items()
        if now - start >= learner.mean
        and len(bag.live[task]) <= bag.spec.replicas
        and not any(AttemptKey(bag.id, task, attempt) in worker.held for attempt in bag.live[task])
    ]
    if not late:
        return None
    _, task = min(late)
    if worker.pilot in books.lent:
        return replica_for_lent(books, bag, worker, task, now)
    needs = books.needs(bag, worker.site, task)
    return (task, needs) if needs <= worker.time_left(now) and needs < worker.too_long else None


def _starts(books: Books, bag: Bag) -> dict[int, float]:
    """When each running task of a bag was first started, as far as its end would be known by now."""
    starts: dict[int, float] = {}
    for worker in books.workers.values():
        on_the_way = 2 * books.sites[worker.site].latency
        for key, held in worker.held.items():
            if key.bag == bag.id and held.started is not None and key.task in bag.live:
                start = held.started + on_the_way
                starts[key.task] = min(start, starts.get(key.task, start))
    return starts
