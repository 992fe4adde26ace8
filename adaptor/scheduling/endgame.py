"""The end of a bag: nothing waits and a worker has room that is already paid for.

First the tasks that other workers hold unstarted are called back, then those that are expected to end
last are replicated (`tailing`; De Rose §1): the first result wins.
"""

from __future__ import annotations

from adaptor.model import TaskState
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import Books, PaidCopy
from adaptor.scheduling.tail_replication import copies
from adaptor.scheduling.workers import Worker

_PAUSE = 0.1
"""Seconds between two looks at what may be replicated, for each hundred workers."""


def feed_the_end(books: Books, worker: Worker, now: float) -> None:
    if _call_back(books, worker):
        return
    for bag in list(books.bags.values()):
        if _may_replicate(bag) and books.serves(worker, bag) and _is_due(books, bag, now):
            for copy in copies(books, bag, now):
                key = books.lease(copy.worker, bag, copy.task, copy.needs, now)
                if bag.id in books.alone:
                    books.copies[key] = PaidCopy(copy.worker.id, copy.until)


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


def _is_due(books: Books, bag: Bag, now: float) -> bool:
    """Each idle worker calls for a look with every report, and one goes over all workers (1000: 20 ms)."""
    last = books.looked.get(bag.id)
    if last is not None and 0 <= now - last < len(books.workers) // 100 * _PAUSE:
        return False
    books.looked[bag.id] = now
    return True


def _may_replicate(bag: Bag) -> bool:
    return bag.spec.replicas > 0 and not bag.count(TaskState.WAITING) and bag.count(TaskState.LEASED) > 0
